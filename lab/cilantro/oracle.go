package cilantro

import (
	"math"
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
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

// problem asks about round r, with a curve over every number of units up to
// where it is flat.
func (o *oracle) problem(r int, value func(p *place, i, units int) float64, utility func(p *place) func(float64) float64) *policy.Problem {
	w := o.world
	q := &policy.Problem{Units: w.env.Capacity, Unit: 1}
	for i := range w.jobs {
		p := &w.jobs[i]
		if !p.there(r*Windows) && !p.there((r+1)*Windows-1) {
			continue
		}
		c := &trimtab.Curve{Load: 1, Level: 0.9}
		for a := 1; a <= min(w.env.Capacity, o.enough(i, r)); a++ {
			v := value(p, i, a)
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: float64(a), Band: trimtab.Band{Lower: v, Mean: v, Upper: v}})
		}
		q.Workloads = append(q.Workloads, policy.Workload{Name: p.Name, Weight: p.Weight, Min: 1, Max: w.env.Capacity,
			Current: o.now[i], Curve: c, SLO: p.SLO, Utility: utility(p)})
	}
	return q
}

// answer solves q and spreads the answer over all jobs.
func (o *oracle) answer(policy policy.Policy, q *policy.Problem) ([]int, error) {
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

// enough is where the curve of job i is flat in every window of round r.
func (o *oracle) enough(i, r int) int {
	highest := 0.0
	for k := r * Windows; k < (r+1)*Windows; k++ {
		highest = max(highest, o.world.env.Load(i, k))
	}
	x := o.world.jobs[i].profile.X
	return 1 + int(math.Ceil(highest*x[len(x)-1]))
}

// demand returns what job i needs in the window of round r that asks for most.
func (o *oracle) demand(i, r int) float64 {
	p, most := &o.world.jobs[i], 0.0
	for k := r * Windows; k < (r+1)*Windows; k++ {
		most = max(most, o.world.env.Load(i, k)*p.profile.Least(p.SLO/o.world.factor(i, k)))
	}
	return most
}

// social maximises what is scored: the mean over the windows of the mean
// utility, which is separable, so that the answer is the exact optimum.
func social(o *oracle, r int) ([]int, error) {
	q := o.problem(r, func(_ *place, i, units int) float64 { return meanUtility(o.world, i, r, units) },
		func(*place) func(float64) float64 { return func(u float64) float64 { return min(u, 1) } })
	return o.answer(welfare.Social{}, q)
}

// egalitarian maximises the least value of a job, by bisection over that level,
// apart from the planner's own policy: each job gets the least units that reach
// the level or its best, and the rest stays unallocated.
func egalitarian(value func(w *world, i, r, units int) float64) func(o *oracle, r int) ([]int, error) {
	return func(o *oracle, r int) ([]int, error) {
		w := o.world
		units := make([]int, len(w.jobs))
		reach := func(level float64) (sum int) {
			for i := range w.jobs {
				units[i] = 0
				if p := &w.jobs[i]; p.there(r*Windows) || p.there((r+1)*Windows-1) {
					t := min(level, value(w, i, r, w.env.Capacity))
					units[i] = 1 + sort.Search(w.env.Capacity-1, func(a int) bool { return value(w, i, r, a+1) >= t })
					sum += units[i]
				}
			}
			return sum
		}
		low, high := 0.0, 1.0
		if reach(high) <= w.env.Capacity {
			return units, nil
		}
		for range 40 {
			if t := (low + high) / 2; reach(t) <= w.env.Capacity {
				low = t
			} else {
				high = t
			}
		}
		reach(low)
		return units, nil
	}
}

// meanUtility is a job's mean utility over the windows of a round.
func meanUtility(w *world, i, r, units int) float64 {
	sum, p := 0.0, &w.jobs[i]
	for k := r * Windows; k < (r+1)*Windows; k++ {
		sum += p.utility(w.factor(i, k) * p.profile.At(float64(units)/w.env.Load(i, k)))
	}
	return sum / Windows
}

// worstUtility is a job's utility in the window of a round with its highest
// load.
func worstUtility(w *world, i, r, units int) float64 {
	p, highest := &w.jobs[i], 0.0
	for k := r * Windows; k < (r+1)*Windows; k++ {
		highest = max(highest, w.env.Load(i, k))
	}
	return p.utility(w.factor(i, r*Windows) * p.profile.At(float64(units)/highest))
}

// spread deals what an answer leaves unallocated, a unit to each in turn.
func spread(solve func(o *oracle, r int) ([]int, error)) func(o *oracle, r int) ([]int, error) {
	return func(o *oracle, r int) ([]int, error) {
		units, err := solve(o, r)
		if err != nil {
			return nil, err
		}
		left, present := o.world.env.Capacity, 0
		for _, u := range units {
			left -= u
			present += min(u, 1)
		}
		for i := 0; left > 0 && present > 0; i = (i + 1) % len(units) {
			if units[i] > 0 {
				units[i]++
				left--
			}
		}
		return units, nil
	}
}

// njc runs the procedure on the true demands of the round's worst windows.
func njc(o *oracle, r int) ([]int, error) {
	q := o.problem(r, func(*place, int, int) float64 { return 1 }, func(p *place) func(float64) float64 { return p.utility })
	for n := range q.Workloads {
		for i := range o.world.jobs {
			p := &o.world.jobs[i]
			if p.Name == q.Workloads[n].Name {
				d := math.Ceil(o.demand(i, r) - 1e-9)
				q.Workloads[n].Demand = int(min(d, float64(o.world.env.Capacity)))
			}
		}
	}
	return o.answer(fair.NJCPolicy{}, q)
}
