package dominant

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// Policy is dominant resource fairness. It is exact, but for whole units.
type Policy struct{}

var _ policy.Policy = Policy{}

// Name returns "drf".
func (Policy) Name() string { return "drf" }

// Solve shares one resource: weighted max-min fairness.
func (p Policy) Solve(problem *policy.Problem) (policy.Solution, error) {
	if err := problem.Validate(); err != nil {
		return policy.Solution{}, err
	}
	q := &policy.Question{Groups: problem.Groups, Stop: problem.Stop,
		Resources: []policy.Pooled{{Name: "capacity", Unit: problem.Unit, Capacity: math.Max(1, float64(problem.Units)), Units: problem.Units}}}
	for i := range problem.Workloads {
		w := &problem.Workloads[i]
		q.Workloads = append(q.Workloads, policy.Claim{Name: w.Name, Group: w.Group, Weight: w.Weight,
			Wants: []policy.Want{{Min: w.Min, Max: w.Max, Current: w.Current, Demand: w.Demand, Guarantee: w.Guarantee}}})
	}
	shares, err := p.Share(q)
	if err != nil {
		return policy.Solution{}, err
	}
	s := policy.Solution{Value: shares.Value, Bound: shares.Value, Cut: shares.Cut}
	for i := range shares.Units {
		binding := shares.Binding[i][0]
		if binding.Kind == trimtab.BindingCapacity {
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

// byLimit is the bound of a tenant that has all that it is to have.
const byLimit = -1

// tenant is one workload. All shares are parts of the capacities.
type tenant struct {
	weight float64
	group  int // its node in the tree
	// rate has the greatest entry 1; all are 0 for who demands nothing.
	rate, floor []float64
	// demand is the dominant share of the demand, most that of the maximum.
	demand, most float64
	// level is the dominant share so far, bound the resource that ended it.
	level float64
	bound int
}

// share returns what t has of resource r at its level.
func (t *tenant) share(r int) float64 { return math.Max(t.floor[r], t.level*t.rate[r]) }

// pool is a question on its way to an answer.
type pool struct {
	q       *policy.Question
	tenants []tenant
	tree    []node
}

func newPool(q *policy.Question) *pool {
	p := &pool{q: q}
	groups := p.grow()
	for i := range q.Workloads {
		w := &q.Workloads[i]
		t := tenant{weight: w.Weight, group: groups[w.Group], bound: byLimit, most: math.Inf(1),
			rate: make([]float64, len(q.Resources)), floor: make([]float64, len(q.Resources))}
		for r, of := range q.Resources {
			v := &w.Wants[r]
			d := float64(min(max(v.Demand, v.Min), v.Max)) / of.Capacity
			t.floor[r] = float64(v.Min) / of.Capacity
			t.rate[r] = d
			t.demand = math.Max(t.demand, d)
		}
		for r, of := range q.Resources {
			if t.demand > 0 {
				t.rate[r] /= t.demand
			}
			if t.rate[r] > 0 {
				t.most = math.Min(t.most, float64(w.Wants[r].Max)/of.Capacity/t.rate[r])
			}
		}
		if math.IsInf(t.most, 0) {
			t.most = 0
		}
		p.tenants = append(p.tenants, t)
	}
	p.guarantee()
	return p
}

// guarantee raises the floors to what is guaranteed, as far as it is demanded
// and, all guarantees of a resource in proportion, as far as there is room.
func (p *pool) guarantee() {
	for r, of := range p.q.Resources {
		floors := make([]float64, len(p.tenants))
		least, sum := 0.0, 0.0
		for i := range p.tenants {
			t := &p.tenants[i]
			d := t.demand * t.rate[r]
			floors[i] = math.Max(t.floor[r], math.Min(d, float64(p.q.Workloads[i].Wants[r].Guarantee)/of.Capacity))
		}
		p.guaranteeGroups(r, floors)
		for i := range p.tenants {
			least += p.tenants[i].floor[r]
			sum += floors[i] - p.tenants[i].floor[r]
		}
		room := float64(of.Units)/of.Capacity - least
		part := 1.0
		if sum > room {
			part = math.Max(0, room) / sum
		}
		for i := range p.tenants {
			t := &p.tenants[i]
			t.floor[r] += part * (floors[i] - t.floor[r])
		}
	}
}

// guaranteeGroups divides each group's guarantee of resource r among the
// workloads below it, by weight, as far as they demand it.
func (p *pool) guaranteeGroups(r int, floors []float64) {
	for _, g := range p.q.Groups {
		units := g.Guarantee
		if r > 0 {
			units = 0
			if r <= len(g.Others) {
				units = g.Others[r-1]
			}
		}
		if units <= 0 {
			continue
		}
		var below []int
		for i := range p.tenants {
			if p.below(p.tenants[i].group, g.Path) {
				below = append(below, i)
			}
		}
		level := waterline(float64(units)/p.q.Resources[r].Capacity, len(below), func(k int) (weight, most float64) {
			t := &p.tenants[below[k]]
			return t.weight, t.demand * t.rate[r]
		})
		for _, i := range below {
			t := &p.tenants[i]
			floors[i] = math.Max(floors[i], math.Min(level*t.weight, t.demand*t.rate[r]))
		}
	}
}

// waterline returns the greatest s with Σ min(s weight, most) <= sum.
func waterline(sum float64, n int, of func(int) (weight, most float64)) float64 {
	full := make([]bool, n)
	for {
		left, weights := sum, 0.0
		for k := range n {
			w, m := of(k)
			if full[k] {
				left -= m
			} else {
				weights += w
			}
		}
		if weights == 0 {
			return math.Inf(1)
		}
		s, again := math.Max(0, left)/weights, false
		for k := range n {
			if w, m := of(k); !full[k] && s*w > m {
				full[k], again = true, true
			}
		}
		if !again {
			return s
		}
	}
}

// room returns what is left of each resource, as a part of its capacity.
func (p *pool) room() []float64 {
	room := make([]float64, len(p.q.Resources))
	for r, of := range p.q.Resources {
		room[r] = float64(of.Units) / of.Capacity
		for i := range p.tenants {
			room[r] -= p.tenants[i].share(r)
		}
		room[r] = math.Max(0, room[r])
	}
	return room
}

// pass fills up to the given dominant shares.
func (p *pool) pass(limit func(*tenant) float64) {
	if len(p.tree) == 1 && p.drf(limit) {
		return
	}
	newFilling(p, limit).run()
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
			s.Binding[i][r].Kind = trimtab.BindingMax
			if t.bound >= 0 {
				s.Binding[i][r] = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: p.q.Resources[t.bound].Name}
			}
			if d := w.Wants[r].Demand; d > 0 {
				s.Value = math.Min(s.Value, float64(s.Units[i][r])/float64(d))
			}
		}
	}
	return s
}
