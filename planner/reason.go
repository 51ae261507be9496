package planner

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// reason says why a workload gets what it gets.
func (r *decision) reason(s *seat) trimtab.Reason {
	u := r.planner.cfg.Unit
	why := trimtab.Reason{NextCheck: r.planner.next, Binding: s.binding}
	if e := s.estimate; e != nil {
		why.Inputs, why.Model = aged(e, r.now.Sub(e.Time).Seconds()), e.Model
	}
	set := s.grant.Set
	if !s.free {
		why.Binding = "default"
		why.Summary = fmt.Sprintf("%s: raised from %s to %v, towards its declared default, because nothing is known of it: %s",
			s.Name, s.entry.held.Now, trimtab.Units(set), s.held)
		return why
	}
	target := float64(s.aim) * u
	why.Target = &target
	b := s.estimate.Curve.Eval(set)
	why.Bounds = &b
	utility := clampUnit(s.Utility(b.Mean))
	why.Utility = &utility
	if s.need.Mean >= 0 {
		d := float64(s.need.Mean) * u
		why.Demand = &d
	}
	switch {
	case s.grant.Binding != "":
		why.Binding = s.grant.Binding
	case set != target:
		why.Binding = fmt.Sprintf("step: at most %d units of %v a round", r.planner.cfg.Step, u)
	case why.Binding == "":
		why.Binding = "none"
	}
	verb := "raised"
	if set < s.now {
		verb = "lowered"
	}
	why.Summary = fmt.Sprintf("%s: %s from %s to %v: %s wants %v, where performance is expected to be %.3g (%.3g to %.3g) for an SLO of %.3g",
		s.Name, verb, s.entry.held.Now, trimtab.Units(set), r.planner.cfg.Policy.Name(), trimtab.Units(target), b.Mean, b.Lower, b.Upper, s.SLO)
	return why
}

// aged returns the inputs of an estimate as old as they are by now.
func aged(e *trimtab.Estimate, seconds float64) []trimtab.Input {
	in := make([]trimtab.Input, len(e.Inputs))
	copy(in, e.Inputs)
	for i := range in {
		in[i].Age = max(0, in[i].Age+trimtab.Seconds(seconds))
	}
	return in
}

func clampUnit(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, 1)
}
