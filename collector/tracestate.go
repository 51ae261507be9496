package collector

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// TraceStateTag is the tag in which Jaeger's and Zipkin's formats, which have no field
// for it, carry a span's tracestate.
//
// Source: opentelemetry-collector-contrib, pkg/translator/jaeger and pkg/translator/zipkin.
const TraceStateTag = "w3c.tracestate"

// ApplyTraceState sets the adjusted count of s from a W3C tracestate such as
//
//	vendor=x,ot=rv:6e6d1a75832a2f;th:c
//
// where th is the rejection threshold: up to 14 hexadecimal digits of a 56-bit
// fraction, trailing zeros left out. Before there were thresholds, p was the exponent of
// the count, ot=p:3;r:9, with 63 for none, and valid up to r. A tracestate with neither
// changes nothing.
//
// Source: OpenTelemetry specification, "TraceState: Probability Sampling", and its version
// of 1.12 with p-values.
func ApplyTraceState(state []byte, s *trimtab.Span) {
	if !bytes.Contains(state, []byte("ot=")) {
		return
	}
	for member := range strings.SplitSeq(string(state), ",") {
		value, found := strings.CutPrefix(strings.TrimSpace(member), "ot=")
		if !found {
			continue
		}
		exponent, bound := int64(-1), int64(mostExponent)
		for field := range strings.SplitSeq(value, ";") {
			name, digits, _ := strings.Cut(field, ":")
			switch name {
			case "th":
				if th, ok := threshold(digits); ok {
					s.Adjusted = AdjustedCount(th)
					s.Flags |= trimtab.FlagAdjusted
				}
				return
			case "p":
				exponent = decimal(digits)
			case "r":
				bound = decimal(digits)
			}
		}
		if exponent >= 0 && exponent <= min(bound, mostExponent) {
			s.Adjusted = float32(math.Min(maxAdjusted, math.Ldexp(1, int(exponent))))
			s.Flags |= trimtab.FlagAdjusted
		}
		return
	}
}

// mostExponent is the largest p-value that is a count.
const mostExponent = 62

// decimal returns a number of one or two digits, -1 for anything else.
func decimal(digits string) int64 {
	n, err := strconv.ParseUint(digits, 10, 7)
	if err != nil || len(digits) > 2 {
		return -1
	}
	return int64(n)
}

// threshold returns the 56-bit number that the digits encode.
func threshold(digits string) (uint64, bool) {
	const most = 14
	if len(digits) < 1 || len(digits) > most || strings.ToLower(digits) != digits {
		return 0, false
	}
	th, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, false
	}
	return th << (4 * (most - len(digits))), true
}
