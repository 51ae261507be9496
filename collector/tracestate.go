package collector

import (
	"bytes"
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
// fraction, trailing zeros left out. A tracestate without a readable
// threshold changes nothing.
func ApplyTraceState(state []byte, s *trimtab.Span) {
	if !bytes.Contains(state, []byte("th:")) {
		return
	}
	for member := range strings.SplitSeq(string(state), ",") {
		value, found := strings.CutPrefix(strings.TrimSpace(member), "ot=")
		if !found {
			continue
		}
		for field := range strings.SplitSeq(value, ";") {
			digits, found := strings.CutPrefix(field, "th:")
			if !found {
				continue
			}
			if th, ok := threshold(digits); ok {
				s.Adjusted = AdjustedCount(th)
				s.Flags |= trimtab.FlagAdjusted
			}
			return
		}
	}
}

// threshold returns the 56-bit number that the digits stand for.
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
