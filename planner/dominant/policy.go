package dominant

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// Policy is dominant resource fairness. It is exact, but for whole units.
type Policy struct{}

var _ policy.Policy = Policy{}

// Name returns "drf".
func (Policy) Name() string { return "drf" }

// Solve shares one resource: weighted max-min fairness.
func (p Policy) Solve(problem *policy.Problem) (policy.Solution, error) {
	if err := problem.ValidateHosts(); err != nil {
		return policy.Solution{}, err
	}
	problem, _ = hosts.Fold(problem)
	q := &policy.Question{Groups: problem.Groups, Stop: problem.Stop,
		Resources: []policy.Pooled{{Name: "capacity", Unit: problem.Unit, Capacity: math.Max(1, float64(problem.Units)), Units: problem.Units, Hosts: problem.Hosts}}}
	for i := range problem.Workloads {
		w := &problem.Workloads[i]
		q.Workloads = append(q.Workloads, policy.Claim{Name: w.Name, Group: w.Group, Weight: w.Weight,
			Wants: []policy.Want{{Min: w.Min, Max: w.Max, Current: w.Current, Demand: w.Demand, Guarantee: w.Guarantee, Parts: w.Parts}}})
	}
	shares, err := p.Share(q)
	if err != nil {
		return policy.Solution{}, err
	}
	s := policy.Solution{Value: shares.Value, Bound: shares.Value, Cut: shares.Cut}
	for i := range shares.Units {
		binding := shares.Binding[i][0]
		if binding.Kind == codes.BindingCapacity {
			binding.Detail = "" // there is one resource
		}
		s.Units, s.Binding = append(s.Units, shares.Units[i][0]), append(s.Binding, binding)
	}
	return s, nil
}

// Traits have Share.
func (p Policy) Traits() policy.Traits { return policy.Traits{Share: p.Share} }

// Share shares several resources.
func (Policy) Share(q *policy.Question) (policy.Shares, error) {
	if err := q.Validate(); err != nil {
		return policy.Shares{}, err
	}
	p := newPool(q)
	p.pass(func(t *tenant) float64 { return t.demand })
	p.pass(func(t *tenant) float64 { return t.most })
	return p.answer(), nil
}

// answer rounds the shares to whole units.
func (p *pool) answer() policy.Shares {
	s := policy.Shares{Value: 1, Units: make([][]int, len(p.tenants)), Binding: make([][]trimtab.Binding, len(p.tenants))}
	for i := range p.tenants {
		s.Units[i], s.Binding[i] = make([]int, len(p.q.Resources)), make([]trimtab.Binding, len(p.q.Resources))
	}
	for r := range p.q.Resources {
		p.round(r, s.Units)
	}
	for i := range p.tenants {
		t, w := &p.tenants[i], &p.q.Workloads[i]
		for r := range p.q.Resources {
			s.Binding[i][r].Kind = codes.BindingMax
			if t.bound >= 0 {
				s.Binding[i][r] = p.binding(t.bound)
			}
			if d := w.Wants[r].Demand; d > 0 {
				s.Value = math.Min(s.Value, float64(s.Units[i][r])/float64(d))
			}
		}
	}
	return s
}

// binding says which row stopped a tenant.
func (p *pool) binding(row int) trimtab.Binding {
	of := &p.rows[row]
	if row >= len(p.q.Resources) {
		return trimtab.Binding{Kind: codes.BindingHost, Detail: of.host}
	}
	return trimtab.Binding{Kind: codes.BindingCapacity, Detail: p.q.Resources[of.resource].Name}
}
