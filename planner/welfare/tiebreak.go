package welfare

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/policy"
)

// worthSecuring is how far, in steps, a workload's certain utility must be below its possible one
// before others give up units that they do not need: about a hundredth of a utility.
const worthSecuring = quantum / 128

// Objective is implemented by all policies of this package.
type Objective interface {
	policy.Policy
	// readingOf returns how the policy evaluates the workloads of a problem.
	readingOf(p *policy.Problem) reading
}

// TieBreak takes the answer of its objective and spends the remaining units on certainty: of all
// allocations that have the same utilities for the objective, it takes the leximin of the utilities
// at the lower bounds.
//
//	max (ǔ_j(a_j))_j leximin   with u_j(a_j) >= u_j(a*_j), Σ a_j <= R
//
// So a workload whose curve is uncertain, or that meets its SLO only on average, gets what no
// other needs. A workload that falls short by its mean is tried with up to a quarter more, the
// worst off first, as long as its upper bound predicts a gain: a curve that was never measured
// further up is no proof against it. A workload that holds more than all this requires keeps it
// while units last, and nothing moves for less than a hundredth of a utility.
type TieBreak struct{ Objective }

// Solve returns the answer of the objective, and adds units that it leaves. Value and Bound are the
// objective's own.
func (s TieBreak) Solve(p *policy.Problem) (policy.Solution, error) {
	answer, err := s.Objective.Solve(p)
	if err != nil || answer.Cut {
		return answer, err
	}
	sv := newSolver(p, s.readingOf(p))
	sv.answer = answer
	sv.secure()
	return sv.answer, nil
}

// secure spends the units that the objective's answer does not need on certainty; see [TieBreak].
func (s *solver) secure() {
	l := newLevels(s.readAt(func(b trimtab.Band) float64 { return b.Lower }))
	for i, j := range s.known {
		k := s.answer.Units[j]
		l.floor[i] = s.of[j].least(s.of[j].value(k), l.floor[i], k)
		l.headroom.Subtract(j, l.floor[i])
	}
	if l.headroom.Units <= 0 || s.stopped() {
		return
	}
	l.raise()
	secured := l.short(s.answer.Units)
	if secured {
		l.climb()
	} else {
		l.hold(s.answer.Units)
	}
	if (l.reach() || secured) && !l.stopped() {
		s.leave(l.need)
	}
	s.answer.Cut = l.answer.Cut
}

// leave gives each workload its need, and marks those that got more than in the answer.
func (s *solver) leave(need []int) {
	before := slices.Clone(s.answer.Units)
	s.keep(need)
	for _, j := range s.known {
		if k := s.answer.Units[j]; k > before[j] {
			s.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingLeftOver}
			if k == s.problem.Workloads[j].Max {
				s.answer.Binding[j] = trimtab.Binding{Kind: codes.BindingMax}
			}
		}
	}
}

// hold sets the needs to the fewest units with the same certain utility as the given ones.
func (l *levels) hold(units []int) {
	l.headroom.Set(l.solver.headroom)
	for i, j := range l.known {
		l.need[i] = l.of[j].least(l.of[j].value(units[j]), l.floor[i], units[j])
		l.headroom.Subtract(j, l.need[i])
	}
}

// reach gives leftover units to workloads that fall short by their mean and may gain, and reports
// whether any was raised.
func (l *levels) reach() (some bool) {
	mean := l.readAt(func(b trimtab.Band) float64 { return b.Mean })
	upper := l.readAt(func(b trimtab.Band) float64 { return b.Upper })
	at := make([]int, len(l.known))
	for i := range at {
		at[i] = i
	}
	value := func(i int) int64 { return mean.of[l.known[i]].value(l.need[i]) }
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
	for _, i := range at {
		j, k := l.known[i], l.need[i]
		to := min(k+max(1, k/4), k+l.headroom.Most(j), l.problem.Workloads[j].Max)
		if to > k && value(i)+worthSecuring < upper.of[j].value(to) {
			l.need[i], some = to, true
			l.headroom.Subtract(j, to-k)
		}
	}
	return some
}

// readAt returns the same problem, evaluated at one bound of the bands.
func (s *solver) readAt(bound func(trimtab.Band) float64) *solver {
	other := *s
	how := utilities(0).at(bound)
	how.worth = s.how.worth
	_, other.of = read(s.problem, how)
	return &other
}

// short reports whether a workload gains enough certainty with its need, compared with the given
// units.
func (l *levels) short(units []int) bool {
	for i, j := range l.known {
		if u := &l.of[j]; u.value(units[j])+worthSecuring < u.value(l.need[i]) {
			return true
		}
	}
	return false
}

func (e Egalitarian) readingOf(*policy.Problem) reading { return e.reading() }
func (s Social) readingOf(*policy.Problem) reading      { return s.reading() }
func (o Own) readingOf(*policy.Problem) reading         { return o.reading() }

func (s Nash) readingOf(p *policy.Problem) reading {
	how, _ := s.reading(p)
	return how
}
