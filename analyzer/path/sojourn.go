package path

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
)

// interval is the part of node up during which one of its children runs.
type interval struct {
	start, end int64
	up         int32
}

// sojourns sets covered on each node: the length of the union of its children's intervals, clipped
// to the node. The rest of the node is its sojourn time.
func (t *tree) sojourns(p *places) {
	t.order = t.order[:0]
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.duplicate || n.up == none || !n.known || !t.nodes[n.up].known {
			continue
		}
		if v := n.within(&t.nodes[n.up], p); v.start < v.end {
			v.up = n.up
			t.order = append(t.order, v)
		}
	}
	sortByStart(t.order)
	// In order of start, each interval adds the part that extends beyond those before it.
	for _, v := range t.order {
		up := &t.nodes[v.up]
		if v.end > up.below.reach {
			up.below.covered += v.end - max(v.start, up.below.reach)
			up.below.reach = v.end
		}
	}
}

// within returns the part of up during which its child n runs. If a callee is not longer than its
// caller but extends outside it, the two have different clocks, unless both are on one host. The
// callee is then centred: the rest of the call is network time, half each way. Anything else that
// extends outside is clipped.
func (n *node) within(up *node, p *places) interval {
	if n.start >= up.start && n.end <= up.end {
		return interval{start: n.start, end: n.end}
	}
	if trimtab.SpanKind(n.kind) == trimtab.SpanServer && trimtab.SpanKind(up.kind) == trimtab.SpanClient && n.otherClock(up, p) {
		n.faults |= skewed
		start := up.start + (up.duration()-n.duration())/2
		return interval{start: start, end: start + n.duration()}
	}
	n.faults |= outside
	return interval{start: max(n.start, up.start), end: min(n.end, up.end)}
}

// sortByStart sorts v; short slices, which are the usual case, by insertion.
func sortByStart(v []interval) {
	if len(v) > 24 {
		slices.SortFunc(v, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
		return
	}
	for i := 1; i < len(v); i++ {
		x, k := v[i], i
		for ; k > 0 && v[k-1].start > x.start; k-- {
			v[k] = v[k-1]
		}
		v[k] = x
	}
}
