package gate

import (
	"encoding/binary"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Bounds on the spans sent per second. Above them each span that is sent stands for several
// requests, and says for how many.
const answeredSpans, refusedSpans = 1000, 20

// sampler limits the traces per second. It keeps a trace if the random number in its trace ID is at
// least a threshold, so that all samplers of this kind keep the same traces. A trace that the
// client did not sample gets no span.
//
// Source: OpenTelemetry specification, "TraceState: Probability Sampling".
type sampler struct {
	perSecond float64
	rate      float64 // recent requests per second
	last      uint64
	// rejected is the threshold: the number of traces out of 2^56 that get no span.
	rejected atomic.Uint64
}

// observe updates the request rate, given the total number of requests so far.
func (s *sampler) observe(total uint64, took time.Duration) {
	s.rate += (float64(total-s.last)/took.Seconds() - s.rate) / 2
	s.last = total
	s.rejected.Store(uint64((1 - min(1, s.perSecond/max(s.rate, 1e-9))) * (1 << 56)))
}

// Description implements the SDK's Sampler.
func (*sampler) Description() string { return "trimtab gate" }

// ShouldSample implements the SDK's Sampler.
func (s *sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	state := parent.TraceState()
	if parent.IsValid() && !parent.IsSampled() {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: state}
	}
	id := p.TraceID
	random := binary.BigEndian.Uint64(id[8:]) & (1<<56 - 1)
	var before uint64
	var rest []string
	for field := range strings.SplitSeq(state.Get("ot"), ";") {
		name, digits, _ := strings.Cut(field, ":")
		switch {
		case name == "th":
			before = fraction(digits)
			continue
		case name == "rv" && len(digits) == 14:
			random = fraction(digits)
		}
		if field != "" {
			rest = append(rest, field)
		}
	}
	threshold := max(before, s.rejected.Load())
	if random < threshold {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: state}
	}
	if threshold > before {
		digits := strconv.FormatUint(threshold|1<<56, 16)[1:] // 14 hexadecimal digits
		rest = append(rest, "th:"+strings.TrimRight(digits, "0"))
		if next, err := state.Insert("ot", strings.Join(rest, ";")); err == nil {
			state = next
		}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: state}
}

// fraction parses up to 14 hexadecimal digits as a 56-bit fraction. It returns 0 if they are
// invalid.
func fraction(digits string) uint64 {
	if len(digits) == 0 || len(digits) > 14 {
		return 0
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0
	}
	return n << (4 * (14 - len(digits)))
}
