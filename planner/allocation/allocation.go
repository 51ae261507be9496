package allocation

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/alternative"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/need"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/pool"
)

// Allocation is one resource of one workload during one round: what the round found, and then the
// result of each pass.
type Allocation struct {
	*Workload
	State *State
	// Knobs are the knobs of its instances; empty if it has none that can be set.
	Knobs instances.All
	// Index is the index of the Resource in the pool. Curve is the workload's performance as a
	// function of its amount.
	Index    int
	Resource *pool.Resource
	Curve    *trimtab.Curve
	// Now is the effective allocation of its instances. An unlimited knob counts as its maximum.
	Now    float64
	Range  Range
	Status Status
	// ReadOnly is why its size is only recommended although its mode is act; "": it is written.
	ReadOnly string
	// Scale is the knob of its number of instances; nil: the number is not planned.
	Scale *ledger.Knob
	Aim   Aim
	Step  Step
	Notes Notes
	// Replicas is the planned change of the number of instances.
	Replicas Replicas
}

// Range bounds an allocation, in units. least is Lo before it was raised to keep the allocation
// from being lowered. easy is the most that the existing instances can have.
type Range struct {
	Lo, Hi, least, easy int
	Need                policy.Demand
}

// Status says whether an allocation is planned for.
type Status struct {
	// Free: the policy plans for it; otherwise Held says why not.
	Free bool
	Held trimtab.Held
	// Open: it has no limit, and gets none in this round.
	Open bool
}

// Aim is the target of an allocation.
type Aim struct {
	// Units is the target. Solved: it is set.
	Units   int
	Solved  bool
	Binding trimtab.Binding
	// Served: the target is what it needs and a part of the leftover capacity. Short: it has less
	// than it needs. Safe is its need at the highest expected load, in the resource's unit; 0:
	// unknown.
	Served, Short bool
	Safe          float64
	// Deficit is how much less it has than it needs, in standard errors of its load.
	Deficit float64
	// Stays: its share by weight stays as it is, even if that is no whole number of units.
	Stays bool
	// ByHost: the amounts of its instances were decided host by host.
	ByHost bool
	// Divided: the needs of the workloads that share CPU by weight do not fit. Kept is why its
	// reservation stays as the site set it; "": it is planned.
	Divided bool
	Kept    string
	// Solution set the target, if the policy shares one resource. At is the index of the allocation
	// in it.
	Solution *alternative.Solution
	At       int
}

// Step is the bounded step of an allocation towards its target, in the resource's unit.
type Step struct {
	// Want is the amount after a bounded step to Target.
	Target, Want float64
	// Grant is how far the guard lets it move; later passes may lower it.
	guard.Grant
}

// Notes has what only the reason of the decision needs.
type Notes struct {
	// Limit is the limit recommended from its use to a workload that has none; 0: none.
	Limit float64
	// Without says what is still missing before a limit can be recommended to a workload that has
	// none.
	Without string
	// Evens: the workload's amount stays, and instances with more than their part of it are
	// lowered.
	Evens bool
	// Recalled says why lent capacity is taken back from it; "": it is not.
	Recalled string
}

// Acts reports whether the plan for the workload is written: its size, or at least the number of
// its instances.
func (s *Allocation) Acts() bool { return s.Writes() || s.sizeFixed() }

// Writes reports whether the size of its instances is written.
func (s *Allocation) Writes() bool { return s.Mode == trimtab.Act && s.ReadOnly == "" }

// ActionMode returns the mode of actions on its instances.
func (s *Allocation) ActionMode() trimtab.Mode {
	if s.Writes() {
		return trimtab.Act
	}
	return trimtab.Recommend
}

// Shared reports whether it shares CPU by weight: it has its share whenever it wants it, and in
// addition what others leave idle.
func (s *Allocation) Shared() bool { return s.Knobs.Shared() }

// Draw sets the curve that it is planned by. caution in [0, 1] is where between the mean and the
// upper bound of its load the policy plans. serves: the backlog counts as well.
func (s *Allocation) Draw(caution float64, serves bool) {
	e := s.Estimate
	if e == nil {
		return
	}
	if s.Index > 0 {
		s.Curve = e.Curves[s.Resource.Name]
		return
	}
	s.Curve = planned(e, caution)
	if s.Starves() && s.Curve != nil && len(s.Curve.Knots) > 0 && s.Curve.Eval(s.Now).Mean >= s.SLO {
		// The curve says that it has enough, but its requests wait: do not lower it.
		s.Range.Lo = max(s.Range.Lo, min(s.Range.Hi, policy.UpUnits(s.Now, s.Resource.Unit)))
	}
	if b := e.Backlog; b != nil && serves && s.Curve != nil && *b > 0 {
		s.Curve = need.Behind(s.Curve, *b/drain)
	}
}

