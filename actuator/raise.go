package actuator

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// Raise asks for a higher memory limit between plans, for an instance that is short of memory.
type Raise struct {
	trimtab.KnobID
	// To is the wanted limit, in bytes.
	To float64
	// Why says what the instance ran short of, for the log.
	Why string
}

// Raised is the result of a Raise: the limits before and after it, and why it was refused; "": it was
// not.
type Raised struct {
	Before, Found trimtab.Amount
	Refused       string
}

const (
	// othersTake is the part of what is in use on a host that stays free for its growth when a limit
	// rises.
	othersTake = 1.0 / 16
	// promisedFor is how long a raise counts as taken although the group does not use it yet.
	promisedFor = 10 * time.Second
	// leastRaise is the least raise that is worth a write, in bytes, if memory is scarce.
	leastRaise = 1 << 20
)

// Raise raises memory limits without a plan, as the agent's loop asks for it: within the bounds of
// each knob, while a lease runs, for knobs in mode act that no other program has changed, by no more
// than the host has free. It is journaled before it is written and read back afterwards, and the
// holding tells the planner. It never lowers a limit.
func (a *Actuator) Raise(ctx context.Context, all []Raise) []Raised {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Raised, len(all))
	for i := range all {
		out[i] = a.executor.raise(ctx, &all[i])
	}
	return out
}

// Reclaim returns what takes memory away from an instance, for a probe of what it needs, or why that may
// not be done now: the conditions are those of a raise. It sets nothing, so that there is nothing to restore.
// What it returns needs no lock, and may take as long as the kernel needs.
func (a *Actuator) Reclaim(ctx context.Context, id trimtab.KnobID) (take func(bytes float64) error, refused string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.executor
	h := x.knobs.find(x.config.here(id))
	switch {
	case h == nil:
		return nil, "this host has no such knob"
	case h.can.Reclaim == nil:
		return nil, "memory of such a knob cannot be taken away for a while"
	}
	return h.can.Reclaim, x.noRaise(ctx, h)
}

// raise carries out one Raise.
func (x *executor) raise(ctx context.Context, r *Raise) (done Raised) {
	h := x.knobs.find(x.config.here(r.KnobID))
	if h == nil {
		return Raised{Refused: "this host has no such knob"}
	}
	if h.Mode == trimtab.Act {
		x.knobs.observe(ctx, h)
	}
	done.Before, done.Found = h.now, h.now
	if done.Refused = x.noRaise(ctx, h); done.Refused != "" {
		return done
	}
	room, err := x.freeMemory()
	if err != nil {
		done.Refused = err.Error()
		return done
	}
	to := min(r.To, h.highest())
	if least := h.now.Value + leastRaise; to > h.now.Value+room {
		if to = h.now.Value + room; to < least {
			done.Refused = fmt.Sprintf("the host has %.0f MiB of free memory for it", max(0, room)/(1<<20))
			return done
		}
	}
	goal := h.Knob.Nearest(trimtab.Units(to))
	if !h.now.Less(goal) {
		done.Refused = "its limit is at its max, or as high as asked"
		return done
	}
	if h.entry.raises(h, goal) && x.fence.leftBorrowed() == 0 {
		done.Refused = "what is borrowed is to be given back by now"
		return done
	}
	e := h.nextEntry(goal, nil)
	if err := x.store("journal a raise", put(e.journalKey(), e)); err != nil {
		done.Refused = fmt.Sprintf("%v: nothing is written without the journal", err)
		return done
	}
	h.entry = e
	err = h.Knob.Write(ctx, goal)
	h.written = whereIs(&h.can)
	switch read := x.knobs.observe(ctx, h); {
	case err != nil:
		done.Refused = err.Error()
	case !read:
		done.Refused = "not read back: " + h.block.problem
	}
	if done.Found = h.now; done.Before.Less(h.now) {
		x.promise(h.now.Value - done.Before.Value)
	}
	x.logger.Info("memory limit raised between plans", "workload", h.Workload, "instance", h.Instance,
		"before", done.Before.String(), "found", done.Found.String(), "why", r.Why, "problem", done.Refused)
	x.notify()
	return done
}

// raises reports whether goal is above the baseline that the entry, or a first one, restores.
func (e *entry) raises(h *managed, goal trimtab.Amount) bool {
	if e == nil {
		return h.now.Less(goal)
	}
	return e.borrows(goal)
}

// noRaise returns why a knob's limit cannot be raised between plans now; "": it can.
func (x *executor) noRaise(ctx context.Context, h *managed) string {
	switch {
	case h.Mode != trimtab.Act:
		return "mode " + string(h.Mode)
	case !x.byFreeMemory(h) || h.can.remote():
		return "only plans set this limit"
	case x.fence.closed:
		return "the actuator is stopping"
	case !x.fence.paused.IsZero():
		return "paused"
	case x.fence.left() == 0:
		return "no plan is in force"
	case h.report() != "":
		return h.report()
	case !h.known || h.gone:
		return "the limit cannot be read"
	case h.now.Unlimited:
		return "it has no limit"
	}
	return x.knobs.claim(ctx, h)
}

// byFreeMemory reports whether a knob rises by what the host has free, and not within the sum of all
// limits.
func (x *executor) byFreeMemory(h *managed) bool {
	return h.Resource == trimtab.Memory && x.config.FreeMemory != nil
}

// freeMemory returns by how much a memory limit may rise now: what is free, less a sixteenth of what
// is in use, which whatever runs on the host may still take, and less what was promised lately.
func (x *executor) freeMemory() (float64, error) {
	free, used, err := x.config.FreeMemory()
	if err == nil {
		err = trimtab.Units(max(free, 0) + used).Validate()
	}
	if err != nil {
		return 0, fmt.Errorf("it is not known how much memory the host has free, so no limit rises: %w", err)
	}
	if x.clock.boot() >= x.promisedUntil {
		x.promised = 0
	}
	return free - used*othersTake - x.promised, nil
}

// promise notes that a limit rose by so many bytes, which are still free until the group takes them.
func (x *executor) promise(bytes float64) {
	x.promised += bytes
	x.promisedUntil = saturate(x.clock.boot(), promisedFor)
}

// lacksMemory returns why the host has too little free memory to raise a limit to goal; "": it has
// enough, of which the raise then counts as taken.
func (x *executor) lacksMemory(h *managed, goal trimtab.Amount) string {
	room, err := x.freeMemory()
	rise := h.bounded(goal) - h.atMost(h.now)
	switch {
	case err != nil:
		return err.Error()
	case rise > room:
		x.metrics.Counter("trimtab_actuator_host_refusals_total").Inc()
		return fmt.Sprintf("the host has %.0f MiB of free memory for raises, this one takes %.0f MiB", max(0, room)/(1<<20), rise/(1<<20))
	}
	x.promise(max(0, rise))
	return ""
}
