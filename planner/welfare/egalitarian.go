package welfare

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// Egalitarian maximises the least utility, then the next least, and so on
// (leximin).
type Egalitarian struct {
	// Optimism is the weight of the upper bound over the mean, in [0, 1].
	// Default 0.3, which falls to 0.1 between 240 and 720 reports; one that is
	// set stays. Negative: 0, the mean alone.
	Optimism float64
	// LeastOnly counts only the least utility: units left after it is maximal stay unused.
	LeastOnly bool
	// LoadWeight is the weight of the load's upper bound over its mean in the
	// load that is planned for, in (0, 1]. Default 0.8.
	LoadWeight float64
}

// Traits have the least utility of the known workloads as score.
func (e Egalitarian) Traits() policy.Traits {
	return traitsOf(e.reading(), cautionOf(e.LoadWeight, 0.8), leastScorer)
}

// Name returns "egalitarian".
func (Egalitarian) Name() string { return "egalitarian" }

func (e Egalitarian) reading() reading { return wary(e.Optimism) }

// wary is the reading of the egalitarian objective: some optimism at first, so that a workload
// that has much is soon tried with less.
func wary(optimism float64) reading {
	return settling(optimismOf(optimism, 0.3), optimismOf(optimism, 0.1))
}

// Solve returns an exact answer, see [policy.Policy]: the least utility is always the greatest
// possible.
//
// A bisection over the 2^40 steps of the level t, with the least units that reach it, raises all
// at once, O(40 n log R) utilities,
//
//	max t: Σ_j min{k : u_j(k) >= min(t, u_j(max_j))} <= R
//
// and what is left raises the worst off, again and again, as long as its next step fits; a
// workload whose step does not fit stays. All others have the fewest units for being better off
// than it, so nothing could be taken from them for it, and the answer is the leximin optimum. A
// choice remains only if several are equally badly off and not all can be raised: it raises as
// many as fit, the cheapest first. Problems of at most 2^17 steps of dynamic programming over
// whole vectors of utilities are solved by that, which leaves no choice.
func (e Egalitarian) Solve(p *policy.Problem) (policy.Solution, error) {
	p, err := folded(p)
	if err != nil {
		return policy.Solution{}, err
	}
	answer := solveLeast(p, e.reading(), e.LeastOnly)
	answer.Value = leastScorer(p, e.reading())(answer.Units)
	answer.Bound = answer.Value
	return answer, nil
}

func leastScorer(p *policy.Problem, how reading) func(units []int) float64 {
	known, of := read(p, how)
	return func(units []int) float64 {
		if len(known) == 0 {
			return 0 // no workload has a known curve
		}
		least := int64(quantum)
		for _, j := range known {
			least = min(least, of[j].value(units[j]))
		}
		return float64(least) / quantum
	}
}

// solveLeast returns the leximin optimum of the utilities under the reading how. If only is true,
// it maximises just the minimum.
func solveLeast(p *policy.Problem, how reading, only bool) policy.Solution {
	s := newSolver(p, how)
	l := newLevels(s)
	if n, _ := s.reach(); !only && !s.stopped() && !s.headroom.Hosts() && l.small(n) {
		l.programme(n)
	} else {
		l.raise()
		if !only {
			l.climb()
		}
		s.keep(l.need)
	}
	for i, j := range s.known {
		switch k, w := s.answer.Units[j], &p.Workloads[j]; {
		case s.of[j].value(k) >= l.top[i] && k < w.Max:
			s.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingDemand}
		case k == w.Max:
			s.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingMax}
		default:
			s.answer.Binding[j] = l.headroom.Binding(j, 1)
		}
	}
	return s.answer
}

// levels is the search for a leximin optimum.
type levels struct {
	*solver
	// top is the utility of each known workload with the most units that it may have; need is the
	// fewest units for the level reached.
	top  []int64
	need []int
	// headroom is the capacity that the needs leave; level is the level that all workloads reach.
	headroom *hosts.Headroom
	level    int64
	// floor is the minimum of each workload.
	floor []int
	// frozen marks known workloads whose next step does not fit; from is the utility from which
	// one was last raised; chose is set when only some of several equally badly off were raised.
	frozen []bool
	from   int64
	chose  bool
}

func newLevels(s *solver) *levels {
	n := len(s.known)
	l := &levels{solver: s, top: make([]int64, n), need: make([]int, n), floor: make([]int, n), headroom: s.headroom.Clone(), frozen: make([]bool, n), from: -1}
	for i, j := range s.known {
		l.top[i] = s.of[j].value(s.problem.Workloads[j].Max)
		l.floor[i] = s.problem.Workloads[j].Min
	}
	return l
}

// reaches sets the needs for level t and reports whether they fit.
func (l *levels) reaches(t int64) bool {
	l.headroom.Set(l.solver.headroom)
	for i, j := range l.known {
		w := &l.problem.Workloads[j]
		l.need[i] = l.of[j].least(min(t, l.top[i]), l.floor[i], w.Max)
		l.headroom.Subtract(j, l.need[i])
	}
	return l.headroom.Holds()
}

// raise finds the highest level that all workloads with a sufficient maximum reach together.
func (l *levels) raise() {
	level, above := int64(0), int64(quantum)+1 // level fits, above does not
	for above-level > 1 && !l.stopped() {
		if t := level + (above-level)/2; l.reaches(t) {
			level = t
		} else {
			above = t
		}
	}
	l.reaches(level)
	l.level = level
}

// keep gives each known workload its need, and lets it keep its present units above that as long as
// units are left, so that no unit moves without need. The workloads that are last by name give up
// units first.
func (s *solver) keep(need []int) {
	room := s.headroom.Clone()
	for i, j := range s.known {
		room.Subtract(j, need[i])
	}
	for i, j := range s.known {
		w := &s.problem.Workloads[j]
		more := min(max(min(w.Current, w.Max)-need[i], 0), room.Most(j))
		s.answer.Units[j] = need[i] + more
		room.Subtract(j, more)
	}
}
