package welfare

// few is how many steps a workload may have on its way to a level, on average,
// for the way to be gone step by step.
const few = 2

// ascend raises some workloads, who all have the fewest units for the level from,
// to the level to, as [levels.steps] would: the worst off first, and who finds a
// host full freezes.
//
// Where nobody can find a host full before to, everybody is raised at once.
// Otherwise only those are in doubt who are on a host that could not hold all: the
// others take nothing from them and are raised at once. The way of those in doubt
// is halved, until their steps are few.
func (l *levels) ascend(from, to int64, some []int) {
	if l.room.Units == 0 || l.stopped() {
		return
	}
	want := make([]int, 0, len(some))
	rise := some[:0:0]
	for _, i := range some {
		if l.frozen[i] {
			continue
		}
		j := l.known[i]
		n := l.of[j].least(min(to, l.top[i]), l.need[i], l.problem.Workloads[j].Max)
		if n > l.need[i] {
			rise, want = append(rise, i), append(want, n)
			l.room.Take(j, n-l.need[i])
		}
	}
	if l.room.Holds() {
		for k, i := range rise {
			l.need[i] = want[k]
		}
		return
	}
	doubt, steps := rise[:0], 0
	var back []int
	for k, i := range rise {
		if j := l.known[i]; l.room.Over(j) {
			back = append(back, want[k]-l.need[i])
			doubt = append(doubt, i)
			steps += want[k] - l.need[i]
		} else {
			l.need[i] = want[k]
		}
	}
	for k, i := range doubt {
		l.room.Take(l.known[i], -back[k])
	}
	if steps <= few*len(doubt) || to-from <= 1 {
		l.steps(doubt, to)
		return
	}
	mid := from + (to-from)/2
	l.ascend(from, mid, doubt)
	l.ascend(mid, to, doubt)
}
