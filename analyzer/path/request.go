package path

import (
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Request is one request with its root span, and where its time was spent.
type Request struct {
	Trace [16]byte
	// Start and End are the times of the root span, in Unix ns.
	Start, End int64
	// Adjusted is the number of requests that this one stands for under sampling.
	Adjusted float64
	Failed   bool
	// Visits has one element per visit to a component. Their times on the critical path, OnPath and
	// OnPathWait, add up to End − Start.
	Visits []Visit
}

// Latency returns the duration of the request.
func (r *Request) Latency() time.Duration { return time.Duration(r.End - r.Start) }

// Visit is one visit of a request to one process: connected spans of that process, from the first
// until its answer.
type Visit struct {
	// Caller is the component that called; "" for the first visit.
	Caller, Component string
	// Process distinguishes instances of the component; "" if spans do not.
	Process string
	// Host is where it ran: k8s.node.name or host.name; "": unknown.
	Host string
	// Called reports whether the caller has a span for the call; only then is Wait known.
	Called bool
	// Peer: the component sends no spans, and the caller's span names it. Own is then the whole
	// duration of that span.
	Peer bool
	// Own is the time in the process outside the calls that it made. Wait is the part of the
	// caller's span outside the callee's span: network, queues, and the time until the caller gets
	// a CPU to read the answer.
	Own, Wait time.Duration
	// OnPath and OnPathWait are the parts of Own and Wait on the critical path. The path is
	// followed backwards from the end of the request: first through the call that ended last, then
	// through the call that ended last before that one began, and so on.
	OnPath, OnPathWait time.Duration
	// Slack is how much longer a visit off the critical path could have been without making the
	// request longer.
	Slack time.Duration

	// place is where the visit ran, and from is where its caller ran; nowhere without
	// a caller.
	place, from placeID
}

// processKeys returns the attributes that name the process of a resource, the most specific first.
func processKeys() []string {
	return []string{"service.instance.id", "k8s.pod.name", "container.id", "host.name", "hostname", "ip"}
}

// processOf returns a suffix that distinguishes the process of a resource from others of its
// service. It is "" if Requests is not set or the resource names no process.
func (c *Config) processOf(attrs []trimtab.Attr) string {
	if c.Requests == nil {
		return ""
	}
	for _, key := range processKeys() {
		if v, ok := attribute(attrs, key); ok && v != "" {
			return "\x00" + cleanName(v)
		}
	}
	return ""
}

// locate sets the names of the place where a visit ran.
func (v *Visit) locate(p *places, id placeID) {
	v.place = id
	if id == nowhere {
		v.Component = "unknown"
		return
	}
	v.Component, v.Process, _ = strings.Cut(p.places[id].component, "\x00")
	v.Host = p.places[id].host
}

// reportRequests calls Requests for the requests of the loaded trace that are within no other: those
// of its root, or of the spans that stand in for a missing root.
func (p *Path) reportRequests() {
	if p.config.Requests == nil {
		return
	}
	t, v := &p.tree, &p.visitor
	v.begin(t, p.places)
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.duplicate || !n.known || n.reported || n.role == innerRole {
			continue
		}
		v.visits = v.visits[:0]
		v.from(int32(i))
		p.config.Requests(&Request{
			Trace: t.trace, Start: n.start, End: n.end, Adjusted: float64(n.adjusted),
			Failed: n.flags&trimtab.FlagError != 0, Visits: v.visits,
		})
	}
}
