package view

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Difference compares a workload's allocation of a resource with where the solver wants
// it.
type Difference struct {
	Workload string         `json:"workload"`
	Resource string         `json:"resource"`
	Mode     trimtab.Mode   `json:"mode"`
	Now      trimtab.Amount `json:"now"`
	Next     trimtab.Amount `json:"next"`
	// Target is the solver's; of several instances Now, Next and Target are sums.
	Target  *float64        `json:"target,omitempty"`
	Binding trimtab.Binding `json:"binding,omitzero"`
	// Moves are the instances whose amount differs from the wanted one, in order of host and
	// instance, if the workload has several.
	Moves []Move `json:"moves,omitempty"`
}

// Differences returns the workloads whose allocation differs from their last decision, in order of
// workload and resource.
func (v *Model) Differences() []Difference {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	out := []Difference{}
	for _, s := range v.workloads.all {
		if len(s.newestOn) == 0 {
			continue
		}
		for _, resource := range s.resources() {
			if d := s.newestOn[resource]; d != nil {
				if x, differs := s.difference(d, s.held(resource, now)); differs {
					out = append(out, x)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return strings.Compare(a.Workload, b.Workload) })
	return out
}

// difference compares the workload's allocation with the one that a decision wanted.
func (s *state) difference(d *Decision, has held) (out Difference, differs bool) {
	a := &d.Action
	out = Difference{Workload: s.Name, Resource: a.Resource, Mode: a.Mode, Target: a.Why.Target, Binding: a.Why.Binding}
	switch has.instances {
	case 0:
		return out, false
	case 1:
		out.Now, out.Next = has.knob.Now, a.Set
		if set, ok := d.set(has.knob.Host, has.knob.Instance); ok {
			out.Next = set
		}
		wanted := out.Next
		if a.Why.Target != nil {
			wanted = trimtab.Units(*a.Why.Target)
		}
		return out, !out.Now.Equal(wanted, 1e-6)
	}
	for _, k := range s.knobs(a.Resource) {
		next := k.Now
		if set, ok := d.set(k.Host, k.Instance); ok && !k.Now.Equal(set, 1e-6) {
			next = set
			out.Moves = append(out.Moves, Move{Host: k.Host, Instance: k.Instance, Expect: k.Now, Set: set})
		}
		out.Now, out.Next = sum(out.Now, k.Now), sum(out.Next, next)
	}
	out.Now.Value, out.Next.Value = round9(out.Now.Value), round9(out.Next.Value)
	// Each instance has whole quanta of its share of the target.
	quanta := float64(has.instances) * max(trimtab.ResourceOf(a.Resource).Step, 1e-6)
	return out, len(out.Moves) > 0 || a.Why.Target != nil && !out.Now.Equal(trimtab.Units(*a.Why.Target), quanta)
}

// set returns the amount to which the decision sets an instance.
func (d *Decision) set(host, instance string) (trimtab.Amount, bool) {
	if len(d.Moves) == 0 {
		return d.Action.Set, d.Action.Host == host && d.Action.Instance == instance
	}
	for i := range d.Moves {
		if m := &d.Moves[i]; m.Host == host && m.Instance == instance {
			return m.Set, true
		}
	}
	return trimtab.Amount{}, false
}
