package welfare

import (
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// Egalitarian maximises the least utility.
//
// Workloads that cannot do better, whatever they get, do not hold the others
// down: the least utility is raised among the rest, again and again, until the
// capacity stops it. What is left stays where it is.
type Egalitarian struct {
	// Optimism is the weight of the upper bound over the mean, in [0, 1].
	// Default 0.1; negative: 0, the mean alone.
	Optimism float64
}

// Name returns "egalitarian".
func (Egalitarian) Name() string { return "egalitarian" }

func (e Egalitarian) optimism() float64 {
	switch {
	case e.Optimism == 0:
		return 0.1
	case e.Optimism < 0:
		return 0
	}
	return min(e.Optimism, 1)
}

// Solve returns an exact answer, see [planner.Policy]. For n workloads and R
// units it evaluates O(40 n log R) utilities: a bisection over the 2^40 steps
// of the level t, with the least units that reach it,
//
//	max t: Σ_j min{k : u_j(k) >= min(t, u_j(max_j))} <= R
func (e Egalitarian) Solve(p *planner.Problem) (planner.Solution, error) {
	if err := p.Validate(); err != nil {
		return planner.Solution{}, err
	}
	s := newSolver(p, e.optimism())
	top := make([]int64, len(s.known))
	for i, j := range s.known {
		top[i] = s.of[j].value(p.Workloads[j].Max)
	}
	need := make([]int, len(s.known))
	reach := func(t int64) (fits bool) {
		sum := 0
		for i, j := range s.known {
			w := &p.Workloads[j]
			need[i] = s.of[j].least(min(t, top[i]), w.Min, w.Max)
			sum += need[i]
		}
		return sum <= s.left
	}
	level, above := int64(0), int64(quantum)+1 // level fits, above does not
	for above-level > 1 && !s.stopped() {
		if t := level + (above-level)/2; reach(t) {
			level = t
		} else {
			above = t
		}
	}
	reach(level)
	s.keep(need)
	for i, j := range s.known {
		switch k, w := need[i], &p.Workloads[j]; {
		case s.of[j].value(k) >= top[i] && k < w.Max:
			s.answer.Binding[j] = "demand"
		case k == w.Max:
			s.answer.Binding[j] = "max"
		default:
			s.answer.Binding[j] = "capacity"
		}
	}
	s.answer.Value = e.Scorer(p)(s.answer.Units)
	return s.answer, nil
}

// keep gives each known workload what it needs, and lets it keep what it has
// above that as long as the units last: nobody is moved for nothing. The last
// names give first.
func (s *solver) keep(need []int) {
	spare := s.left
	for i := range s.known {
		spare -= need[i]
	}
	for i, j := range s.known {
		w := &s.problem.Workloads[j]
		more := min(max(min(w.Current, w.Max)-need[i], 0), spare)
		s.answer.Units[j] = need[i] + more
		spare -= more
	}
}

// Expect returns the performance that the policy counts on.
func (e Egalitarian) Expect(b trimtab.Band) float64 { return mix(b, e.optimism()) }

// Scorer returns the least utility of the known workloads.
func (e Egalitarian) Scorer(p *planner.Problem) func(units []int) float64 {
	known, of := read(p, e.optimism())
	return func(units []int) float64 {
		if len(known) == 0 {
			return 0 // nothing is known of anybody
		}
		least := int64(quantum)
		for _, j := range known {
			least = min(least, of[j].value(units[j]))
		}
		return float64(least) / quantum
	}
}

// least returns the fewest units in [lo, hi] with a utility of at least t; hi
// when there are none.
func (u *utility) least(t int64, lo, hi int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return u.value(lo+i) >= t })
}
