// Package alternative says which choices a solution of the objective rejected for a workload,
// with what the objective would be:
//
//	to stay                     all others at their targets, or taking it from one that rises
//	the target at once          where a bound stopped the step
//	one unit more, or less      against the workload that moves furthest the other way
package alternative

import (
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// Solution is a problem and its answer.
type Solution struct {
	Problem *policy.Problem
	Answer  policy.Solution
	// Score returns the objective at units in the order of the workloads; nil if it is unknown or
	// too costly: then there are no alternatives.
	Score func(units []int) float64
}

// Of returns the alternatives for a workload of the problem that has now and gets set, in the
// resource's unit; stopped says what kept that from its target.
func (s *Solution) Of(at int, now, set float64, stopped string) (out []trimtab.Alternative) {
	if s == nil || s.Score == nil {
		return nil
	}
	w, unit, aim := s.Problem.Workloads, s.Problem.Unit, s.Answer.Units[at]
	units := slices.Clone(s.Answer.Units)
	add := func(set float64, why string) {
		out = append(out, trimtab.Alternative{Set: set, Objective: s.Score(units), Why: why})
	}
	current := w[at].Current
	units[at] = current
	if sum(units) <= s.Problem.Units {
		add(now, "stay, all others at their targets")
	} else if other := s.rival(at, +1); other >= 0 {
		units[other] = max(w[other].Min, units[other]-(current-aim))
		if sum(units) <= s.Problem.Units {
			add(now, "stay, and take it from "+w[other].Name)
		}
	}
	copy(units, s.Answer.Units)
	if target := float64(aim) * unit; set != target {
		add(target, "all the way at once: "+stopped)
	}
	direction, how := 1, "one unit more, taken from "
	if aim > current {
		direction, how = -1, "one unit less, given to "
	}
	other := s.rival(at, direction)
	if other < 0 || units[at]+direction < w[at].Min || units[at]+direction > w[at].Max ||
		units[other]-direction < w[other].Min || units[other]-direction > w[other].Max {
		return out
	}
	units[at] += direction
	units[other] -= direction
	add(float64(units[at])*unit, how+w[other].Name)
	return out
}

// rival returns the index, other than at, that the solution moves furthest up (direction +1) or
// down (-1), the first by name among equals; -1: at is alone.
func (s *Solution) rival(at, direction int) int {
	best, most := -1, 0
	for j, w := range s.Problem.Workloads {
		if j == at {
			continue
		}
		if d := direction * (s.Answer.Units[j] - w.Current); best < 0 || d > most {
			best, most = j, d
		}
	}
	return best
}

func sum(units []int) (total int) {
	for _, u := range units {
		total += u
	}
	return total
}
