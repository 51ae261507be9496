package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
)

// believe determines the current allocations of every workload, and why some cannot be planned for.
func (r *decision) believe() {
	for _, w := range r.planner.workloads {
		r.allocations = append(r.allocations, r.allocationsOf(w)...)
	}
	r.opens()
}

// allocationsOf returns the current allocations of one workload, one per resource, or none if its
// mode is off or a person released it. A workload is planned for in all resources or in none: while
// one resource is unknown, its measurements do not show how much it needs of another.
func (r *decision) allocationsOf(w *allocation.Workload) []*allocation.Allocation {
	if w.Mode == trimtab.Off || w.Released {
		if w.Released {
			r.heldBack[w.Name] = trimtab.Held{Code: codes.HeldReleased, Text: "released"}
		}
		return nil
	}
	if w.Fresh.IsZero() {
		w.Fresh = r.now
	}
	var allocations []*allocation.Allocation
	doubt, held := r.doubt(w), trimtab.Held{}
	for i, d := range w.States {
		if d == nil {
			continue
		}
		s := r.allocationOf(w, i)
		s.Draw(r.planner.traits.Caution, r.planner.serves())
		if s.Status.Held.Code == "" && doubt.Code == "" && s.Curve == nil {
			doubt = trimtab.Held{Code: codes.HeldNothingLearnt, Text: "estimate: nothing learnt yet" + r.about(i)}
		}
		if held.Code == "" {
			held = s.Status.Held
		}
		if len(s.Knobs) > 0 {
			allocations = append(allocations, s)
		}
	}
	if doubt.Code == "" {
		w.Fresh = r.now
	}
	if held.Code == "" {
		held = doubt
	}
	if held.Code != "" {
		r.heldBack[w.Name] = held
	} else if allocation.StandsIn(w.Estimate) {
		r.heldBack[w.Name] = allocation.HeldBy(w.Estimate, "")
	}
	for _, s := range allocations {
		if s.Status.Free, s.Status.Held = held.Code == "", held; s.Status.Free {
			s.Demand(r.planner.cfg.Beta)
		}
	}
	return allocations
}

// about returns " of RESOURCE" to append to a reason if the pool has several resources, else "".
func (r *decision) about(resource int) string {
	if len(r.planner.resources) == 1 {
		return ""
	}
	return " of " + r.planner.resources[resource].Name
}

// allocationOf reads the knobs of one resource of a workload. The result has no curve yet.
func (r *decision) allocationOf(w *allocation.Workload, resource int) *allocation.Allocation {
	p := r.planner
	s := &allocation.Allocation{Workload: w, State: w.States[resource], Index: resource, Resource: &p.resources[resource]}
	if s.Knobs, s.Status.Held = r.instances(w, resource); len(s.Knobs) > 0 {
		s.Look(p.scaleKnob(w), !p.cfg.Guard.Disabled, r.about(resource))
	}
	return s
}

// doubt returns why the estimate of a workload cannot be used, or the zero Held if it can.
func (r *decision) doubt(w *allocation.Workload) trimtab.Held {
	e := w.Estimate
	switch {
	case e == nil:
		return trimtab.Held{Code: codes.HeldNoEstimate, Text: "no estimate"}
	case w.Unobserved() && !allocation.StandsIn(e):
		return allocation.HeldBy(e, "")
	case e.Validate() != nil:
		return trimtab.Held{Code: codes.HeldInvalid, Text: "estimate: not a number"}
	case r.now.Sub(e.Time) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: codes.HeldOld, Text: fmt.Sprintf("estimate: %v old", r.now.Sub(e.Time).Round(time.Second))}
	case e.Time.Sub(r.now) > r.planner.cfg.StaleAfter:
		return trimtab.Held{Code: codes.HeldOld, Text: "estimate: from the future: check the clocks"}
	}
	return trimtab.Held{}
}
