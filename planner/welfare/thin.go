package welfare

import (
	"math"
	"slices"
)

// sample is an evaluated utility u(units), without the cost of moving.
type sample struct {
	worth int64
	units int32
}

// sampler holds the evaluated allocations of one workload, in order of units.
type sampler struct {
	u       *utility
	current int
	cost    int64
	seen    []sample
	// spare is the buffer that the next refinement writes to.
	spare []sample
}

const (
	// certified is the relative gap at which thin stops.
	certified = 5e-4
	// refinements is the largest number of prices that it tries.
	refinements = 12
)

// thin solves a problem with too many allocations to evaluate each. It evaluates the knots, takes
// the price λ at which the hulls of what was evaluated meet the capacity, and asks each workload
// for the best answer to that price among *all* its allocations; these evaluations give the next
// price. Between two evaluated units a < b the utility is at most that at b, so that nothing in
// between is worth more than
//
//	u(b) − cost·min |k − current| − λ(a + 1)
//
// and an interval is halved while that exceeds the best by a tolerance. The sum of these bounds
// plus λR bounds every answer. It returns how far the answer may be below the least such bound,
// in steps.
//
// Source: Everett (1963) for the bound; the refinement is column generation.
func (c *core) thin() (short float64) {
	most, _ := c.reach()
	all := make([]sampler, len(c.known))
	for i, j := range c.known {
		w := &c.problem.Workloads[j]
		all[i] = sampler{u: &c.of[j], current: w.Current, cost: c.cost}
		all[i].look(w.Min, most[i])
	}
	bound := math.Inf(1)
	for range refinements {
		for i := range all {
			c.choices[i] = all[i].choices(c.choices[i])
		}
		c.relax()
		worth := float64(c.top[0].worth) + c.price*float64(c.left-c.top[0].units) - c.short
		fine := c.how.fine
		if fine == 0 {
			fine = certified * worth / float64(len(all))
		}
		above, added := c.price*float64(c.left), false
		for i := range all {
			best, more := all[i].refine(c.price, fine/3)
			above += best
			added = added || more
		}
		// The error of a floating-point sum.
		n := float64(len(all))
		bound = math.Min(bound, above+n+64+math.Abs(above)*n*0x1p-52)
		short = math.Max(0, bound-worth)
		if short <= fine*float64(len(all)) || !added || c.stopped() {
			break
		}
	}
	return short
}

// look evaluates the ends, the current allocation and both sides of every knot.
func (s *sampler) look(lo, hi int) {
	at := make([]int, 0, 2*len(s.u.at)+3)
	at = append(at, lo, hi, min(max(s.current, lo), hi))
	for _, a := range s.u.at {
		if a < float64(hi) {
			at = append(at, max(int(a), lo), max(min(int(a)+1, hi), lo))
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	s.seen = make([]sample, len(at), 2*len(at))
	for i, k := range at {
		s.seen[i] = sample{s.u.value(k), int32(k)}
	}
}

// worth returns u(k) less the cost of moving to k.
func (s *sampler) worth(x sample) int64 {
	k := int(x.units)
	return x.worth - s.cost*int64(max(k-s.current, s.current-k))
}

// choices lists the evaluated allocations that are worth more than every smaller one.
func (s *sampler) choices(out []choice) []choice {
	out = out[:0]
	best := int64(math.MinInt64)
	for _, x := range s.seen {
		if g := s.worth(x); g > best {
			best = g
			out = append(out, choice{g, x.units})
		}
	}
	return out
}

// refine returns a bound on the best answer at a price, at most tolerance above an evaluated one,
// and whether it had to evaluate more allocations for it.
func (s *sampler) refine(price, tolerance float64) (bound float64, more bool) {
	best, bound := math.Inf(-1), math.Inf(-1)
	net := func(x sample) float64 { return float64(s.worth(x)) - price*float64(x.units) }
	for _, x := range s.seen {
		best = math.Max(best, net(x))
	}
	s.spare = append(s.spare[:0], s.seen[0])
	var split func(a, b sample)
	split = func(a, b sample) {
		if b.units-a.units <= 1 {
			return
		}
		near := int32(min(max(s.current, int(a.units)+1), int(b.units)-1)) // of all allocations between, that with the fewest units moved
		most := float64(s.worth(sample{b.worth, near})) - price*float64(a.units+1)
		if most <= best+tolerance {
			bound = math.Max(bound, most)
			return
		}
		k := a.units + (b.units-a.units)/2
		m := sample{s.u.value(int(k)), k}
		best = math.Max(best, net(m))
		split(a, m)
		s.spare = append(s.spare, m)
		split(m, b)
	}
	for i := 1; i < len(s.seen); i++ {
		split(s.seen[i-1], s.seen[i])
		s.spare = append(s.spare, s.seen[i])
	}
	more = len(s.spare) > len(s.seen)
	s.seen, s.spare = s.spare, s.seen
	return math.Max(bound, best), more
}