// Look reads what its instances have, and sets its bounds. scale is the knob of their number or
// nil. guarded: an allocation is not lowered while an alert on it fires. about names the resource
// in a reason.
func (s *Allocation) Look(scale *ledger.Knob, guarded bool, about string) {
	w, d, u := s.Workload, s.State, s.Resource.Unit
	s.Now = s.Knobs.Effective(func(i *instances.Instance) float64 { return i.Has })
	if s.Index == 0 {
		w.Loan.Begins(s.Now)
	}
	most := s.Knobs.Effective(func(i *instances.Instance) float64 { return i.High })
	least := 0.0
	for i := range s.Knobs {
		least = max(least, max(d.Min, s.Knobs[i].Held.Min)/s.Knobs[i].Share)
	}
	if s.Shared() && len(s.Knobs) > 1 { // requests go to the instance that serves them, so amounts add up
		s.Now, least = 0, 0
		for i := range s.Knobs {
			s.Now, least = s.Now+s.Knobs[i].Has, least+max(d.Min, s.Knobs[i].Held.Min)
		}
	}
	if left := s.Knobs.Left(); len(s.Knobs) > 1 {
		most = min(most, s.Resource.Capacity, s.Now+left)
	} else if !s.Knobs.Unlimited() {
		most = min(most, s.Now+left)
	}
	s.Range.Lo, s.Range.Hi = policy.UpUnits(least, u), policy.DownUnits(most, u)
	s.Range.easy = s.Range.Hi
	for i := 0; i < len(s.Knobs) && s.ReadOnly == ""; i++ {
		s.ReadOnly = s.Knobs[i].Held.ReadOnly
	}
	s.countable(scale)
	s.Range.least = s.Range.Lo
	if s.Firing() && guarded && !s.Knobs.Unlimited() {
		// The guard would not lower it, so that the others must not count on its capacity.
		s.Range.Lo = min(max(s.Range.Lo, policy.DownUnits(s.Now, u)), s.Range.Hi)
	}
	if w.Estimate != nil && StandsIn(w.Estimate) {
		s.keep()
	}
	if s.Status.Held.Code == "" && s.Range.Lo > s.Range.Hi {
		s.Status.Held = trimtab.Held{Code: codes.HeldRange, Text: fmt.Sprintf("no whole unit of %v%s between %v and %v%s", u, about, least, most, aboveOf(s))}
	}
	s.Step.Grant = guard.Grant{Set: s.Now}
}

// HeldBy returns the hold of an estimate as that of a plan, with a text appended.
func HeldBy(e *trimtab.Estimate, more string) trimtab.Held {
	h := *e.Hold
	if h.Code == "" {
		h.Code = codes.HeldOther // an empty code would mean that it is not held
	}
	h.Text = "estimate: " + h.Text + more
	return h
}

// StandsIn reports whether the curve of an estimate comes from a declared fallback, because input
// is missing.
func StandsIn(e *trimtab.Estimate) bool { return e.Hold != nil && e.Fallback != "" && e.Curve != nil }

// keep raises the lower bound to the current amount: a substitute for a missing input may raise an
// allocation, but not lower it.
func (s *Allocation) keep() {
	floor := policy.UpUnits(s.Now, s.Resource.Unit)
	if s.Status.Held.Code == "" && (floor > s.Range.Hi || s.Knobs.Unlimited()) {
		s.Status.Held = HeldBy(s.Estimate, ": it has its maximum")
	}
	s.Range.Lo = max(s.Range.Lo, min(s.Range.Hi, floor))
}

// planned returns the curve of an estimate at the load that the policy plans
// for, between the load's mean and its upper bound: see [trimtab.Curve.At].
func planned(e *trimtab.Estimate, caution float64) *trimtab.Curve {
	c, l := e.Curve, e.Load
	if caution == 0 || c == nil || l == nil || !(l.Upper > 0) || c.Load != l.Upper || !(l.Mean < l.Upper) {
		return c
	}
	load := l.Mean + caution*(l.Upper-l.Mean)
	if !(load > 0) || load >= l.Upper {
		return c
	}
	return c.At(load)
}

// aboveOf returns what limits an instance to less than is declared, as a suffix for a reason.
func aboveOf(s *Allocation) string {
	if st := s.Knobs.Caps(""); st != nil {
		return fmt.Sprintf(": %s gives %s", st.By, s.Amount(st.Most))
	}
	return ""
}
