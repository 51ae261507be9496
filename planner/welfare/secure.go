package welfare

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// worthSecuring is how far, in steps, somebody's certain utility has to be
// below what it could be before others give what they do not need for it: a
// sixteenth of a utility.
const worthSecuring = quantum / 16

// Objective is what all policies of this package are.
type Objective interface {
	planner.Policy
	planner.Scorer
	planner.Expecter
	planner.Cautious
	// readingOf is how the policy reads the workloads of a problem.
	readingOf(p *planner.Problem) reading
}

// Secured answers as its objective does and spends what that leaves over on
// certainty: of all allocations that are worth as much to every workload by
// what the objective counts on, it takes the leximin of the utilities of the
// lower bounds.
//
//	max (ǔ_j(a_j))_j leximin   with u_j(a_j) >= u_j(a*_j), Σ a_j <= R
//
// A workload whose curve is known badly, or that meets its objective only on
// average, so gets what nobody needs. Who holds more than that asks for keeps
// it while it lasts, and nobody is moved for less than a sixteenth of a
// utility.
type Secured struct{ Objective }

// Solve returns the answer of the objective, with more units where that leaves
// some. Value and Bound are the objective's own.
func (s Secured) Solve(p *planner.Problem) (planner.Solution, error) {
	answer, err := s.Objective.Solve(p)
	if err != nil || answer.Cut {
		return answer, err
	}
	sv := newSolver(p, s.readingOf(p))
	sv.answer = answer
	sv.secure()
	return sv.answer, nil
}

// secure moves what the answer does not need.
func (s *solver) secure() {
	certain := *s
	_, certain.of = read(s.problem, s.how.certain())
	l := newLevels(&certain)
	l.spare = s.left
	for i, j := range s.known {
		k := s.answer.Units[j]
		l.floor[i] = s.of[j].least(s.of[j].value(k), l.floor[i], k)
		l.spare -= l.floor[i]
	}
	if l.spare <= 0 || s.stopped() {
		return
	}
	l.raise()
	if l.short(s.answer.Units) && !l.stopped() {
		l.climb()
		s.keep(l.need)
	}
}

// short reports whether somebody is worth securing with what is needed,
// instead of these units.
func (l *levels) short(units []int) bool {
	for i, j := range l.known {
		if u := &l.of[j]; u.value(units[j])+worthSecuring < u.value(l.need[i]) {
			return true
		}
	}
	return false
}

// certain reads the utilities of the lower bounds.
func (how reading) certain() reading {
	c := utilities(0).at(func(b trimtab.Band) float64 { return b.Lower })
	c.worth = how.worth
	return c
}

func (e Egalitarian) readingOf(*planner.Problem) reading { return e.reading() }
func (s Social) readingOf(*planner.Problem) reading      { return s.reading() }
func (o Own) readingOf(*planner.Problem) reading         { return o.reading() }

func (s Nash) readingOf(p *planner.Problem) reading {
	how, _ := s.reading(p)
	return how
}
