package console

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Explain tells the last decision on a workload, with up to history earlier
// ones, or why there is none. ok is false for a workload that nobody named.
func (v *View) Explain(workload string, history int, now time.Time) (e Explanation, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads[workload]
	if s == nil {
		return e, false
	}
	row := s.row(now, v.config.Round)
	e = Explanation{Workload: workload, Mode: s.Mode, State: row.State, Binding: "none",
		Inputs: []trimtab.Input{}, Bounds: []float64{}, Alternatives: []trimtab.Alternative{},
		Resource: v.config.Resource, SLO: row.SLO, SLOTarget: row.SLOTarget, Performance: row.Performance, Share: row.Share,
		Allocation: row.Allocation, Knob: row.Knob, Reports: row.Reports}
	if s.estimate != nil {
		e.Inputs, e.Model, e.Curve = s.inputs(now), s.estimate.Model, s.estimate.Curve
	}
	if s.held != nil && row.Allocation != nil {
		e.Baseline = &s.held.Baseline
	}
	n := len(s.decisions)
	switch {
	case n > 0:
		e.fill(s.decisions[n-1])
	case !s.declared:
		e.Decision = "none: found in the spans, not in the configuration; add it under workloads to plan for it"
	case s.Mode == trimtab.Off:
		e.Decision = "none: mode is off"
	case s.heldWhy != "":
		e.Decision = "hold: " + s.heldWhy
	case row.State != stateOK && row.State != stateMisses:
		e.Decision = "hold: " + row.State
	default:
		e.Decision = "hold: nothing better was found"
	}
	if n > 0 && s.heldWhy != "" && s.heldAt.After(s.decisions[n-1].Time) {
		e.Decision = "hold: " + s.heldWhy + " (before that: " + e.Decision + ")"
		if s.estimate != nil {
			e.Inputs = s.inputs(now)
		}
	}
	if history > 0 && n > 1 {
		e.History = slices.Clone(s.decisions[max(0, n-1-history) : n-1])
		slices.Reverse(e.History)
	}
	return e, true
}

// inputs are those of the newest estimate, as old as they are at now.
func (s *state) inputs(now time.Time) []trimtab.Input {
	in := append([]trimtab.Input{}, s.estimate.Inputs...)
	for i := range in {
		in[i].Age = max(0, in[i].Age+trimtab.SecondsOf(now.Sub(s.estimate.Time)))
	}
	return in
}

func (e *Explanation) fill(d *Decision) {
	w := &d.Action.Why
	e.latest = d
	e.Decision, e.Epoch, e.Plan, e.Time, e.Cause = w.Summary, d.Epoch, d.Plan, d.Time, d.Cause
	if len(w.Inputs) > 0 {
		e.Inputs = w.Inputs
	}
	if w.Model != "" {
		e.Model = w.Model
	}
	if w.Bounds != nil {
		e.Bounds = []float64{w.Bounds.Lower, w.Bounds.Upper}
	}
	e.Demand, e.Target, e.Utility, e.Binding, e.NextCheck = w.Demand, w.Target, w.Utility, w.Binding, w.NextCheck
	if w.Alternatives != nil {
		e.Alternatives = w.Alternatives
	}
	e.Result, e.Before, e.Set, e.Mode = d.Result, &d.Action.Expect, &d.Action.Set, d.Action.Mode
}
