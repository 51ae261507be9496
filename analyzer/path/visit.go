package path

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// call is one call that a visit makes. Its times are those of the caller's client span, or those of
// the callee's span if there is no client span.
type call struct {
	start, end int64
	// client is the caller's span, or none. callee is used only without a client span.
	client, callee int32
}

// span is the interval [start, end] of a visit, by the clock of its process. Its part [start,
// limit] is on the critical path; limit = start: none of it.
type span struct{ start, end, limit int64 }

// shift moves s by d.
func (s span) shift(d int64) span { return span{s.start + d, s.end + d, s.limit + d} }

// part returns the length of [from, to], and how much of it is on the critical path.
func (s span) part(from, to int64) (all, onPath time.Duration) {
	return time.Duration(max(0, to-from)), time.Duration(max(0, min(to, s.limit)-from))
}

// pending is a visit that enter has not divided yet.
type pending struct {
	node  int32
	in    span
	visit Visit
}

// visitor divides the time of requests among the visits to their components. It is reused for all
// requests, to save memory.
type visitor struct {
	tree   *tree
	places *places
	// first[i] is 1 + the first child of node i, next[i] is 1 + its next sibling; 0: none.
	first, next []int32
	pending     []pending
	calls       []call
	locals      []int32
	callees     []int32
	visits      []Visit
	stays       []stay
	// stayOf[p] is 1 + the index in stays of place p. It may be left over from another request; the
	// stay found there then has another place.
	stayOf []uint32
}

// begin lists the children of each node, except duplicates and spans without known times, and marks
// the spans that have spans of another place below them.
func (v *visitor) begin(t *tree, p *places) {
	v.tree, v.places = t, p
	v.first = append(v.first[:0], make([]int32, len(t.nodes))...)
	v.next = append(v.next[:0], make([]int32, len(t.nodes))...)
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		if n.duplicate || n.up == none {
			continue
		}
		if n.place != t.nodes[n.up].place {
			t.answer(n.up)
		}
		if n.known {
			v.next[i], v.first[n.up] = v.first[n.up], int32(i)+1
		}
	}
}

// from divides the request that begins at root into visits. It does not recurse, since a trace may
// be as deep as its number of spans.
func (v *visitor) from(root int32) {
	n := &v.tree.nodes[root]
	v.pending = append(v.pending[:0], pending{node: root, in: span{n.start, n.end, n.end}})
	for len(v.pending) > 0 {
		p := v.pending[len(v.pending)-1]
		v.pending = v.pending[:len(v.pending)-1]
		v.enter(&p)
	}
}

// enter divides one visit, from its end backwards: time within calls belongs to the callees, the
// rest to the visit itself.
func (v *visitor) enter(p *pending) {
	v.findCalls(p.node)
	visit, in := &p.visit, p.in
	visit.locate(v.places, v.tree.nodes[p.node].place)
	// [reached, in.end] has been assigned already. block is the time at which the visit could
	// continue after the current group of concurrent calls: a call that ends d before block has
	// slack d.
	reached, block := in.end, in.end
	for _, c := range v.calls {
		start, end := max(c.start, in.start), min(c.end, in.end)
		if start > end {
			continue
		}
		if end < reached {
			all, onPath := in.part(end, reached)
			visit.Own += all
			visit.OnPath += onPath
			block = end
		}
		part := span{start, end, max(start, min(end, reached, in.limit))}
		slack := visit.Slack
		if end > reached || start >= reached {
			slack += time.Duration(block - end)
		}
		v.follow(&c, part, visit, slack)
		reached = min(reached, start)
	}
	all, onPath := in.part(in.start, reached)
	visit.Own += all
	visit.OnPath += onPath
	v.visits = append(v.visits, *visit)
}

// findCalls collects the calls of the visit that begins at node, last end first.
func (v *visitor) findCalls(node int32) {
	v.calls = v.calls[:0]
	v.locals = append(v.locals[:0], node)
	for len(v.locals) > 0 {
		i := v.locals[len(v.locals)-1]
		v.locals = v.locals[:len(v.locals)-1]
		n := &v.tree.nodes[i]
		if v.calling(i, node) {
			v.calls = append(v.calls, call{n.start, n.end, i, none})
			continue
		}
		for k := v.first[i]; k != 0; k = v.next[k-1] {
			kid := &v.tree.nodes[k-1]
			if kid.place == n.place {
				v.locals = append(v.locals, k-1)
			} else {
				v.calls = append(v.calls, call{kid.start, kid.end, none, k - 1})
			}
		}
	}
	slices.SortFunc(v.calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(b.end, a.end), cmp.Compare(a.start, b.start),
			cmp.Compare(v.idOf(a), v.idOf(b)))
	})
}

