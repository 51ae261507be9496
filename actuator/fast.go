package actuator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// fast is the actuator's side of the loop.
type fast struct {
	// groups are those that may be moved, as told last, in order of name; generation
	// counts their changes.
	groups     []FastGroup
	knobs      []*held
	generation uint64
	limits     FastLimits
	// lendable is what plan and arbiter allow beyond the sum of targets, capacity what the
	// pool may give here by the last plan.
	lendable, capacity float64
	// whole: weights by target share the CPUs of the pool.
	whole bool
	// looked is when the loop last looked, on the boot clock.
	looked time.Duration
	// problem is why nothing is moved, remedy what to do about it; "": nothing is in the
	// way.
	problem, remedy string
}

// FastGroup is one knob that may be moved, and within what.
type FastGroup struct {
	trimtab.KnobID
	Envelope trimtab.Envelope
}

// FastLimits bound all groups together.
type FastLimits struct {
	// Until is when the lease ends, on the boot clock.
	Until time.Duration
	// Capacity is what the groups may have together at most, Lendable by how much they may
	// exceed their targets, in cores.
	Capacity, Lendable float64
}

// FastLook is what a look of the loop finds.
type FastLook struct {
	// Generation changes when Groups do.
	Generation uint64
	Groups     []FastGroup
	FastLimits
	At time.Duration
	// Counters are in the order of Groups; Errs says of which nothing was read, and why.
	Counters []Counters
	Errs     []error
	// Parent are the counters of the group above; nil: there is none, or it was not read.
	// Pressure is the total of [Pressured] of that group; nil: nothing tells.
	Parent   *Counters
	Pressure *float64
}

// FastAccount is what the loop has to tell of one knob, for the holding.
type FastAccount struct {
	trimtab.KnobID
	trimtab.Fast
}

// FastMove moves one group of a look, in cores.
type FastMove struct {
	Group      int
	Set, Burst float64
}

// loopDead is after how long without a look what was moved goes back to its target.
const loopDead = 2 * time.Second

// restorable are all knobs that a restore has to do with: the group above comes first up
// and last down, which restoreAll sees to.
func (a *Actuator) restorable() []*held {
	if p := a.parent; p != nil && p.entry != nil {
		return append(slices.Clone(a.knobs), p)
	}
	return a.knobs
}

// heldOf is find for all that has an entry in the journal.
func (a *Actuator) heldOf(id trimtab.KnobID) *held {
	if p := a.parent; p != nil && p.KnobID == id {
		return p
	}
	return a.find(id)
}

// resting is where a knob rests: the target of its envelope while it is within, else what
// it is set to.
func (h *held) resting() trimtab.Amount {
	if h.moves() && h.entry.free(h.now) {
		return h.Knob.Nearest(trimtab.Units(h.envelope.Target))
	}
	return h.now
}

// moves reports whether the loop may move the knob.
func (h *held) moves() bool { return h.envelope != nil && h.entry != nil }

// movable reports whether it may be moved now. One that is gone frees what it had.
func (h *held) movable() bool { return h.moves() && (h.gone || h.report() == "") }

// free reports whether v is a value that the loop may have set.
func (e *entry) free(v trimtab.Amount) bool {
	r := e.Free
	return r != nil && !v.Unlimited && v.Value >= r[0]-fastSlack && v.Value <= r[1]+fastSlack
}

// fastSlack is what rounding to a kernel's microseconds may add to an amount.
const fastSlack = 2e-3

// callIn ends loans: what is above its target goes back to it. It is asked for when a
// plan raises somebody and there is no room.
func (a *Actuator) callIn(but *held) (freed bool) {
	for _, h := range a.knobs {
		if h != but && h.moves() && !h.now.Unlimited && h.now.Value > h.envelope.Target+fastSlack && h.entry.free(h.now) {
			freed = a.shift(h, h.envelope.Target, h.envelope.Burst) == nil || freed
		}
	}
	return freed
}

