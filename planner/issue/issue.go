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
	// Lease is how long a host keeps what a plan sets. Confirm is how long grows wait for the
	// outcomes of shrinks.
	Lease, Confirm time.Duration
	// Ledger records what is issued.
	Ledger *ledger.Ledger
	// Writable reports whether the knobs of a workload may be set.
	Writable func(workload string) bool
	// Unreported returns how much of a resource may be in use by workloads of the pool that no host
	// has reported; told reports whether one is reported.
	Unreported func(resource string, told func(workload string) bool) float64
}

// Resource is one resource of the pool. All amounts are in its unit (cores, bytes).
type Resource struct {
	Name string
	// Capacity is the configured one. Unit is the step size of an allocation, Quantum that of one
	// instance among several.
	Capacity, Unit, Quantum float64
}

// Decision is the content of a plan.
type Decision struct {
	// Plan has all fields but pool, term, steps, time, lease and actions, which the issuer sets.
	trimtab.Plan
	Shrinks, Grows, Advice []trimtab.Action
}

// Counts are totals since the start of the issuer.
type Counts struct {
	// Dropped counts grows that no longer fitted or had no knob. Scaled counts grows that were cut
	// to what was free. Unanswered counts plans whose grows were sent although an outcome was
	// missing. Later counts actions that were left for a later plan, each time.
	Dropped, Scaled, Unanswered, Later uint64
}

// Issuer issues the plans of one pool. It is not safe for concurrent use.
type Issuer struct {
	Config
	Counts
	epoch, sequence uint64
	since           time.Time // when the leader term began
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
	// waits has the hosts that have not yet answered the first step.
	waits map[string]bool
	until time.Time
}

// New returns an issuer without a leader term.
func New(c Config) *Issuer { return &Issuer{Config: c} }

// Begin begins a leader term.
func (i *Issuer) Begin(epoch uint64, now time.Time) {
	i.epoch, i.sequence, i.since, i.pending, i.renewal = epoch, 0, now, nil, nil
	i.Ledger.Begin(epoch, now)
}

// Epoch returns the epoch of the last leader term.
func (i *Issuer) Epoch() uint64 { return i.epoch }

// Waits reports whether a plan is being carried out, so that the next one must wait.
func (i *Issuer) Waits() bool { return i.pending != nil }

// Drop forgets the plan that is being carried out. Capacity for grows that were sent stays
// reserved.
func (i *Issuer) Drop() { i.pending, i.renewal = nil, nil }

// Issue returns the first step of a decision. Grows follow once the hosts have answered. Without
// shrinks, and if every host is known to refuse older plans, they are in the first step.
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

// emit completes a step for publication, and remembers it if it has recommendations.
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

// Release returns the step with the waiting grows, once every host has answered or the wait is
// over. If no grows wait, it may return the plan again to renew lent capacity: see renew. nil:
// nothing to send yet.
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

// Answer reads an outcome, and reports whether it has news. A repeated delivery has none, and must
// release nothing.
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

// Pause records a pause or resume that was requested at the time asked. heard: it is not older than
// the last one; changed: it changes the state. A pause ends the plan that is being carried out.
func (i *Issuer) Pause(now, asked time.Time, pause bool) (heard, changed bool) {
	if asked.Before(i.told) && i.told.Sub(now) <= i.Lease {
		return false, false
	}
	changed = i.Paused() != pause
	i.told, i.paused = asked, pause
	if now.Before(asked) { // the clock is ahead: do not ignore the next command
		i.told = now
	}
	if pause {
		i.Drop()
	}
	return true, changed
}

// Paused returns the state of the last command. Before any command it is the state of the pool's
// actuators.
func (i *Issuer) Paused() bool {
	if !i.told.IsZero() {
		return i.paused
	}
	return i.Ledger.Paused()
}
