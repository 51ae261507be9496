package issue

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/ledger"
)

// Config configures the issuing of one pool's plans.
type Config struct {
	Pool      string
	Resources []Resource
	// Lease is how long a host keeps what a plan sets, Confirm how long grows wait for the
	// outcomes of shrinks.
	Lease, Confirm time.Duration
	// Ledger is told what is issued.
	Ledger *ledger.Ledger
	// Turns reports whether the knobs of a workload may be turned.
	Turns func(workload string) bool
	// Unheard returns what may be in use of a resource by workloads of the pool that no host has
	// reported; told says which ones are reported.
	Unheard func(resource string, told func(workload string) bool) float64
}

// Resource is one that the pool shares: all amounts are in its unit.
type Resource struct {
	Name string
	// Capacity is the declared one, Unit the size of one step of an allocation, and Quantum that
	// of one instance among several.
	Capacity, Unit, Quantum float64
}

// Decision is what a plan will contain.
type Decision struct {
	// Plan has what is said of it: all but pool, term, steps, time, lease and actions.
	trimtab.Plan
	Shrinks, Grows, Advice []trimtab.Action
}

// Counts are totals since the issuer was made.
type Counts struct {
	// Dropped counts grows that no longer fitted or had no knob, Scaled those cut to what was
	// free. Unanswered counts plans whose grows were sent although an outcome was missing. Later
	// counts actions left for a later plan, each time.
	Dropped, Scaled, Unanswered, Later uint64
}

// Issuer issues the plans of one pool. It is not safe for concurrent use.
type Issuer struct {
	Config
	Counts
	epoch, sequence uint64
	since           time.Time // when the term began
	pending         *pending
	renewal         *renewal
	recommended     []*trimtab.Plan
	told            time.Time // the time of the last Pause or Resume
	paused          bool
}

// pending is a plan whose grows wait for the outcomes of its shrinks.
type pending struct {
	plan  trimtab.Plan // the first step
	grows []trimtab.Action
	// waits holds the hosts whose answer to the first step's shrinks is missing.
	waits map[string]bool
	until time.Time
}

// New returns an issuer that has no term yet.
func New(c Config) *Issuer { return &Issuer{Config: c} }

// Begin begins a term.
func (i *Issuer) Begin(epoch uint64, now time.Time) {
	i.epoch, i.sequence, i.since, i.pending, i.renewal = epoch, 0, now, nil, nil
	i.Ledger.Begin(epoch, now)
}

// Epoch returns that of the last term.
func (i *Issuer) Epoch() uint64 { return i.epoch }

// Waits reports whether a plan is under way: the next must wait.
func (i *Issuer) Waits() bool { return i.pending != nil }

// Drop forgets the plan under way. What it has released stays reserved.
func (i *Issuer) Drop() { i.pending, i.renewal = nil, nil }

// Issue returns the first step of a decision. Grows follow when the answers are
// in; without shrinks, and with every host fenced, they go out at once.
func (i *Issuer) Issue(now time.Time, d Decision) *trimtab.Plan {
	d = i.turns(d)
	i.sequence++
	i.Ledger.Issue(i.sequence, now)
	plan := d.Plan
	plan.Pool, plan.Epoch, plan.Sequence, plan.Step, plan.Time, plan.Lease = i.Pool, i.epoch, i.sequence, 1, now, trimtab.SecondsOf(i.Lease)
	if len(plan.Held) == 0 {
		plan.Held = nil
	}
	if len(plan.Unmoved) == 0 {
		plan.Unmoved = nil
	}
	plan.Actions = d.Shrinks
	plan.Actions = append(plan.Actions, d.Advice...)
	waits := map[string]bool{}
	for n := range d.Shrinks {
		waits[d.Shrinks[n].Host] = true
	}
	i.pending = &pending{plan: plan, grows: d.Grows, waits: waits, until: now.Add(i.Confirm)}
	switch {
	case len(d.Grows) == 0:
		plan.Last, i.pending = true, nil
	case len(waits) == 0 && !i.Ledger.Unfenced(now):
		plan.Last, i.pending = true, nil
		plan.Actions = append(plan.Actions, i.fit(now, d.Grows, plan)...)
	}
	return i.emit(&plan)
}

// emit records a step that is published.
func (i *Issuer) emit(plan *trimtab.Plan) *trimtab.Plan {
	plan.Hosts = i.Ledger.Hosts()
	i.lend(plan)
	if advises(plan) {
		i.recommended = append(i.recommended, plan)
		if len(i.recommended) > maxRecommended {
			i.recommended = slices.Delete(i.recommended, 0, 1)
		}
	}
	return plan
}

// Release returns the waiting grows once every host has answered or the wait is over, or else the
// plan once more, to renew what is borrowed; nil: nothing waits, or there is more to wait for.
func (i *Issuer) Release(now time.Time) *trimtab.Plan {
	w := i.pending
	if w == nil {
		return i.renew(now)
	}
	waits := len(w.waits) > 0 || i.Ledger.Unfenced(now)
	if waits && now.Before(w.until) {
		return nil
	}
	i.pending = nil
	plan := i.next(&w.plan, now)
	plan.Actions = i.fit(now, w.grows, plan)
	if waits {
		i.Unanswered++
	}
	return i.emit(&plan)
}

// Answer reads an outcome, and reports whether it contained anything new: a repeated delivery
// releases nothing.
func (i *Issuer) Answer(o *trimtab.Outcome) (news bool) {
	news = i.Ledger.Read(o)
	if w := i.pending; w != nil && o.Epoch == w.plan.Epoch && o.Sequence == w.plan.Sequence && o.Step == w.plan.Step {
		news = news || w.waits[o.Host]
		delete(w.waits, o.Host)
	}
	if r := i.renewal; r != nil && o.Refused == "" && o.Epoch == r.plan.Epoch && o.Sequence == r.plan.Sequence && o.Step == r.plan.Step {
		news = news || r.waits[o.Host]
		delete(r.waits, o.Host)
	}
	return news
}

// Pause applies a pause, or a resume, that was requested at a time, and reports whether it was
// accepted, and whether it changed anything. A pause ends the plan under way.
func (i *Issuer) Pause(now, asked time.Time, pause bool) (heard, changed bool) {
	if asked.Before(i.told) && i.told.Sub(now) <= i.Lease {
		return false, false
	}
	changed = i.Paused() != pause
	i.told, i.paused = asked, pause
	if now.Before(asked) { // a clock that is ahead must not keep the next from being heard
		i.told = now
	}
	if pause {
		i.Drop()
	}
	return true, changed
}

// Paused returns the state of the last command, or before any, that of the pool's actuators.
func (i *Issuer) Paused() bool {
	if !i.told.IsZero() {
		return i.paused
	}
	return i.Ledger.Paused()
}