// rest sets all that the loop moved to its target: loans end first.
func (a *Actuator) rest() {
	a.callIn(nil)
	for _, h := range a.knobs {
		if h.moves() && !h.now.Unlimited && h.now.Value < h.envelope.Target-fastSlack && h.entry.free(h.now) &&
			a.sumWith(h, trimtab.Units(h.envelope.Target)) <= a.fast.capacity+slack {
			_ = a.shift(h, h.envelope.Target, h.envelope.Burst) // the next tick tries again
		}
	}
}

// shift makes one move inside an envelope, and notes what was read back.
func (a *Actuator) shift(h *held, v, burst float64) error {
	q, ok := h.Knob.(Quick)
	if !ok {
		return fmt.Errorf("move %s: %w", h.Knob, trimtab.ErrUnsupported)
	}
	found, err := q.Move(h.Knob.Nearest(trimtab.Units(v)), min(burst, v))
	if err != nil {
		a.metrics.Counter("trimtab_fast_failed_total").Inc()
		if seen, bad := q.Look(); bad == nil {
			h.now = seen.Set
		}
		return err
	}
	h.now = found
	a.metrics.Counter("trimtab_fast_writes_total").Inc()
	return nil
}

// tend looks after what the loop moved, at every heartbeat: it may have died. It looks at
// the group above, too.
func (a *Actuator) tend(ctx context.Context) {
	if a.config.Fast && !a.loops() && !a.closed {
		a.rest()
	}
	if p := a.parent; p != nil && p.entry != nil {
		a.observe(ctx, p)
	}
}

// potential is what the pool may have of CPU time inside all envelopes, beyond what is
// set now: it is claimed of the host as long as plans allow it.
func (a *Actuator) potential() float64 {
	targets, set := 0.0, 0.0
	for _, h := range a.knobs {
		if h.moves() && h.Resource == trimtab.CPU {
			targets += h.envelope.Target
			set += h.atMost(h.now)
		}
	}
	if targets == 0 {
		return 0
	}
	return max(0, targets+a.fast.lendable-set)
}

// fastProblem notes why nothing is moved, and what to do about it.
func (a *Actuator) fastProblem(why, remedy string) {
	a.fast.remedy = remedy
	if a.fast.problem == why {
		return
	}
	level := slog.LevelWarn
	if why == "" {
		level = slog.LevelInfo
	}
	a.fast.problem = why
	a.logger.Log(context.Background(), level, "quotas between rounds", "problem", why, "do", remedy)
	a.notify()
}

// FastLook reads all knobs that the loop may move now. Its slices are valid until the
// next call; it is for one loop.
func (a *Actuator) FastLook(look *FastLook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &a.fast
	f.looked = a.clock.boot()
	a.regroup()
	look.Generation, look.Groups, look.FastLimits, look.At = f.generation, f.groups, f.limits, f.looked
	look.Counters, look.Errs, look.Parent = look.Counters[:0], look.Errs[:0], nil
	look.Pressure = nil
	for _, h := range f.knobs {
		c, err := a.glance(h)
		look.Counters, look.Errs = append(look.Counters, c), append(look.Errs, err)
	}
	if p := a.parent; p != nil && p.entry != nil && len(f.knobs) > 0 {
		if q, ok := p.Knob.(Quick); ok {
			if c, err := q.Look(); err == nil {
				look.Parent = &c
			}
			if p, ok := q.(Pressured); ok && look.Parent != nil {
				if total, ok := p.Pressure(); ok {
					look.Pressure = &total
				}
			}
		}
	}
}

// glance reads one knob, and notes what somebody else set.
func (a *Actuator) glance(h *held) (Counters, error) {
	q, ok := h.Knob.(Quick)
	if !ok {
		return Counters{}, trimtab.ErrUnsupported
	}
	c, err := q.Look()
	h.gone = errors.Is(err, os.ErrNotExist)
	if err == nil {
		err = c.Set.Validate()
	}
	if err == nil && !same(c.Set, h.now) {
		before := h.now
		h.now = c.Set
		a.judge(h, before)
	}
	return c, err
}

