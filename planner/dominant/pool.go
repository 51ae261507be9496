package dominant

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// byLimit is the bound of a tenant that has reached its limit.
const byLimit = -1

// tenant is one workload. All shares are fractions of the capacities.
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

// pool is a question under solution.
type pool struct {
	q       *policy.Question
	tenants []tenant
	tree    []node
	// rows are the constraints: one for the budget of each resource, in their
	// order, then one for each resource of each host that may become full.
	rows []row
	// headroom are the hosts by resource, nil where they bound nothing beyond the budget; their rows
	// are those of the pool from first on.
	headroom []*hosts.Headroom
	first    []int
}

// row is one constraint: Σ_i share·allocation_ir <= units.
type row struct {
	resource int
	units    float64
	host     string
}

func newPool(q *policy.Question) *pool {
	p := &pool{q: q}
	p.locate()
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

// locate lays out the rows. If the hosts of a resource bound nothing beyond a number of units, it
// is treated as without hosts.
func (p *pool) locate() {
	q, m := *p.q, len(p.q.Resources)
	q.Resources = slices.Clone(q.Resources)
	p.rows, p.headroom, p.first = make([]row, m), make([]*hosts.Headroom, m), make([]int, m)
	for r := range q.Resources {
		of := &q.Resources[r]
		if len(of.Hosts) > 0 {
			of.Units, p.headroom[r] = p.fold(r)
		}
		p.rows[r] = row{resource: r, units: float64(of.Units)}
		if p.first[r] = len(p.rows); p.headroom[r] == nil {
			continue
		}
		for k, units := range p.headroom[r].Left {
			p.rows = append(p.rows, row{r, units, p.headroom[r].Host(k)})
		}
	}
	p.q = &q
}

// fold returns the units of a resource and its hosts, nil where they say no more.
func (p *pool) fold(r int) (units int, room *hosts.Headroom) {
	all := p.q.Of(r)
	some := *all
	some.Workloads = make([]policy.Workload, 0, len(all.Workloads))
	for i := range all.Workloads {
		if all.Workloads[i].Max > 0 { // the others have no knob for it
			some.Workloads = append(some.Workloads, all.Workloads[i])
		}
	}
	folded, ok := hosts.Fold(&some)
	if ok {
		return folded.Units, nil
	}
	return folded.Units, hosts.New(all)
}

// parts returns what one unit of resource r uses of its hosts for tenant i, by row of
// [pool.rooms].
func (p *pool) parts(i, r int) []hosts.Part {
	if p.headroom[r] == nil {
		return nil
	}
	return p.headroom[r].Parts(i)
}

// room returns what is left of each row, as a fraction of the resource's capacity.
func (p *pool) room() []float64 {
	room := make([]float64, len(p.rows))
	for k, of := range p.rows {
		room[k] = of.units / p.q.Resources[of.resource].Capacity
	}
	for r := range p.q.Resources {
		for i := range p.tenants {
			share := p.tenants[i].share(r)
			room[r] -= share
			for _, part := range p.parts(i, r) {
				room[p.first[r]+int(part.Row)] -= part.Share * share
			}
		}
	}
	for k := range room {
		room[k] = math.Max(0, room[k])
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
