package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/alternative"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/need"
	"github.com/trimtab/trimtab/planner/policy"
)

// seat is one resource of one workload in one round: what each pass made of it.
type seat struct {
	*workload
	found
	aimed
	// want is the bounded step to the target, and grant what the guard made of it and later
	// passes leave of that.
	target, want float64
	grant        guard.Grant
	told
	// count is what the number of its instances is to be.
	count numbered
}

// found is what a round finds of a seat before anything is decided.
type found struct {
	dial *dial
	// knobs are those of its instances; none: it has no knob to turn.
	knobs instances.All
	// resource is its index and of the resource itself; curve is the
	// performance over it.
	resource int
	of       *Resource
	curve    *trimtab.Curve
	// now is what it has, an unlimited knob counted as its maximum: the effective
	// allocation of its instances.
	now float64
	// lo and hi are its bounds in units; least is lo but for what keeps it from being lowered,
	// and easy what the instances that are there can have.
	lo, hi, least, easy int
	// free tells that the policy plans for it; held says why not.
	free bool
	held trimtab.Held
	need policy.Demand
	// open: it has no limit, and gets none in this round; see open.go.
	open bool
	// barred is why the size is only recommended in mode act; "": it is written.
	barred string
	// scale is the knob of its number; nil: that is not planned.
	scale *ledger.Knob
}

// aimed is where a seat is to be in the end.
type aimed struct {
	// aim is the target in units; solved tells that it is set.
	aim     int
	solved  bool
	binding trimtab.Binding
	// served tells that the aim is what it needs and a part of the head-room;
	// short, that it has less than it needs; safe is its need at the highest load
	// that is expected, in the resource's unit, 0: unknown.
	served, short bool
	safe          float64
	// lack is how much it has less than it needs, in standard errors of its load.
	lack float64
	// stays: what it has is a share that stays as it is, no whole number of units perhaps.
	stays bool
	// byHost: what its instances have was decided for each host: see shift.go.
	byHost bool
	// divided tells that the needs of who shares by weight do not fit, and kept why the room that
	// it reserves is as the site set it in spite of that; "": it is planned.
	divided bool
	kept    string
	// in is the solution that set it, where the policy shares one resource, and at the place
	// in it.
	in *alternative.Solution
	at int
}

// told is what reasons are made of beside.
type told struct {
	// limit is what is advised to who has none, by what it was seen to use.
	limit float64
	// without says what is still missing before a limit is recommended to a
	// workload that has none.
	without string
	// evens: it stays as a whole, and instances come down to their parts of what it has.
	evens bool
	// recalled says why what it borrowed is taken back; "": it is not.
	recalled string
}

// acts reports whether what is planned for the workload is written: its size, or its
// number alone.
func (s *seat) acts() bool { return s.writes() || s.sizeFixed() }

// writes reports whether the size of its instances is.
func (s *seat) writes() bool { return s.Mode == trimtab.Act && s.barred == "" }

// mode is that of what is done to its instances.
func (s *seat) mode() trimtab.Mode {
	if s.writes() {
		return trimtab.Act
	}
	return trimtab.Recommend
}

// shared reports whether what it has is a share by weight: the least that it has at every
// instant, while it has what others leave idle, too.
func (s *seat) shared() bool {
	return s.knobs.Shared()
}

// about names a resource in a reason, where there is more than one.
func (r *decision) about(resource int) string {
	if len(r.planner.resources) == 1 {
		return ""
	}
	return " of " + r.planner.resources[resource].Name
}

// draw sets the curve that the seat is planned by, at a load that is so cautious. serves: what
// waits counts, too.
func (s *seat) draw(caution float64, serves bool) {
	e := s.estimate
	if e == nil {
		return
	}
	if s.resource > 0 {
		s.curve = e.Curves[s.of.Name]
		return
	}
	s.curve = planned(e, caution)
	if s.starves() && s.curve != nil && len(s.curve.Knots) > 0 && s.curve.Eval(s.now).Mean >= s.SLO {
		// What was answered says that it is enough, and what waits that it is not.
		s.lo = max(s.lo, min(s.hi, policy.UpUnits(s.now, s.of.Unit)))
	}
	if b := e.Backlog; b != nil && serves && s.curve != nil && *b > 0 {
		s.curve = need.Behind(s.curve, *b/drain)
	}
}

