package path

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
)

// maxDuration is the longest plausible duration, in ns: one day.
const maxDuration = 24 * 3600 * 1e9

// none stands for no node.
const none = int32(-1)

// node is one span of the current trace.
type node struct {
	record
	// place is where it ran. peer is the peer that it calls, nowhere if it names none.
	place, peer placeID
	// up is the parent, or none.
	up int32
	// top is the first span on the way up that is a request of its workload or has no parent in the
	// workload. It determines the interval in which the span counts.
	top int32
	// seen is the state of the walk: 0 not visited, 1 in progress, 2 done.
	seen uint8
	role role
	// inRequest: it is a request of its workload, or within one with only spans of the workload in
	// between. If the parent of a client or internal span is missing, the request is assumed to be
	// among the missing spans.
	inRequest bool
	// reported: a request above it, of any workload, covers it, or its parent did not wait for it. It
	// is then not reported as a request of its own.
	reported bool
	// answered: the callee sent spans too, which are below it.
	answered bool
	// known: the duration is plausible.
	known     bool
	duplicate bool
	faults    faults
	workload  int32
	// window is the interval in which a top counts.
	window int64
	below  below
}

// below is the union of the intervals of a span's children so far: its length and its end.
type below struct{ covered, reach int64 }

func (n *node) duration() int64 { return n.end - n.start }

// side returns 1 for a span of the callee, 0 for one of the caller.
func (n *node) side() int {
	if k := trimtab.SpanKind(n.kind); k == trimtab.SpanServer || k == trimtab.SpanConsumer {
		return 1
	}
	return 0
}

// tree is one trace with the relations of its spans. Its memory is reused for the next trace.
type tree struct {
	trace      [16]byte
	nodes      []node
	index      index
	walk       []int32
	order      []interval
	duplicates int
	// shared counts ids of which both sides exist.
	shared  int
	roots   int
	missing int
}

// reset empties the tree and allocates memory for n spans.
func (t *tree) reset(n int) {
	t.nodes = slices.Grow(t.nodes[:0], n)
	t.duplicates, t.shared, t.roots, t.missing = 0, 0, 0, 0
}

func (t *tree) add(r *record, p *places) {
	d := r.end - r.start
	place, peer := p.split(r.from)
	t.nodes = append(t.nodes, node{record: *r, place: place, peer: peer, up: none, top: none, workload: p.places[place].workload})
	n := &t.nodes[len(t.nodes)-1]
	switch {
	case r.start <= 0 || r.end <= 0:
		n.faults |= absurd
	case d < 0:
		n.faults |= negative
	case d > maxDuration:
		n.faults |= absurd
	default:
		n.known = true
	}
}

// complete reports whether the trace has a root and no parent is missing.
func (t *tree) complete() bool { return t.roots > 0 && t.missing == 0 }

// connect finds duplicates and parents, breaks cycles, and sets the tops and roles.
func (t *tree) connect(p *places) {
	t.index.reset(len(t.nodes))
	for i := range t.nodes {
		t.enter(int32(i), p)
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.duplicate {
			t.findParent(n)
		}
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.duplicate && n.seen == 0 {
			t.climb(int32(i), p)
		}
	}
}

// enter adds node i to the index. Of several spans with the same id and side it keeps one,
// independent of the order of their arrival.
func (t *tree) enter(i int32, p *places) {
	n := &t.nodes[i]
	slot := t.index.find(n.id, true)
	held := &slot.sides[n.side()]
	if *held == 0 {
		*held = i + 1
		if slot.sides[1-n.side()] != 0 {
			t.shared++
		}
		return
	}
	t.duplicates++
	other := &t.nodes[*held-1]
	if before(n, other, p) {
		n, *held = other, i+1
	}
	n.duplicate = true
}

// before is a total order of the spans with the same id and side.
func before(a, b *node, p *places) bool {
	c := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.parent, b.parent),
		cmp.Compare(a.kind, b.kind), cmp.Compare(a.flags, b.flags), cmp.Compare(a.adjusted, b.adjusted))
	if c != 0 || a.from == b.from && a.instance == b.instance {
		return c < 0
	}
	if a.peer != b.peer {
		return p.places[a.peer].component > p.places[b.peer].component // one with a peer before one without
	}
	x, y := p.places[a.place], p.places[b.place]
	if x.component != y.component || x.host != y.host || x.workload != y.workload {
		return cmp.Or(cmp.Compare(x.component, y.component), cmp.Compare(x.host, y.host), cmp.Compare(x.workload, y.workload)) < 0
	}
	return p.workloads[x.workload].instances.compare(a.instance, b.instance) < 0
}

// answer marks node i and its ancestors: a span of another place is below them.
func (t *tree) answer(i int32) {
	for i != none && !t.nodes[i].answered {
		t.nodes[i].answered = true
		i = t.nodes[i].up
	}
}

func (t *tree) findParent(n *node) {
	if t.shared > 0 && n.side() == 1 {
		// The caller's span of a shared id is the parent of the callee's.
		if caller := t.index.find(n.id, false).sides[0]; caller != 0 {
			n.up = caller - 1
			return
		}
	}
	switch n.parent {
	case 0:
		t.roots++
		return
	case n.id:
		n.faults |= selfParent
		return
	}
	s := t.index.find(n.parent, false)
	if s == nil {
		n.faults |= orphan
		t.missing++
		return
	}
	// Of a shared id, the callee's span is the one that makes further calls.
	n.up = max(s.sides[0], s.sides[1]) - 1
	if s.sides[1] != 0 {
		n.up = s.sides[1] - 1
	}
}

// climb walks up from node i, breaks a cycle if it meets one, and sets the role of each span on
// the way back.
func (t *tree) climb(i int32, p *places) {
	t.walk = t.walk[:0]
	for i != none && t.nodes[i].seen == 0 {
		t.nodes[i].seen = 1
		t.walk = append(t.walk, i)
		i = t.nodes[i].up
	}
	if i != none && t.nodes[i].seen == 1 {
		// Every span of a cycle loses its parent, so that the result does not depend on where the
		// walk began.
		for k := len(t.walk) - 1; ; k-- {
			n := &t.nodes[t.walk[k]]
			n.up = none
			n.faults |= cycle
			if t.walk[k] == i {
				break
			}
		}
	}
	for k := len(t.walk) - 1; k >= 0; k-- {
		t.settle(t.walk[k], p)
	}
}
