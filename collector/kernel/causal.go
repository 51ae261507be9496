package kernel

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/trimtab/trimtab"
)

// Visit is a request that a component served, or a call that it made.
type Visit struct {
	trimtab.Span
	// Component is the index of the one that it is of.
	Component int
}

// maxSockets bounds the sockets that are followed; the longest silent is forgotten.
const maxSockets = 1 << 15

// Tracer builds visits from events. It reads no clock: time comes from the events and from Settle.
// It is not safe for concurrent use.
type Tracer struct {
	// settle is the time after its last byte at which an answer counts as complete, in nanoseconds.
	settle int64
	// seed makes the IDs of different tracers differ.
	seed uint64
	// listens reports whether a process serves at a port.
	listens func(process uint32, port uint16) bool
	// emit gets each visit that has ended. It keeps nothing of it.
	emit    func(*Visit)
	sockets map[end]*socket
	// open are the requests without an end, by process, in the order of their begins.
	open  map[uint32][]*socket
	count uint64
}

// end is one end of a connection.
type end struct {
	local, remote netip.AddrPort
	net           uint64
}

// socket is one end, and its last request or call.
type socket struct {
	end
	process, thread uint32
	component       int
	serves          bool
	// begun says that a visit is open; turned says that its answer has begun: a serving socket has
	// sent, or a calling one has received.
	begun, turned bool
	visit         Visit
	last          int64
}

// NewTracer returns a tracer that emits visits.
func NewTracer(settle int64, seed uint64, listens func(process uint32, port uint16) bool, emit func(*Visit)) *Tracer {
	return &Tracer{settle: settle, seed: seed, listens: listens, emit: emit, sockets: map[end]*socket{}, open: map[uint32][]*socket{}}
}

// Add adds one event of a process of a component.
func (t *Tracer) Add(component int, e *Event) {
	s := t.socketOf(component, e)
	s.last, s.thread = max(s.last, e.Time), e.Thread
	asks := e.Sent != s.serves // a request comes in, a call goes out
	switch {
	case asks && (!s.begun || s.turned):
		t.end(s)
		t.begin(s, e)
	case asks: // more of the same question
	case s.begun:
		s.turned = true
		s.visit.End = max(s.visit.End, e.Time)
	}
}

// socketOf returns the socket of an event, a new one if the process is another.
func (t *Tracer) socketOf(component int, e *Event) *socket {
	at := end{e.Local, e.Remote, e.Net}
	s := t.sockets[at]
	if s != nil && s.process == e.Process {
		return s
	}
	if s != nil {
		t.end(s)
	} else if len(t.sockets) >= maxSockets {
		t.forget()
	}
	s = &socket{end: at, process: e.Process, component: component, serves: t.listens(e.Process, e.Local.Port())}
	t.sockets[at] = s
	return s
}

// begin starts a request or a call, and finds its parent.
func (t *Tracer) begin(s *socket, e *Event) {
	t.count++
	s.begun, s.turned = true, false
	s.visit = Visit{Component: s.component, Span: trimtab.Span{Start: e.Time, End: e.Time, Adjusted: 1, Kind: trimtab.SpanClient}}
	binary.BigEndian.PutUint64(s.visit.SpanID[:], mix(t.seed+t.count))
	var parent *Visit
	if s.serves {
		s.visit.Kind = trimtab.SpanServer
		if caller := t.sockets[end{s.remote, s.local, s.net}]; caller != nil && caller.begun && !caller.serves {
			parent = &caller.visit
		}
		t.open[s.process] = append(t.open[s.process], s)
	} else {
		parent = t.cause(s, e)
	}
	if parent != nil {
		s.visit.TraceID, s.visit.Parent = parent.TraceID, parent.SpanID
		return
	}
	binary.BigEndian.PutUint64(s.visit.TraceID[:], mix(t.seed^t.count))
	binary.BigEndian.PutUint64(s.visit.TraceID[8:], mix(t.seed+^t.count))
}

// cause returns the request to which a call belongs; nil: none is known.
func (t *Tracer) cause(s *socket, e *Event) *Visit {
	open := t.open[s.process]
	of := func(fits func(*socket) bool) *Visit {
		for _, r := range slices.Backward(open) {
			if !r.turned && fits(r) {
				return &r.visit
			}
		}
		return nil
	}
	if v := of(func(r *socket) bool { return r.thread == e.Thread }); v != nil {
		return v
	}
	return of(func(*socket) bool { return true })
}

// end ends the visit of a socket. It drops a visit without an answer.
func (t *Tracer) end(s *socket) {
	if !s.begun {
		return
	}
	if s.turned {
		t.emit(&s.visit)
	}
	s.begun, s.turned = false, false
	if s.serves {
		open := slices.DeleteFunc(t.open[s.process], func(o *socket) bool { return o == s })
		if t.open[s.process] = open; len(open) == 0 {
			delete(t.open, s.process)
		}
	}
}

// forgetAfter is the number of settling times after which a silent socket is forgotten.
const forgetAfter = 300

// Settle ends visits whose answer has been silent for the settling time, and forgets sockets
// without events for long.
func (t *Tracer) Settle(now int64) {
	for at, s := range t.sockets {
		switch silent := now - s.last; {
		case silent >= forgetAfter*t.settle:
			t.end(s)
			delete(t.sockets, at)
		case silent >= t.settle && s.turned:
			t.end(s)
		}
	}
}

// forget drops the eighth of the sockets that was silent longest.
func (t *Tracer) forget() {
	all := make([]*socket, 0, len(t.sockets))
	for _, s := range t.sockets {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *socket) int { return cmp.Compare(a.last, b.last) })
	for _, s := range all[:len(all)/8+1] {
		t.end(s)
		delete(t.sockets, s.end)
	}
}

// mix spreads the bits of a number (splitmix64); it is never 0.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return max(1, x^x>>31)
}
