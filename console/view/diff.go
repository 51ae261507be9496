package view

import (
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// Difference is one knob's current value against where the solver wants it.
type Difference struct {
	Workload string          `json:"workload"`
	Resource string          `json:"resource"`
	Mode     trimtab.Mode    `json:"mode"`
	Now      trimtab.Amount  `json:"now"`
	Next     trimtab.Amount  `json:"next"`
	Target   *float64        `json:"target,omitempty"`
	Binding  trimtab.Binding `json:"binding,omitzero"`
}

// Differences returns the knobs that are not where the last decision on them
// wanted them, in order of workload and resource.
func (v *Model) Differences() []Difference {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := []Difference{}
	for name, s := range v.workloads {
		for _, resource := range sortedKeys(s.held) {
			held, d := s.held[resource], s.newestOn[resource]
			if d == nil {
				continue
			}
			a := &d.Action
			wanted := a.Set
			if t := a.Why.Target; t != nil {
				wanted = trimtab.Units(*t)
			}
			if held.Now.Equal(wanted, 1e-6) {
				continue
			}
			out = append(out, Difference{Workload: name, Resource: a.Resource, Mode: a.Mode, Now: held.Now, Next: a.Set, Target: a.Why.Target, Binding: a.Why.Binding})
		}
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return strings.Compare(a.Workload, b.Workload) })
	return out
}
