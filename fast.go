package trimtab

import (
	"github.com/trimtab/trimtab/internal/valid"
)

// Fast is what a host's fast loop does with one knob, inside the envelope of a plan.
// KnobState.Now is then the target: what the planner chose, at what curves are learnt, and what
// the next plan expects.
type Fast struct {
	Envelope Envelope `json:"envelope"`
	// Set is the value last read; Low and High bound its values in about the last ten seconds.
	Set  float64 `json:"set"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Demand is the rate at which work came lately, in the resource's unit.
	Demand float64 `json:"demand,omitempty"`
	// Totals since this life of the agent began. Differences give the mean of any time, and a
	// lost message costs nothing: Granted, Lent (below the target) and Borrowed (above it) in
	// core-seconds, Stalled in seconds in which the quota throttled it.
	Granted  float64 `json:"granted_core_s,omitempty"`
	Lent     float64 `json:"lent_core_s,omitempty"`
	Borrowed float64 `json:"borrowed_core_s,omitempty"`
	Stalled  float64 `json:"stalled_s,omitempty"`
	Writes   int     `json:"writes,omitempty"`
	// From is how much of Borrowed came from which workload, in core-seconds; the rest came from
	// unallocated capacity.
	From map[string]float64 `json:"from,omitempty"`
	// Ask asks for a round; nil: nothing does.
	Ask *FastAsk `json:"ask,omitempty"`
	// Off is empty, or why the loop leaves the knob at its target.
	Off string `json:"off,omitempty"`
}

// FastAsk is a round that a host asks for.
type FastAsk struct {
	// Number counts those of the knob, from 1: one that is heard again is no news.
	Number int `json:"number"`
	// Cause is why: a loan that lasts, a host that has no room, or one that is full.
	Cause string `json:"cause"`
	// Lasts is how long that has been so, Want what the knob would have.
	Lasts Seconds `json:"lasts_s"`
	Want  float64 `json:"want"`
}

// validate checks names and amounts.
func (f *Fast) validate(what string) error {
	if err := f.Envelope.Validate(); err != nil {
		return err
	}
	for _, v := range []float64{f.Set, f.Low, f.High, f.Demand, f.Granted, f.Lent, f.Borrowed, f.Stalled, float64(f.Writes)} {
		if err := valid.NonNegative("fast loop of "+what, v); err != nil {
			return err
		}
	}
	if len(f.From) > maxInputs {
		return Invalidf("fast loop of %.300s: %d lenders, limit %d", what, len(f.From), maxInputs)
	}
	for name, v := range f.From {
		if err := valid.Named("lender of "+what, name); err != nil {
			return err
		}
		if err := valid.NonNegative("lender of "+what, v); err != nil {
			return err
		}
	}
	if a := f.Ask; a != nil {
		if err := valid.Texts("fast loop of "+what, a.Cause); err != nil {
			return err
		}
		for _, v := range []float64{float64(a.Number), float64(a.Lasts), a.Want} {
			if err := valid.NonNegative("ask of "+what, v); err != nil {
				return err
			}
		}
	}
	return valid.Texts("fast loop of "+what, f.Off)
}
