package collector

import (
	"math"

	"github.com/trimtab/trimtab"
)

// ApplyJaegerTag applies a tag in the OpenTracing conventions, which Jaeger follows, to its span:
// span.kind, error, the sampling threshold in [TraceStateTag], and the attributes of
// [ApplyAttribute].
func ApplyJaegerTag(s *trimtab.Span, peer *Peer, key, value []byte) {
	switch string(key) {
	case "error":
		if string(value) == "true" {
			s.Flags |= trimtab.FlagError
		}
	case "span.kind":
		s.Kind = KindNamed(value)
	case TraceStateTag:
		ApplyTraceState(value, s)
	default:
		ApplyAttribute(s, peer, key, value)
	}
}

// ApplyAttribute applies an attribute of OpenTelemetry's semantic conventions to its span:
// whether the span only waited for messages, or confirmed them, and which peer it calls. It
// ignores other attributes.
func ApplyAttribute(s *trimtab.Span, peer *Peer, key, value []byte) {
	switch string(key) {
	case "messaging.operation", "messaging.operation.type":
		switch string(value) {
		case "receive", "poll", "settle":
			s.Flags |= trimtab.FlagReceive
		}
	default:
		peer.Observe(key, value)
	}
}

// KindNamed returns the kind with the lower-case name, else SpanUnspecified.
func KindNamed[T string | []byte](name T) trimtab.SpanKind {
	switch string(name) {
	case "internal":
		return trimtab.SpanInternal
	case "server":
		return trimtab.SpanServer
	case "client":
		return trimtab.SpanClient
	case "producer":
		return trimtab.SpanProducer
	case "consumer":
		return trimtab.SpanConsumer
	}
	return trimtab.SpanUnspecified
}

// AddTimes returns start + duration, in nanoseconds, without wrapping around.
func AddTimes(start, duration int64) int64 {
	end := start + duration
	switch {
	case duration > 0 && end < start:
		return math.MaxInt64
	case duration < 0 && end > start:
		return math.MinInt64
	}
	return end
}