// idOf returns an id that orders calls of the same times, independent of their arrival.
func (v *visitor) idOf(c call) uint64 {
	return v.tree.nodes[max(c.client, c.callee)].id
}

// calling reports whether span i of the visit that begins at node is a call to another process. It
// is if its kind says so and the callee sent spans or is named, or if it has no kind and all spans
// below it are of other processes. A span without a kind that begins the visit is the visit's
// server span.
func (v *visitor) calling(i, node int32) bool {
	n := &v.tree.nodes[i]
	if n.callsPeer() {
		return true
	}
	kind := trimtab.SpanKind(n.kind)
	says := kind == trimtab.SpanClient || kind == trimtab.SpanProducer
	if !says && (kind != trimtab.SpanUnspecified || i == node) {
		return false
	}
	away := false
	for k := v.first[i]; k != 0; k = v.next[k-1] {
		if v.tree.nodes[k-1].place != n.place {
			away = true
		} else if !says {
			return false
		}
	}
	return away
}

// follow adds the visits of one call, which fills part of its caller. Time of the caller's span
// outside the callees counts as waiting for the callee that ended last.
func (v *visitor) follow(c *call, part span, caller *Visit, slack time.Duration) {
	if c.client == none {
		v.pending = append(v.pending, pending{c.callee, part, Visit{Caller: caller.Component, from: caller.place, Slack: slack}})
		return
	}
	if n := &v.tree.nodes[c.client]; n.callsPeer() {
		visit := Visit{Caller: caller.Component, from: caller.place, Called: true, Peer: true, Slack: slack}
		visit.locate(v.places, n.peer)
		visit.Own, visit.OnPath = part.part(part.start, part.end)
		v.visits = append(v.visits, visit)
		return
	}
	v.findCallees(c.client)
	first := len(v.pending)
	var wait, onPathWait time.Duration
	reached := part.end
	for _, k := range v.callees {
		moved := v.clock(&v.tree.nodes[c.client], k)
		kid := &v.tree.nodes[k]
		start, end := max(kid.start+moved, part.start), min(kid.end+moved, part.end)
		if start > end {
			continue // it ran after its caller had ended: asynchronous
		}
		if end < reached {
			all, onPath := part.part(end, reached)
			wait, onPathWait = wait+all, onPathWait+onPath
		}
		in := span{start, end, max(start, min(end, reached, part.limit))}
		v.pending = append(v.pending, pending{k, in.shift(-moved), Visit{Caller: caller.Component, from: caller.place, Called: true, Slack: slack}})
		reached = min(reached, start)
	}
	all, onPath := part.part(part.start, reached)
	wait, onPathWait = wait+all, onPathWait+onPath
	if len(v.pending) == first {
		visit := Visit{Caller: caller.Component, from: caller.place, Called: true, Slack: slack, Wait: wait, OnPathWait: onPathWait}
		visit.locate(v.places, v.tree.nodes[v.callees[0]].place)
		v.visits = append(v.visits, visit)
		return
	}
	v.pending[first].visit.Wait, v.pending[first].visit.OnPathWait = wait, onPathWait
}

// findCallees lists the spans of other processes below a client span, the last to end first.
func (v *visitor) findCallees(client int32) {
	v.callees = v.callees[:0]
	for k := v.first[client]; k != 0; k = v.next[k-1] {
		if v.tree.nodes[k-1].place != v.tree.nodes[client].place {
			v.callees = append(v.callees, k-1)
		}
	}
	slices.SortFunc(v.callees, func(a, b int32) int {
		x, y := &v.tree.nodes[a], &v.tree.nodes[b]
		return cmp.Or(cmp.Compare(y.end, x.end), cmp.Compare(x.start, y.start), cmp.Compare(x.id, y.id))
	})
}

// clock returns by how much the clock of callee k is behind its client's. A callee that is not
// longer than its client but extends outside it is centred, as in within. The spans keep their
// times.
func (v *visitor) clock(client *node, k int32) int64 {
	kid := &v.tree.nodes[k]
	if kid.start >= client.start && kid.end <= client.end || !kid.otherClock(client, v.places) {
		return 0
	}
	return client.start + (client.duration()-kid.duration())/2 - kid.start
}
