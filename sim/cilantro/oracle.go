package cilantro

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/welfare"
)

// oracle answers each round with the true curves and the true loads of that
// round, without a bound on the step.
type oracle struct {
	world *world
	now   []int
	solve func(o *oracle, r int) ([]int, error)
}

// Decide returns the allocation of round r.
func (o *oracle) Decide(r int) ([]int, error) {
	units, err := o.solve(o, r)
	if err == nil {
		o.now = units
	}
	return o.now, err
}

// Tell is not needed: an oracle knows.
func (o *oracle) Tell(int, []Report) {}

// problem asks about round r, with a curve over every number of units.
func (o *oracle) problem(r int, value func(p *place, i, units int) float64, utility func(p *place) func(float64) float64) *planner.Problem {
	w := o.world
	q := &planner.Problem{Units: w.env.Capacity, Unit: 1}
	for i := range w.jobs {
		p := &w.jobs[i]
		if !p.there(r*Windows) && !p.there((r+1)*Windows-1) {
			continue
		}
		c := &trimtab.Curve{Load: 1, Level: 0.9}
		for a := 1; a <= w.env.Capacity; a++ {
			v := value(p, i, a)
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: float64(a), Band: trimtab.Band{Lower: v, Mean: v, Upper: v}})
		}
		q.Workloads = append(q.Workloads, planner.Workload{Name: p.Name, Weight: p.Weight, Min: 1, Max: w.env.Capacity,
			Current: o.now[i], Curve: c, SLO: p.SLO, Utility: utility(p)})
	}
	return q
}

// answer solves q and spreads the answer over all jobs.
func (o *oracle) answer(r int, policy planner.Policy, q *planner.Problem) ([]int, error) {
	s, err := policy.Solve(q)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(o.world.jobs))
	n := 0
	for i := range out {
		if n < len(q.Workloads) && q.Workloads[n].Name == o.world.jobs[i].Name {
			out[i] = s.Units[n]
			n++
		}
	}
	return out, nil
}

// loads returns the least, mean and highest load of job i in round r.
func (o *oracle) loads(i, r int) (mean, highest float64) {
	for k := r * Windows; k < (r+1)*Windows; k++ {
		l := o.world.env.Load(i, k)
		mean += l / Windows
		highest = max(highest, l)
	}
	return mean, highest
}

// social maximises what is scored: the mean over the windows of the mean
// utility, which is separable, so that the answer is the exact optimum.
func social(o *oracle, r int) ([]int, error) {
	w := o.world
	q := o.problem(r, func(p *place, i, units int) float64 {
		sum := 0.0
		for k := r * Windows; k < (r+1)*Windows; k++ {
			sum += p.utility(w.factor(i, k) * p.profile.At(float64(units)/w.env.Load(i, k)))
		}
		return sum / Windows
	}, func(*place) func(float64) float64 { return func(u float64) float64 { return min(u, 1) } })
	return o.answer(r, welfare.Social{}, q)
}

// egalitarian maximises the least utility at one load of the round.
func egalitarian(load func(o *oracle, i, r int) float64) func(o *oracle, r int) ([]int, error) {
	return func(o *oracle, r int) ([]int, error) {
		q := o.problem(r, func(p *place, i, units int) float64 {
			return o.world.factor(i, r*Windows) * p.profile.At(float64(units)/load(o, i, r))
		}, func(p *place) func(float64) float64 { return p.utility })
		return o.answer(r, welfare.Egalitarian{}, q)
	}
}

// njc runs the procedure on the true demands at the mean load.
func njc(o *oracle, r int) ([]int, error) {
	q := o.problem(r, func(*place, int, int) float64 { return 1 }, func(p *place) func(float64) float64 { return p.utility })
	for n := range q.Workloads {
		for i := range o.world.jobs {
			p := &o.world.jobs[i]
			if p.Name == q.Workloads[n].Name {
				mean, _ := o.loads(i, r)
				d := math.Ceil(mean*p.profile.Least(p.SLO/o.world.factor(i, r*Windows)) - 1e-9)
				q.Workloads[n].Demand = int(min(d, float64(o.world.env.Capacity)))
			}
		}
	}
	return o.answer(r, fair.NJCPolicy{}, q)
}
