package dominant

import (
	"math"

	"github.com/trimtab/trimtab/planner/drf"
)

// drf fills with the solver for millions of tenants, which knows no floors,
// and reports whether its answer stands. It does when every floor lies below
// it: floors that are reached in the end were never in the way, since what is
// used on the way is at most what is used in the end.
func (p *pool) drf(limit func(*tenant) float64) bool {
	room := p.room()
	problem := drf.Problem{Capacities: make([]float64, len(room)), Room: make([]float64, len(room)), Tenants: make([]drf.Tenant, len(p.tenants))}
	for r := range room {
		problem.Capacities[r], problem.Room[r] = 1, math.Min(1, room[r])
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		// The floors are taken out of the room and what they stand for is
		// asked for: put it back.
		for r := range room {
			if t.rate[r] > 0 {
				problem.Room[r] = math.Min(1, problem.Room[r]+t.share(r)-t.level*t.rate[r])
			}
		}
		left := math.Max(0, limit(t)-t.level)
		out := drf.Tenant{Weight: t.weight, Limit: &left}
		for r, a := range t.rate {
			if a > 0 {
				out.Demands = append(out.Demands, drf.Demand{Resource: r, Amount: a})
			}
		}
		problem.Tenants[i] = out
	}
	s, err := drf.Solve(problem)
	if err != nil {
		return false
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		for r, a := range t.rate {
			if a > 0 && (t.level+s.Share[i])*a < t.floor[r]*(1-1e-12) {
				return false
			}
		}
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		t.level += s.Share[i]
		t.bound = byLimit
		if s.Bound[i] >= 0 {
			t.bound = s.Bound[i]
		}
	}
	return true
}
