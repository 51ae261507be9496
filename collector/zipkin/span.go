package zipkin

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
)

// span is one span that is being read. Times are in nanoseconds.
type span struct {
	trimtab.Span
	service       []byte
	shared        bool
	duration      int64
	timed, lasted bool
	// state is the tracestate; kind and failed are the values of the tags kind and error.
	state  []byte
	kind   trimtab.SpanKind
	failed bool
	peer   *collector.Peer
}

// tag applies a tag to its span.
func (s *span) tag(key, value []byte) {
	switch string(key) {
	case "error": // its presence means an error, whatever its text
		s.failed = string(value) != "false"
	case "span.kind": // for kinds that Zipkin does not have
		s.kind = collector.KindNamed(value)
	case collector.TraceStateTag:
		s.state = value
	default:
		collector.ApplyAttribute(&s.Span, s.peer, key, value)
	}
}

// pack adds the span to p.
func (s *span) pack(cache *collector.ResourceCache, p *collector.Packer) {
	s.Adjusted = 1
	if s.Kind == trimtab.SpanUnspecified {
		if s.Kind = s.kind; s.shared && s.Kind == trimtab.SpanUnspecified {
			s.Kind = trimtab.SpanServer // only a span that answers a client shares its ID
		}
	}
	if s.failed {
		s.Flags |= trimtab.FlagError
	}
	collector.ApplyTraceState(s.state, &s.Span)
	s.peer.Weigh(&s.Span)
	if s.timed && s.lasted {
		s.End = collector.AddTimes(s.Start, s.duration)
	}
	r, _ := cache.Get(s.service, serviceOf) // never an error
	p.SetResource(r)
	p.AddCall(&s.Span, s.peer.Name())
}

// serviceOf returns the resource of a service.
func serviceOf(name []byte) (*collector.Resource, error) {
	if len(name) == 0 {
		return collector.NewResource(nil), nil
	}
	return collector.NewResource([]trimtab.Attr{{Key: "service.name", Value: string(name)}}), nil
}

// portOf returns a number as a port, 0 if it is not a valid one.
func portOf[T int64 | uint64](n T) uint16 {
	if n < 0 || n > math.MaxUint16 {
		return 0
	}
	return uint16(n)
}
