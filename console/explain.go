package console

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Explanation is why a workload has what it has.
type Explanation struct {
	Workload     string                `json:"workload"`
	Decision     string                `json:"decision"`
	Epoch        uint64                `json:"epoch"`
	Plan         string                `json:"plan"`
	Time         time.Time             `json:"time,omitzero"`
	Cause        string                `json:"cause,omitempty"`
	Inputs       []trimtab.Input       `json:"inputs"`
	Model        string                `json:"model"`
	Bounds       []float64             `json:"bounds"`
	Demand       *float64              `json:"demand,omitempty"`
	Target       *float64              `json:"target,omitempty"`
	Utility      *float64              `json:"utility,omitempty"`
	Binding      string                `json:"binding"`
	Alternatives []trimtab.Alternative `json:"alternatives"`
	NextCheck    time.Time             `json:"next_check,omitzero"`
	Result       *trimtab.Result       `json:"result,omitempty"`
	Before       *trimtab.Amount       `json:"before,omitempty"`
	Set          *trimtab.Amount       `json:"set,omitempty"`
	Mode         trimtab.Mode          `json:"mode"`
	State        string                `json:"state"`
	Resource     string                `json:"resource,omitempty"`
	SLO          string                `json:"slo,omitempty"`
	SLOTarget    *float64              `json:"slo_target,omitempty"`
	Performance  *float64              `json:"performance,omitempty"`
	Share        bool                  `json:"performance_is_share,omitempty"`
	Allocation   *trimtab.Amount       `json:"allocation,omitempty"`
	Baseline     *trimtab.Amount       `json:"baseline,omitempty"`
	Knob         string                `json:"knob,omitempty"`
	Curve        *trimtab.Curve        `json:"curve,omitempty"`
	Reports      int                   `json:"reports"`
	History      []*Decision           `json:"history,omitempty"`

	latest *Decision
}

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
