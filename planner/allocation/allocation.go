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

// Allocation is one resource of one workload in one round: what each pass made of it.
type Allocation struct {
	*Workload
	Found
	Aimed
	// Want is the bounded step to the target, and Grant what the guard made of it and later
	// passes leave of that.
	Target, Want float64
	Grant        guard.Grant
	Told
	// Replicas is what the number of its instances is to be.
	Replicas Replicas
}

// Found is what a round finds of an allocation before anything is decided.
type Found struct {
	State *State
	// Knobs are those of its instances; none: it has no knob to turn.
	Knobs instances.All
	// Index is the place of the resource Of in the pool. Curve is the workload's performance over
	// an amount of it.
	Index int
	Of    *pool.Resource
	Curve *trimtab.Curve
	// Now is what it has, an unlimited knob counted as its maximum: the effective
	// allocation of its instances.
	Now float64
	// Lo and Hi are its bounds in units; least is Lo but for what keeps it from being lowered,
	// and easy what the instances that are there can have.
	Lo, Hi, least, easy int
	// Free tells that the policy plans for it; Held says why not.
	Free bool
	Held trimtab.Held
	Need policy.Demand
	// Open: it has no limit, and gets none in this round.
	Open bool
	// Barred is why the size is only recommended in mode act; "": it is written.
	Barred string
	// Scale is the knob of its number; nil: that is not planned.
	Scale *ledger.Knob
}

// Aimed is where an allocation is to be in the end.
type Aimed struct {
	// Aim is the target in units; Solved tells that it is set.
	Aim     int
	Solved  bool
	Binding trimtab.Binding
	// Served tells that the aim is what it needs and a part of the head-room;
	// Short, that it has less than it needs; Safe is its need at the highest load
	// that is expected, in the resource's unit, 0: unknown.
	Served, Short bool
	Safe          float64
	// Lack is how much it has less than it needs, in standard errors of its load.
	Lack float64
	// Stays: what it has is a share that stays as it is, no whole number of units perhaps.
	Stays bool
	// ByHost: what its instances have was decided for each host.
	ByHost bool
	// Divided tells that the needs of who shares by weight do not fit, and Kept why the room that
	// it reserves is as the site set it in spite of that; "": it is planned.
	Divided bool
	Kept    string
	// In is the solution that set it, where the policy shares one resource, and At the place
	// in it.
	In *alternative.Solution
	At int
}

// Told is what reasons are made of beside.
type Told struct {
	// Limit is what is advised to who has none, by what it was seen to use.
	Limit float64
	// Without says what is still missing before a limit is recommended to a
	// workload that has none.
	Without string
	// Evens: it stays as a whole, and instances come down to their parts of what it has.
	Evens bool
	// Recalled says why what it borrowed is taken back; "": it is not.
	Recalled string
}

// Acts reports whether what is planned for the workload is written: its size, or its
// number alone.
func (s *Allocation) Acts() bool { return s.Writes() || s.sizeFixed() }

// Writes reports whether the size of its instances is.
func (s *Allocation) Writes() bool { return s.Mode == trimtab.Act && s.Barred == "" }

// ActionMode is that of what is done to its instances.
func (s *Allocation) ActionMode() trimtab.Mode {
	if s.Writes() {
		return trimtab.Act
	}
	return trimtab.Recommend
}

// Shared reports whether what it has is a share by weight: the least that it has at every
// instant, while it has what others leave idle, too.
func (s *Allocation) Shared() bool { return s.Knobs.Shared() }

// Draw sets the curve that it is planned by, at a load that is so cautious. serves: what
// waits counts, too.
func (s *Allocation) Draw(caution float64, serves bool) {
	e := s.Estimate
	if e == nil {
		return
	}
	if s.Index > 0 {
		s.Curve = e.Curves[s.Of.Name]
		return
	}
	s.Curve = planned(e, caution)
	if s.Starves() && s.Curve != nil && len(s.Curve.Knots) > 0 && s.Curve.Eval(s.Now).Mean >= s.SLO {
		// What was answered says that it is enough, and what waits that it is not.
		s.Lo = max(s.Lo, min(s.Hi, policy.UpUnits(s.Now, s.Of.Unit)))
	}
	if b := e.Backlog; b != nil && serves && s.Curve != nil && *b > 0 {
		s.Curve = need.Behind(s.Curve, *b/drain)
	}
}

