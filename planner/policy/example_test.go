package policy_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/plantest"
	"github.com/trimtab/trimtab/planner/policy"
)

// Priority is a policy: the workload with the greatest weight is served first,
// up to its demand, then the next.
type Priority struct{}

// Name is what the configuration would call it.
func (Priority) Name() string { return "priority" }

// Traits claim nothing that the planner could rely on.
func (Priority) Traits() policy.Traits { return policy.Traits{} }

// Solve gives everybody its minimum, and what is left by weight, then by name.
func (Priority) Solve(p *policy.Problem) (policy.Solution, error) {
	if err := p.Validate(); err != nil { // it knows no hosts
		return policy.Solution{}, err
	}
	s := policy.Solution{Units: make([]int, len(p.Workloads)), Binding: make([]trimtab.Binding, len(p.Workloads))}
	left, order := p.Units, make([]int, len(p.Workloads))
	for i, w := range p.Workloads {
		order[i], s.Units[i] = i, w.Min
		left -= w.Min
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p.Workloads[j].Weight, p.Workloads[i].Weight) })
	served := 0
	for _, i := range order {
		w := &p.Workloads[i]
		want, why := w.Demand, codes.BindingDemand
		if w.Curve == nil { // unknown: it keeps what it has
			want, why = w.Current, codes.BindingUnknown
		}
		if want >= w.Max {
			want, why = w.Max, codes.BindingMax
		}
		more := max(0, want-w.Min)
		if more > left {
			more, why = left, codes.BindingCapacity
		}
		left -= more
		s.Units[i] += more
		s.Binding[i].Kind = why
		if s.Units[i] >= want {
			served++
		}
	}
	// The value is the share of the workloads that have what they demand.
	if n := len(p.Workloads); n > 0 {
		s.Value = float64(served) / float64(n)
	}
	s.Bound = s.Value
	return s, nil
}

func TestPriorityMeetsTheContractOfPolicies(t *testing.T) {
	plantest.Run(t, plantest.Suite{New: func() policy.Policy { return Priority{} }})
}

func ExamplePolicy() {
	known := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0, Band: trimtab.Band{}}, {Allocation: 4, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}},
	}}
	p := &policy.Problem{Units: 6, Unit: 1, Workloads: []policy.Workload{
		{Name: "report", Weight: 1, Min: 1, Max: 6, Current: 3, Curve: known, SLO: 0.9, Demand: 4},
		{Name: "shop", Weight: 2, Min: 1, Max: 6, Current: 3, Curve: known, SLO: 0.9, Demand: 4},
	}}
	var o policy.Policy = Priority{}
	s, err := o.Solve(p)
	fmt.Println(s.Units, s.Binding[0].Kind, s.Binding[1].Kind, err)
	// Output: [2 4] capacity demand <nil>
}
