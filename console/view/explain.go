package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// Explain returns the last decision on a workload, with up to history earlier ones, or why there is
// none. ok is false for an unknown workload.
func (v *Model) Explain(workload string, history int, now time.Time) (e Explanation, ok bool) {
	return v.ExplainWith(workload, history, 0, now)
}

// ExplainWith is Explain, with up to observations observations beside the curve.
func (v *Model) ExplainWith(workload string, history, observations int, now time.Time) (e Explanation, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[workload]
	if s == nil {
		return e, false
	}
	m := v.at(now)
	row := m.row(s)
	e = Explanation{Workload: workload, Evidence: Evidence{Inputs: []trimtab.Input{}, Signals: v.batch.signalsOf(workload, now)},
		Choice:    Choice{Bounds: []float64{}, Binding: trimtab.Binding{Kind: codes.BindingNone}, Alternatives: []trimtab.Alternative{}, Mode: s.Mode},
		Condition: m.condition(s, &row), Holds: m.holds(s, &row), Learnt: m.learnt(s, &row, observations)}
	if row.Code == Discovered {
		e.Draft, _ = Draft(&row, DraftKnob{})
	}
	if s.estimate.Value != nil {
		e.Inputs, e.Counters, e.Model = s.inputs(now), s.estimate.Value.CountersAt(now), s.estimate.Value.Model
	}
	m.decision(&e, s, &row)
	if history > 0 {
		e.History = m.earlier(s, row.Decision, history)
	}
	return e, true
}

// condition returns how the workload is now.
func (m *moment) condition(s *state, row *Row) Condition {
	return Condition{Class: s.Class, Code: row.Code, State: row.State, Kind: row.Kind, Since: row.Since, Notes: row.Notes, Resource: cmp.Or(m.main(s).resource, m.resource),
		SLO: row.SLO, SLOTarget: row.SLOTarget, Performance: row.Performance, Share: row.Share, Budget: s.budget(m.round, m.now), Shed: row.Shed, MemoryAlone: s.MemoryAlone, Alarms: slices.Clone(s.alarms)}
}

// holds returns the workload's allocation.
func (m *moment) holds(s *state, row *Row) Holds {
	h := Holds{Instances: row.Instances, Hosts: row.Hosts, Knob: row.Knob, Host: row.Host}
	d := m.main(s)
	h.Allocation, h.Total, h.Pending = d.amounts()
	if d.instances == 1 {
		h.Least, h.Most = &d.knob.Min, &d.knob.Max
	}
	if h.Knobs, h.Omitted = s.instances(m.now); len(h.Knobs) <= len(s.resources()) {
		h.Knobs = nil // a single knob is shown elsewhere
	}
	if d.instances > 0 {
		h.ReadOnly = d.knob.ReadOnly
	}
	for _, r := range s.resources() { // such as the number of instances, beside their size
		if o := s.held(r, m.now); h.ReadOnly == "" && o.instances > 0 {
			h.ReadOnly = o.knob.ReadOnly
		}
	}
	if h.Fast = s.fast(); h.Fast != nil && s.estimate.Value != nil {
		h.Fast.Fixed = s.estimate.Value.Fixed
	}
	if h.Allocation != nil {
		h.Baseline = &d.baseline
	}
	return h
}

// learnt returns what the analyzer knows of the workload.
func (m *moment) learnt(s *state, row *Row, observations int) Learnt {
	l := Learnt{Reports: row.Reports, Observations: s.observations(min(max(observations, 0), MaxObservations))}
	if s.estimate.Value != nil {
		l.Curve, l.Forecast, l.LoadAge, l.LoadStale = s.estimate.Value.Curve, s.estimate.Value.Load, row.LoadAge, row.LoadStale
		l.Memory = memoryOf(s.estimate.Value.Memory)
	}
	l.Contributions = s.contributions.Fresh(m.now, max(contributionsLast, 3*m.round))
	return l
}

// decision sets the newest decision, or why there is none.
func (m *moment) decision(e *Explanation, s *state, row *Row) {
	held, isHeld := m.plans.heldNow(s)
	switch {
	case row.Decision != nil:
		if e.fill(row.Decision.shown(m.now, m.round)); s.MemoryAlone && s.Target == 0 {
			e.Effect = nil // of a performance that nobody measures
		}
	case !s.declared:
		e.Decision = "none: found in the spans, not in the configuration; add it under workloads to plan for it"
	case s.Mode == trimtab.Off:
		e.Decision = "none: mode is off"
	case isHeld:
		e.Decision = "hold: " + held.Text
	case row.Code == codeOK && s.MemoryAlone:
		e.Decision = "hold: its limit is what it needs, and the margin"
	case row.Code != codeOK && row.Code != codeMisses:
		e.Decision = "hold: " + row.State
	case s.kept.stayIn == m.plans.round && s.kept.stayWhy != "":
		e.Decision = "not moved: " + s.kept.stayWhy
	default:
		e.Decision = "hold: nothing better was found"
	}
	if row.Decision != nil && !isHeld && s.kept.stayIn == m.plans.round && s.kept.stayAt.After(row.Decision.Time) {
		e.Kept = true
		e.Decision = "not moved in the newest round: " + s.kept.stayWhy + " (last change: " + e.Decision + ")"
		if s.estimate.Value != nil {
			e.Inputs = s.inputs(m.now)
		}
	}
	if !e.NextCheck.IsZero() && e.NextCheck.Before(m.now) {
		e.NextCheck = m.plans.roundAt.Add(m.round)
	}
	why := ""
	switch { // held since that decision: by a plan, or by an estimate that no plan knows yet
	case row.Decision == nil:
	case isHeld && s.kept.heldAt.After(row.Decision.Time):
		why = held.Text
	case !isHeld && row.Code == codeHeld && !s.since.hold.Before(row.Decision.Time):
		why = s.estimate.Value.Hold.Text
	}
	if why != "" {
		e.Kept = true
		e.Decision = "hold: " + why + " (before that: " + e.Decision + ")"
		if s.estimate.Value != nil {
			e.Inputs = s.inputs(m.now)
		}
	}
}

// earlier are the decisions but the latest, newest first.
func (m *moment) earlier(s *state, latest *Decision, most int) (out []*Decision) {
	for d := range s.backward() {
		if len(out) == most {
			break
		}
		if d != latest {
			out = append(out, d.shown(m.now, m.round))
		}
	}
	return out
}

// inputs returns the inputs of the newest estimate, with their ages at now.
func (s *state) inputs(now time.Time) []trimtab.Input { return s.estimate.Value.InputsAt(now) }

func (e *Explanation) fill(d *Decision) {
	w := &d.Action.Why
	e.Decision, e.Epoch, e.Plan, e.Time, e.Cause = w.Summary, d.Epoch, d.Plan, d.Time, *d.Cause
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
	e.Changed = d.Action.Resource
	e.Result, e.Effect, e.Before, e.Set, e.Moves, e.Mode = d.Result, d.Effect, &d.Action.Expect, &d.Action.Set, d.Moves, d.Action.Mode
}
