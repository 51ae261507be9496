package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// maxMissing bounds the inputs that one answer names.
const maxMissing = 1000

// AddMissing adds the newest plan, and the missing inputs, the longest missing first.
func (v *Model) AddMissing(p *Pipeline) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.Inputs = []MissingInput{}
	if newest := v.plans.newest.Value; newest != nil {
		age := trimtab.SecondsOf(max(0, p.Time.Sub(newest.Time)))
		p.Plan, p.PlanAge = newest.ID(), &age
	}
	m := v.at(p.Time)
	for name, s := range v.workloads.all {
		for _, in := range s.missing {
			p.Inputs = append(p.Inputs, in)
		}
		if in := m.allMissing(s, v.began); in != nil {
			in.Workload = name
			p.Inputs = append(p.Inputs, *in)
		}
	}
	slices.SortFunc(p.Inputs, func(a, b MissingInput) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Workload, b.Workload), strings.Compare(a.Input, b.Input))
	})
	p.Inputs = p.Inputs[:min(len(p.Inputs), maxMissing)]
}

// allMissing returns an entry for a workload without an estimate, or whose estimate holds it for a
// reason that no single input shows; nil: neither is true.
func (m *moment) allMissing(s *state, began time.Time) *MissingInput {
	if !s.declared {
		return nil
	}
	e := s.estimate.Value
	switch {
	case e == nil:
		return &MissingInput{Input: "estimate", Reason: "none yet", Since: began}
	case m.silent(s):
		return &MissingInput{Input: "estimate", Reason: "nothing from the analyzer", Since: e.Time}
	case e.Hold != nil && len(s.missing) == 0:
		return &MissingInput{Input: cmp.Or(e.Hold.Input, "estimate"), Source: e.Hold.Source, Reason: e.Hold.Text, Since: s.since.hold}
	}
	if d := m.main(s); d.problem() != "" && s.missing["allocation"].Reason == "" {
		return &MissingInput{Input: "allocation", Source: d.where(), Reason: d.problem(), Since: s.since.knob}
	}
	return nil
}
