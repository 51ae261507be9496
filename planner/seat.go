package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
)

// about names a resource in a reason, where there is more than one.
func (r *decision) about(resource int) string {
	if len(r.planner.resources) == 1 {
		return ""
	}
	return " of " + r.planner.resources[resource].Name
}

// seatOf looks at the knobs of one resource. Its curve is not drawn yet.
func (r *decision) seatOf(w *allocation.Workload, resource int) *allocation.Allocation {
	p := r.planner
	s := &allocation.Allocation{Workload: w, Found: allocation.Found{State: w.States[resource], Index: resource, Of: &p.resources[resource]}}
	if s.Knobs, s.Held = r.instances(w, resource); len(s.Knobs) > 0 {
		s.Look(p.scaleKnob(w), !p.cfg.Guard.Disabled, r.about(resource))
	}
	return s
}

// doubt returns why the estimate of a workload proves nothing; the zero Held: it
// does.
func (r *decision) doubt(w *allocation.Workload) trimtab.Held {
	e := w.Estimate
	switch {
	case e == nil:
		return trimtab.Held{Code: trimtab.HeldNoEstimate, Text: "no estimate"}
	case e.Hold != nil && !allocation.StandsIn(e):
		return allocation.HeldBy(e, "")
	case e.Validate() != nil:
		return trimtab.Held{Code: trimtab.HeldInvalid, Text: "estimate: not a number"}
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))}
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: trimtab.HeldOld, Text: "estimate: from the future: check the clocks"}
	}
	return trimtab.Held{}
}
