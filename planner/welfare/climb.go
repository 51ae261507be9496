package welfare

import "container/heap"

// rung is the next step up of one workload.
type rung struct {
	at int   // index in known
	u  int64 // present utility
	// units is the number of units at which the utility next exceeds u; cost is how many more these
	// are.
	units, cost int
	// holds says that it has these units at present.
	holds bool
}

// ladder is a heap: the worst off first, among equals the cheapest step, then the workload that
// holds the units, then by name.
type ladder []rung

func (h ladder) Len() int { return len(h) }
func (h ladder) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.u != b.u:
		return a.u < b.u
	case a.cost != b.cost:
		return a.cost < b.cost
	case a.holds != b.holds:
		return a.holds
	}
	return a.at < b.at
}
func (h ladder) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *ladder) Push(x any) { *h = append(*h, x.(rung)) }

// Pop implements [heap.Interface].
func (h *ladder) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// climb gives the units that are left after the common level to the worst off.
func (l *levels) climb() {
	all := make([]int, len(l.known))
	for i := range all {
		all[i] = i
	}
	if l.headroom.Hosts() {
		l.ascend(l.level, quantum+1, all)
	} else {
		l.steps(all, quantum+1)
	}
}

// steps raises the worst off of the given workloads, step by step, up to the level to, as long as
// the steps fit.
func (l *levels) steps(some []int, to int64) {
	if l.headroom.Units == 0 {
		return
	}
	h := make(ladder, 0, len(some))
	for _, i := range some {
		if r, ok := l.next(i); ok && r.u < to {
			h = append(h, r)
		}
	}
	heap.Init(&h)
	for len(h) > 0 && l.headroom.Units > 0 && !l.stopped() {
		r := h[0]
		if r.cost > l.headroom.Most(l.known[r.at]) {
			l.chose = l.chose || r.u == l.from
			l.frozen[r.at] = true
			heap.Pop(&h)
			continue
		}
		l.need[r.at] = r.units
		l.headroom.Subtract(l.known[r.at], r.cost)
		l.from = r.u
		if n, ok := l.next(r.at); ok && n.u < to {
			h[0] = n
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	l.chose = l.chose || len(h) > 0 && h[0].u == l.from
}

// next returns the next step up of a workload; ok is false at its top.
func (l *levels) next(i int) (r rung, ok bool) {
	j := l.known[i]
	w, k := &l.problem.Workloads[j], l.need[i]
	u := l.of[j].value(k)
	if u >= l.top[i] {
		return rung{}, false
	}
	// No more than the hosts have room for.
	end := min(w.Max, k+l.headroom.Most(j)+1)
	units := l.of[j].least(u+1, k, end)
	return rung{i, u, units, units - k, units <= w.Current}, true
}