// regroup finds out which knobs may be moved, and within what limits.
func (a *Actuator) regroup() {
	f := &a.fast
	frozen := !a.paused.IsZero() || a.closed || f.problem != "" || a.lease.borrowed().left(a.clock.id, a.clock.boot()) == 0
	n, others := 0, 0.0
	changed := false
	for _, h := range a.knobs {
		if h.Resource != trimtab.CPU || !h.counts() {
			continue
		}
		if !h.movable() {
			if h.known && !h.gone {
				others += h.atMost(h.now)
			}
			continue
		}
		e := *h.envelope
		if frozen {
			e.Lend, e.Borrow = false, false
		}
		g := FastGroup{h.KnobID, e}
		if n >= len(f.groups) || f.groups[n] != g || f.knobs[n] != h {
			if !changed {
				// What was told stays as it is for who reads it.
				f.groups, f.knobs, changed = slices.Clone(f.groups[:min(n, len(f.groups))]), slices.Clone(f.knobs[:min(n, len(f.knobs))]), true
			}
		}
		if changed {
			f.groups, f.knobs = append(f.groups, g), append(f.knobs, h)
		}
		n++
	}
	if !changed && n < len(f.groups) {
		f.groups, f.knobs, changed = slices.Clone(f.groups[:n]), slices.Clone(f.knobs[:n]), true
	}
	limits := FastLimits{Until: a.lease.borrowed().Until, Capacity: max(f.targets(), f.capacity-others), Lendable: f.lendable}
	if a.lease.Boot != a.clock.id {
		limits.Until = 0
	}
	if changed || limits != f.limits {
		f.generation++
	}
	f.limits = limits
}

// FastMove makes moves of the groups of a look, and returns what is set of each group
// afterwards: NaN where that is not known. Nothing is moved when the groups have changed
// since, outside an envelope, or up over what all may have together.
func (a *Actuator) FastMove(generation uint64, moves []FastMove, found []float64) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &a.fast
	found = found[:0]
	if a.regroup(); f.generation != generation || f.limits.Until <= a.clock.boot() {
		return found
	}
	sum := 0.0
	for _, h := range f.knobs {
		if !h.gone {
			sum += h.atMost(h.now)
		}
	}
	most := min(f.limits.Capacity, f.limits.Lendable+f.targets()) + slack
	for _, m := range moves {
		if m.Group < 0 || m.Group >= len(f.knobs) {
			continue
		}
		h, e := f.knobs[m.Group], &f.groups[m.Group].Envelope
		v := min(max(m.Set, e.Least()), e.Most())
		was := h.atMost(h.now)
		if !(v > 0) || h.gone || v > was && sum-was+v > most {
			continue
		}
		_ = a.shift(h, v, m.Burst) // what came of it is read back
		sum += h.atMost(h.now) - was
	}
	for _, h := range f.knobs {
		v := math.NaN()
		if !h.gone && !h.now.Unlimited {
			v = h.now.Value
		}
		found = append(found, v)
	}
	return found
}

// targets is what the groups have where all rest.
func (f *fast) targets() (sum float64) {
	for i := range f.groups {
		sum += f.groups[i].Envelope.Target
	}
	return sum
}

// endLoans ends the loans of a loop of an earlier life, which nobody looks after any more.
func (a *Actuator) endLoans(ctx context.Context) {
	for _, up := range []bool{false, true} {
		for _, h := range a.knobs {
			if h.entry == nil || h.entry.Free == nil || !h.known || h.report() != "" || !h.entry.free(h.now) {
				continue
			}
			goal := h.entry.last()
			if same(h.now, goal) || h.now.Less(goal) != up {
				continue
			}
			if err := h.Knob.Write(ctx, goal); err != nil {
				a.logger.Warn("end the loan of an earlier life", "workload", h.Workload, "err", err)
			}
			a.observe(ctx, h)
		}
	}
}

// dropFast forgets what the loop may do with a knob that was restored.
func (h *held) dropFast() { h.envelope, h.account = nil, nil }