// Look finds out what its instances have, and what it may have. scale is the knob of their number,
// nil: there is none; guarded: nobody is lowered while an alert on it fires.
func (s *Allocation) Look(scale *ledger.Knob, guarded bool, about string) {
	w, d, u := s.Workload, s.State, s.Of.Unit
	s.Now = s.Knobs.Effective(func(i *instances.Instance) float64 { return i.Has })
	if s.Index == 0 {
		w.Loan.Begins(s.Now)
	}
	most := s.Knobs.Effective(func(i *instances.Instance) float64 { return i.High })
	least := 0.0
	for i := range s.Knobs {
		least = max(least, max(d.Min, s.Knobs[i].Held.Min)/s.Knobs[i].Share)
	}
	if s.Shared() && len(s.Knobs) > 1 { // load goes where it is served
		s.Now, least = 0, 0
		for i := range s.Knobs {
			s.Now, least = s.Now+s.Knobs[i].Has, least+max(d.Min, s.Knobs[i].Held.Min)
		}
	}
	if left := s.Knobs.Left(); len(s.Knobs) > 1 {
		most = min(most, s.Of.Capacity, s.Now+left)
	} else if !s.Knobs.Unlimited() {
		most = min(most, s.Now+left)
	}
	s.Lo, s.Hi = policy.UpUnits(least, u), policy.DownUnits(most, u)
	s.easy = s.Hi
	for i := 0; i < len(s.Knobs) && s.Barred == ""; i++ {
		s.Barred = s.Knobs[i].Held.Barred
	}
	s.countable(scale)
	s.least = s.Lo
	if s.Firing() && guarded && !s.Knobs.Unlimited() {
		// The guard would not lower it: what others get is planned without that.
		s.Lo = min(max(s.Lo, policy.DownUnits(s.Now, u)), s.Hi)
	}
	if w.Estimate != nil && StandsIn(w.Estimate) {
		s.keep()
	}
	if s.Held.Code == "" && s.Lo > s.Hi {
		s.Held = trimtab.Held{Code: codes.HeldRange, Text: fmt.Sprintf("no whole unit of %v%s between %v and %v%s", u, about, least, most, aboveOf(s))}
	}
	s.Grant = guard.Grant{Set: s.Now}
}

// HeldBy is the hold of an estimate as that of a plan, with what there is to
// add.
func HeldBy(e *trimtab.Estimate, more string) trimtab.Held {
	h := *e.Hold
	if h.Code == "" {
		h.Code = codes.HeldOther // whatever it is: an empty code is that of nobody held
	}
	h.Text = "estimate: " + h.Text + more
	return h
}

// StandsIn reports whether a declared fallback makes the curve while input is
// missing.
func StandsIn(e *trimtab.Estimate) bool { return e.Hold != nil && e.Fallback != "" && e.Curve != nil }

// keep makes what it has its least: what stands in for missing input may
// raise, not lower.
func (s *Allocation) keep() {
	floor := policy.UpUnits(s.Now, s.Of.Unit)
	if s.Held.Code == "" && (floor > s.Hi || s.Knobs.Unlimited()) {
		s.Held = HeldBy(s.Estimate, ": it has its maximum")
	}
	s.Lo = max(s.Lo, min(s.Hi, floor))
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

// aboveOf names what lets an instance have less than is declared, for a list of reasons.
func aboveOf(s *Allocation) string {
	if st := s.Knobs.Caps(""); st != nil {
		return fmt.Sprintf(": %s gives %s", st.By, s.Amount(st.Most))
	}
	return ""
}