// seatOf looks at the knobs of one resource. Its curve is not drawn yet.
func (r *decision) seatOf(w *workload, resource int) *seat {
	p := r.planner
	s := &seat{workload: w, found: found{dial: w.dials[resource], resource: resource, of: &p.resources[resource]}}
	if s.knobs, s.held = r.instances(w, resource); len(s.knobs) > 0 {
		s.look(p.scaleKnob(w), !p.cfg.Guard.Disabled, r.about(resource))
	}
	return s
}

// look finds out what its instances have, and what it may have. scale is the knob of their number,
// nil: there is none; guarded: nobody is lowered while an alert on it fires.
func (s *seat) look(scale *ledger.Knob, guarded bool, about string) {
	w, d, u := s.workload, s.dial, s.of.Unit
	s.now = s.knobs.Effective(func(i *instances.Instance) float64 { return i.Has })
	if s.resource == 0 {
		w.loan.Begins(s.now)
	}
	most := s.knobs.Effective(func(i *instances.Instance) float64 { return i.High })
	least := 0.0
	for i := range s.knobs {
		least = max(least, max(d.Min, s.knobs[i].Held.Min)/s.knobs[i].Share)
	}
	if s.shared() && len(s.knobs) > 1 { // load goes where it is served
		s.now, least = 0, 0
		for i := range s.knobs {
			s.now, least = s.now+s.knobs[i].Has, least+max(d.Min, s.knobs[i].Held.Min)
		}
	}
	if left := s.knobs.Left(); len(s.knobs) > 1 {
		most = min(most, s.of.Capacity, s.now+left)
	} else if !s.knobs.Unlimited() {
		most = min(most, s.now+left)
	}
	s.lo, s.hi = policy.UpUnits(least, u), policy.DownUnits(most, u)
	s.easy = s.hi
	s.bar()
	s.countable(scale)
	s.least = s.lo
	if s.firing() && guarded && !s.knobs.Unlimited() {
		// The guard would not lower it: what others get is planned without that.
		s.lo = min(max(s.lo, policy.DownUnits(s.now, u)), s.hi)
	}
	if w.estimate != nil && standsIn(w.estimate) {
		s.keep()
	}
	if s.held.Code == "" && s.lo > s.hi {
		s.held = trimtab.Held{Code: trimtab.HeldRange, Text: fmt.Sprintf("no whole unit of %v%s between %v and %v%s", u, about, least, most, aboveOf(s))}
	}
	s.grant = guard.Grant{Set: s.now}
}

// doubt returns why the estimate of a workload proves nothing; the zero Held: it
// does.
func (r *decision) doubt(w *workload) trimtab.Held {
	e := w.estimate
	switch {
	case e == nil:
		return trimtab.Held{Code: trimtab.HeldNoEstimate, Text: "no estimate"}
	case e.Hold != nil && !standsIn(e):
		return byEstimate(e, "")
	case e.Validate() != nil:
		return trimtab.Held{Code: trimtab.HeldInvalid, Text: "estimate: not a number"}
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))}
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: "estimate: from the future: check the clocks"}
	}
	return trimtab.Held{}
}

// byEstimate is the hold of an estimate as that of a plan, with what there is to
// add.
func byEstimate(e *trimtab.Estimate, more string) trimtab.Held {
	h := *e.Hold
	if h.Code == "" {
		h.Code = trimtab.HeldOther // whatever it is: an empty code is that of nobody held
	}
	h.Text = "estimate: " + h.Text + more
	return h
}

// standsIn reports whether a declared fallback makes the curve while input is
// missing.
func standsIn(e *trimtab.Estimate) bool { return e.Hold != nil && e.Fallback != "" && e.Curve != nil }

// keep makes what the seat has its least: what stands in for missing input may
// raise, not lower.
func (s *seat) keep() {
	floor := policy.UpUnits(s.now, s.of.Unit)
	if s.held.Code == "" && (floor > s.hi || s.knobs.Unlimited()) {
		s.held = byEstimate(s.estimate, ": it has its maximum")
	}
	s.lo = max(s.lo, min(s.hi, floor))
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
