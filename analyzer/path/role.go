package path

import "github.com/trimtab/trimtab"

// role is the role of a span in its workload.
type role uint8

const (
	// innerRole: it is no request.
	innerRole role = iota
	// servedRole: it is a request with a SERVER or CONSUMER span.
	servedRole
	// startedRole: it is neither SERVER nor CONSUMER, and nothing in the workload called it. It is
	// a request only if its component never serves one: otherwise it is a poller, a heartbeat or a
	// job.
	startedRole
)

// settle sets the role of span i, whose parent must be settled already. A span that its parent did
// not wait for is detached from it, so that it takes none of the parent's time.
func (t *tree) settle(i int32, p *places) {
	n := &t.nodes[i]
	n.seen, n.top = 2, i
	kind := trimtab.SpanKind(n.kind)
	called, local := n.up != none, false
	if called {
		up := &t.nodes[n.up]
		local = up.workload == n.workload
		switch {
		case n.apart(up, p):
			if n.place != up.place && kind != trimtab.SpanConsumer { // until it is consumed, a message is the broker's
				t.answer(n.up)
			}
			n.up, n.reported = none, true
		default:
			n.reported = up.reported || up.role != innerRole
			if local {
				n.top, n.inRequest = up.top, up.inRequest
			}
		}
	}
	orphan := !called && n.parent != 0
	n.reported = n.reported || orphan && t.roots > 0
	switch {
	case n.inRequest:
	case n.serves():
		n.role, n.top, n.inRequest = servedRole, i, true
	case local, n.flags&trimtab.FlagReceive != 0:
	case orphan && kind != trimtab.SpanUnspecified:
		// It is a fragment of a request: the request counts at its server's span, which is missing.
		n.inRequest, n.reported = true, true
	case called && (kind == trimtab.SpanClient || kind == trimtab.SpanProducer):
		// It passes on a call, as a sidecar does.
	case !p.serves(n.place):
		n.role, n.inRequest = startedRole, true
	}
}

// serves reports whether n is the span of a served request: a call that was answered, or a
// message that was processed.
func (n *node) serves() bool {
	k := trimtab.SpanKind(n.kind)
	return k == trimtab.SpanServer || k == trimtab.SpanConsumer && n.flags&trimtab.FlagReceive == 0
}

// apart reports whether up did not wait for its child n: because n's reference says so
// (FOLLOWS_FROM), because n consumes a message, whose producer only waits for the broker, or
// because n began after up had ended.
func (n *node) apart(up *node, p *places) bool {
	if n.flags&trimtab.FlagFollowsFrom != 0 {
		return true
	}
	if trimtab.SpanKind(n.kind) == trimtab.SpanConsumer &&
		(trimtab.SpanKind(up.kind) == trimtab.SpanProducer || p.places[n.place].base != p.places[up.place].base) {
		return true
	}
	if n.start <= up.end || !n.known || !up.known || n.otherClock(up, p) {
		return false
	}
	n.faults |= outside
	return true
}

// otherClock reports whether n, which is not within its parent up, may have been measured by
// another clock: it is a call that took no longer than its caller measured, and is not known to
// be on the same host.
func (n *node) otherClock(up *node, p *places) bool {
	call := trimtab.SpanKind(n.kind) == trimtab.SpanServer && trimtab.SpanKind(up.kind) == trimtab.SpanClient
	message := trimtab.SpanKind(n.kind) == trimtab.SpanConsumer || trimtab.SpanKind(up.kind) == trimtab.SpanProducer
	return (call || n.place != up.place && !message) && n.duration() <= up.duration() && !p.sameHost(n.place, up.place)
}

// callsPeer reports whether n calls a named peer that sent no spans.
func (n *node) callsPeer() bool {
	k := trimtab.SpanKind(n.kind)
	return n.peer != nowhere && !n.answered && (k == trimtab.SpanClient || k == trimtab.SpanProducer)
}
