package view

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
	"github.com/trimtab/trimtab/quantity"
)

// This file limits the memory that a faulty peer can use, and its effect on the view of other
// peers.

// invented is the largest length of a list kept for a workload that is not configured.
const invented = 8

// room returns how many resources, or inputs, are kept for a workload.
func (s *state) room() int {
	if s.declared {
		return trimtab.MaxResources
	}
	return min(trimtab.MaxResources, invented)
}

// shown returns the part of an estimate that is kept: little of it for a workload that is not
// configured.
func (s *state) shown(e *trimtab.Estimate) *trimtab.Estimate {
	if s.declared && e.Curves == nil && e.Allocations == nil {
		return e // all of it
	}
	out := *e
	out.Curves, out.Allocations = nil, nil
	if s.declared {
		return &out
	}
	out.Model, out.Fallback, out.Hold = brief(e.Model), brief(e.Fallback), nil // it is not planned
	if h := e.Hold; h != nil && h.Input == string(quantity.Load) {
		out.Hold = &trimtab.Held{Code: h.Code, Input: string(quantity.Load)} // its load is stale
	}
	out.Shares, out.Counters, out.Refused = nil, nil, nil
	if refused := e.Shed(); refused > 0 {
		out.Refused = map[string]float64{"all": refused}
	}
	out.Inputs = slices.Clone(e.Inputs[:min(len(e.Inputs), invented)])
	for i := range out.Inputs {
		in := &out.Inputs[i]
		in.Name, in.Source, in.Missing = brief(in.Name), brief(in.Source), brief(in.Missing)
	}
	return &out
}

// brief is a text that people still read.
func brief(text string) string { return newest.Brief(text) }

// ahead reports whether a time is of a clock that is too far in the future.
func ahead(t time.Time) bool { return time.Until(t) > newest.Ahead }

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// earlier is t less an age, or t itself where no calendar has that.
func earlier(t time.Time, age trimtab.Seconds) time.Time {
	out := t.Add(-age.Duration())
	if out != printable(out) {
		return t
	}
	return out
}

// printable is the nearest time that JSON can hold.
func printable(t time.Time) time.Time {
	switch year := t.Year(); {
	case year < 1:
		return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	case year > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// cost is about how many bytes a decision takes of its own: words that
// decisions share are not counted.
func (d *Decision) cost() int {
	w := &d.Action.Why
	n := 620 + 100*len(w.Inputs) + 40*len(w.Alternatives) + own(d.Cause.Ref) + own(d.Cause.Text) + own(d.Action.Host) + own(w.Summary) + own(w.Model) + own(w.Binding.Detail)
	for i := range d.Moves {
		n += 180 + own(d.Moves[i].Reason)
	}
	for i := range w.Inputs {
		n += own(w.Inputs[i].Name) + own(w.Inputs[i].Source) + own(w.Inputs[i].Missing)
	}
	for i := range w.Alternatives {
		n += own(w.Alternatives[i].Why)
	}
	return n
}

// own is the length of a text that is not shared.
func own(text string) int {
	if len(text) <= maxWord {
		return 0
	}
	return len(text)
}

// outcomeCost is about how many bytes an outcome takes.
func outcomeCost(o *trimtab.Outcome) int {
	n := 200 + len(o.Host) + len(o.Refused)
	for i := range o.Results {
		n += 250 + len(o.Results[i].Workload) + len(o.Results[i].Reason)
	}
	return n
}

// clone is a result alone, without the list it came in, of the knob of that name.
func clone(r *trimtab.Result, id trimtab.KnobID) *trimtab.Result {
	out := *r
	out.KnobID = id
	out.Reason = brief(out.Reason)
	return &out
}
