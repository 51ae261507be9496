package welfare

import "slices"

// smallProgramme is the largest number of steps for which a dynamic programme over whole vectors is
// used.
const smallProgramme = 1 << 17

// small reports whether that programme is small enough, with at most most units of each workload.
func (l *levels) small(most []int) bool {
	steps := 0
	for i, m := range most {
		steps += (l.left + 1) * (m - l.problem.Workloads[l.known[i]].Min + 1) * len(most)
		if l.left < 0 || steps > smallProgramme {
			return false
		}
	}
	return true
}

// vector is the joint result of some workloads: their utilities in ascending order, and the numbers
// that break ties.
type vector struct {
	utilities    []int64
	moved, units int
	by           []int // units of each workload, in order of name; nil: out of reach
}

// better reports whether v is preferred to w: greater at the first difference,
// then fewest units moved, then fewest used, then most for the first name.
func (v *vector) better(w *vector) bool {
	if w.by == nil {
		return true
	}
	if c := slices.Compare(v.utilities, w.utilities); c != 0 {
		return c > 0
	}
	if v.moved != w.moved {
		return v.moved < w.moved
	}
	if v.units != w.units {
		return v.units < w.units
	}
	return slices.Compare(v.by, w.by) > 0
}

// programme finds the leximin optimum by dynamic programming: adding one
// utility to two vectors does not change which of them is better, so the best
// vector of workloads i.. for each number of units is made of best vectors of
// workloads i+1.. .
func (l *levels) programme(most []int) {
	best := make([]vector, l.left+1)
	best[0] = vector{by: []int{}}
	for i := len(l.known) - 1; i >= 0; i-- {
		next := make([]vector, l.left+1)
		for r := range best {
			if best[r].by == nil {
				continue
			}
			w := &l.problem.Workloads[l.known[i]]
			for k := w.Min; k <= min(most[i], l.left-r); k++ {
				if v := best[r].with(l.of[l.known[i]].value(k), k, w.Current); v.better(&next[r+k]) {
					next[r+k] = v
				}
			}
		}
		best = next
	}
	winner := vector{}
	for r := range best {
		if best[r].by != nil && best[r].better(&winner) {
			winner = best[r]
		}
	}
	for i, j := range l.known {
		l.answer.Units[j] = winner.by[i]
	}
}

// with returns v with one more workload, before all others.
func (v *vector) with(utility int64, units, current int) vector {
	at, _ := slices.BinarySearch(v.utilities, utility)
	return vector{
		utilities: slices.Insert(slices.Clone(v.utilities), at, utility),
		moved:     v.moved + max(units-current, current-units),
		units:     v.units + units,
		by:        append([]int{units}, v.by...),
	}
}
