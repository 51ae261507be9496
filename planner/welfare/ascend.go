package welfare

// few is the average number of steps per workload up to which the steps to a level are taken one by
// one.
const few = 2

// ascend raises some workloads from level from, for which they have the fewest units, to level to.
// The result is that of [levels.steps]: the worst off rise first, and a workload whose host is full
// freezes.
//
// If no host can become full before to, all rise at once. Otherwise only workloads on a host
// without capacity for all its workloads are in doubt; the others take nothing from these, and rise
// at once. For those in doubt the distance is halved until few steps are left.
func (l *levels) ascend(from, to int64, some []int) {
	if l.headroom.Units == 0 || l.stopped() {
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
			l.headroom.Subtract(j, n-l.need[i])
		}
	}
	if l.headroom.Holds() {
		for k, i := range rise {
			l.need[i] = want[k]
		}
		return
	}
	doubt, steps := rise[:0], 0
	var back []int
	for k, i := range rise {
		if j := l.known[i]; l.headroom.Over(j) {
			back = append(back, want[k]-l.need[i])
			doubt = append(doubt, i)
			steps += want[k] - l.need[i]
		} else {
			l.need[i] = want[k]
		}
	}
	for k, i := range doubt {
		l.headroom.Subtract(l.known[i], -back[k])
	}
	if steps <= few*len(doubt) || to-from <= 1 {
		l.steps(doubt, to)
		return
	}
	mid := from + (to-from)/2
	l.ascend(from, mid, doubt)
	l.ascend(mid, to, doubt)
}
