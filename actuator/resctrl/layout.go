package resctrl

import (
	"math/bits"
	"slices"
)

// span is a group's ways [at, at+n) within a window of the cache.
type span struct {
	group string
	at, n int
}

func (s span) end() int { return s.at + s.n }

// place finds want contiguous ways, of width, for a group that has own (n = 0: no ways yet),
// beside the others. It returns the moves of neighbours, in an order in which no two groups ever
// share a way, and the group's ways after them. A neighbour keeps its number of ways. ok is false
// if not enough are free.
//
// A group that shrinks keeps its low ways. One that grows takes the free ways beside it, above
// first; only then it pushes neighbours aside, no further than it must, since moved ways begin
// with a cold cache. A new group takes the lowest gap that is large enough. With high it takes
// the highest, keeps its high ways when it shrinks, and grows downwards: so best-effort jobs and
// latency-critical ones start from opposite ends.
func place(width int, others []span, own span, want int, high bool) (moves []span, at span, ok bool) {
	if want < 1 || want > width {
		return nil, span{}, false
	}
	if high { // the same computation from the other end
		moves, at, ok = place(width, turned(width, others), turned(width, []span{own})[0], want, false)
		return turned(width, moves), turned(width, []span{at})[0], ok
	}
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b span) int { return a.at - b.at })
	if own.n == 0 {
		own.at = gap(width, others, want)
		if own.at >= 0 {
			own.n = want
			return nil, own, true
		}
		own.at = width
	}
	if want <= own.n {
		own.n = want
		return nil, own, true
	}
	split := slices.IndexFunc(others, func(s span) bool { return s.at >= own.end() })
	if split < 0 {
		split = len(others)
	}
	left, right := others[:split], others[split:]
	beside, above := 0, width
	if len(left) > 0 {
		beside = left[len(left)-1].end()
	}
	if len(right) > 0 {
		above = right[0].at
	}
	need := want - own.n
	take := func(free int) int {
		n := min(need, free)
		need -= n
		return n
	}
	up := take(above - own.end())
	down := take(own.at - beside)
	take(width - own.end() - total(right) - up)
	down += take(own.at - total(left) - down)
	if need > 0 {
		return nil, span{}, false
	}
	own.at, own.n = own.at-down, want
	return append(pushUp(right, own.end()), pushDown(left, own.at)...), own, true
}

// turned returns spans counted from the other end.
func turned(width int, all []span) []span {
	out := slices.Clone(all)
	for i, s := range all {
		out[i].at = width - s.end()
	}
	return out
}

// gap returns the beginning of the first gap of want ways, -1 if there is none.
func gap(width int, others []span, want int) int {
	end := 0
	for _, s := range others {
		if s.at-end >= want {
			return end
		}
		end = s.end()
	}
	if width-end >= want {
		return end
	}
	return -1
}

func total(all []span) (n int) {
	for _, s := range all {
		n += s.n
	}
	return n
}

// pushUp moves groups up as far as needed so that none begins below from, the highest first.
func pushUp(right []span, from int) (moves []span) {
	for _, s := range right {
		if s.at >= from {
			break
		}
		s.at = from
		from = s.end()
		moves = append(moves, s)
	}
	slices.Reverse(moves)
	return moves
}

// pushDown moves groups down as far as needed so that none ends above to, the lowest first.
func pushDown(left []span, to int) (moves []span) {
	for _, s := range slices.Backward(left) {
		if s.end() <= to {
			break
		}
		s.at = to - s.n
		to = s.at
		moves = append(moves, s)
	}
	slices.Reverse(moves)
	return moves
}

// window is the ways that trimtab may give out: n of them, starting at bit from. Way 0 is the
// lowest bit, or the highest if mirrored.
type window struct {
	from, n  int
	mirrored bool
}

// windowOf returns the longest run of ways that are not taken. If devices share the low ways, it
// counts from the top, so that those are used last.
func windowOf(mask, taken, shareable uint64) window {
	var best window
	for free := mask &^ taken; free != 0; {
		from := bits.TrailingZeros64(free)
		n := bits.TrailingZeros64(^(free >> from))
		if n > best.n {
			best = window{from: from, n: n}
		}
		free &^= (1<<n - 1) << from
	}
	best.mirrored = best.n > 0 && shareable>>best.from&1 != 0
	return best
}

// mask returns the bits of a span.
func (w window) mask(s span) uint64 {
	from := w.from + s.at
	if w.mirrored {
		from = w.from + w.n - s.end()
	}
	return (1<<s.n - 1) << from
}

// span converts a mask into a span; false: the mask is not a run within the window.
func (w window) span(group string, mask uint64) (span, bool) {
	if mask == 0 || !contiguous(mask) {
		return span{}, false
	}
	s := span{group: group, at: bits.TrailingZeros64(mask) - w.from, n: bits.OnesCount64(mask)}
	if s.at < 0 || s.end() > w.n {
		return span{}, false
	}
	if w.mirrored {
		s.at = w.n - s.end()
	}
	return s, true
}

// contiguous reports whether the ways of a mask are contiguous.
func contiguous(mask uint64) bool {
	run := mask >> bits.TrailingZeros64(mask)
	return mask != 0 && run&(run+1) == 0
}
