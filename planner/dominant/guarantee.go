package dominant

import (
	"math"

	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// guarantee raises the floors to the guarantees, as far as these are demanded and, all guarantees
// of a resource in proportion, as far as they fit: where a host is full the tenants on it stop,
// and the others continue.
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
		if p.headroom[r] != nil {
			p.guaranteeOn(r, floors)
			continue
		}
		for i := range p.tenants {
			least += p.tenants[i].floor[r]
			sum += floors[i] - p.tenants[i].floor[r]
		}
		room := float64(of.Units)/of.Capacity - least
		part := 1.0
		if sum > 0 && sum > room { // the least of all may be a rounding more than there is
			part = math.Max(0, room) / sum
		}
		for i := range p.tenants {
			t := &p.tenants[i]
			t.floor[r] += part * (floors[i] - t.floor[r])
		}
	}
}

// guaranteeOn raises the floors of resource r over hosts: by a separate filling, in which a
// tenant rises by what it lacks of its guarantee.
func (p *pool) guaranteeOn(r int, floors []float64) {
	of, room := p.q.Resources[r], p.room()
	some := &pool{q: &policy.Question{Resources: []policy.Pooled{of}}, tenants: make([]tenant, len(p.tenants)), tree: []node{{parent: -1, weight: 1}},
		rows: []row{{units: room[r] * of.Capacity}}, headroom: []*hosts.Headroom{p.headroom[r]}, first: []int{1}}
	for k := range p.headroom[r].Left {
		some.rows = append(some.rows, row{units: room[p.first[r]+k] * of.Capacity})
	}
	for i := range p.tenants {
		lacks := floors[i] - p.tenants[i].floor[r]
		if some.tenants[i] = (tenant{weight: 1, rate: []float64{0}, floor: []float64{0}}); lacks > 0 {
			some.tenants[i] = tenant{weight: lacks, rate: []float64{1}, floor: []float64{0}, demand: lacks}
		}
	}
	some.pass(func(t *tenant) float64 { return t.demand })
	for i := range p.tenants {
		p.tenants[i].floor[r] += some.tenants[i].level
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
