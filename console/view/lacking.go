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

// Lacking adds what the view knows: the newest plan, and which inputs are
// missing, longest first.
func (v *Model) Lacking(p *Pipeline) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.Inputs = []MissingInput{}
	if v.plan != nil {
		age := trimtab.SecondsOf(max(0, p.Time.Sub(v.plan.Time)))
		p.Plan, p.PlanAge = v.plan.ID(), &age
	}
	for name, s := range v.workloads {
		for _, m := range s.lacks {
			p.Inputs = append(p.Inputs, m)
		}
		if m := v.silent(s, p.Time); m != nil {
			m.Workload = name
			p.Inputs = append(p.Inputs, *m)
		}
	}
	slices.SortFunc(p.Inputs, func(a, b MissingInput) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Workload, b.Workload), strings.Compare(a.Input, b.Input))
	})
	p.Inputs = p.Inputs[:min(len(p.Inputs), maxMissing)]
}

// silent tells of a workload that the analyzer says nothing of, or whose
// estimate holds it for a reason that no single input shows; nil: neither.
func (v *Model) silent(s *state, now time.Time) *MissingInput {
	if !s.declared {
		return nil
	}
	e := s.estimate
	switch {
	case e == nil:
		return &MissingInput{Input: "estimate", Reason: "none yet", Since: v.began}
	case v.silentSince(e, now):
		return &MissingInput{Input: "estimate", Reason: "nothing from the analyzer", Since: e.Time}
	case e.Hold != nil && len(s.lacks) == 0:
		return &MissingInput{Input: cmp.Or(e.Hold.Input, "estimate"), Source: e.Hold.Source, Reason: e.Hold.Text, Since: s.holdSince}
	}
	if d := s.main(v.config.Resource, now); d.problem() != "" && s.lacks["allocation"].Reason == "" {
		return &MissingInput{Input: "allocation", Source: d.where(), Reason: d.problem(), Since: s.knobSince}
	}
	return nil
}
