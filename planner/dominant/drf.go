package dominant

import (
	"math"

	"github.com/trimtab/trimtab/planner/drf"
)

// drf fills with the solver for millions of tenants, which supports no floors, and reports
// whether its answer is valid. It is if every floor lies below it: floors that are reached in the
// end were never limiting, since what is used on the way is at most what is used in the end.
func (p *pool) drf(limit func(*tenant) float64) bool {
	problem := p.problem(limit)
	s, err := drf.Solve(problem)
	if err != nil {
		return false
	}
	more := make([]float64, len(p.tenants)) // of the dominant share, which no host counts in
	for i := range p.tenants {
		t := &p.tenants[i]
		for k, d := range problem.Tenants[i].Demands {
			if d.Resource < len(p.q.Resources) {
				more[i] = math.Max(more[i], s.Allocation[i][k])
			}
		}
		for r, a := range t.rate {
			if a > 0 && (t.level+more[i])*a < t.floor[r]*(1-1e-12) {
				return false
			}
		}
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		t.level += more[i]
		t.bound = byLimit
		if s.Bound[i] >= 0 {
			t.bound = s.Bound[i]
		}
	}
	return true
}

// problem returns what is left to fill, with a resource for each row. Shares count against the
// capacities of the pool's resources: a large enough weight keeps those of hosts out of the
// dominant share.
func (p *pool) problem(limit func(*tenant) float64) drf.Problem {
	room := p.room()
	problem := drf.Problem{Capacities: make([]float64, len(room)), Room: room, Tenants: make([]drf.Tenant, len(p.tenants))}
	for k, of := range p.rows {
		problem.Capacities[k] = 1
		if k >= len(p.q.Resources) {
			problem.Capacities[k] = math.Min(1, of.units/p.q.Resources[of.resource].Capacity)
		}
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		left := math.Max(0, limit(t)-t.level)
		out := drf.Tenant{Weight: t.weight, Limit: &left}
		for r, a := range t.rate {
			if a <= 0 {
				continue
			}
			// The floors are not part of the room, but the demands include them: add them to the
			// room again.
			back := t.share(r) - t.level*a
			room[r] += back
			out.Demands = append(out.Demands, drf.Demand{Resource: r, Amount: a})
			for _, part := range p.parts(i, r) {
				k := p.first[r] + int(part.Row)
				room[k] += part.Share * back
				d := drf.Demand{Resource: k, Amount: part.Share * a}
				if c := problem.Capacities[k]; c > 0 {
					d.Weight = 2 * t.weight * math.Max(1, d.Amount/c)
				}
				out.Demands = append(out.Demands, d)
			}
		}
		problem.Tenants[i] = out
	}
	for k := range room {
		room[k] = math.Min(problem.Capacities[k], room[k])
	}
	return problem
}
