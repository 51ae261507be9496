package trimtab

import (
	"encoding/hex"
	"slices"

	"github.com/trimtab/trimtab/internal/valid"
)

// MaxExemplars bounds the exemplars of one sketch and of one estimate.
const MaxExemplars = 4

// Exemplar names one slow request, so that a decision can refer to a request that showed the need
// for it.
type Exemplar struct {
	// TraceID and SpanID are those of the request's entry span, in 32 and 16
	// lower-case hexadecimal digits; neither is all zeros.
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
	// Latency is the duration of the entry span.
	Latency Seconds `json:"latency_s"`
}

// Validate checks the ids and the latency.
func (e *Exemplar) Validate() error {
	if !isID(e.TraceID, 16) || !isID(e.SpanID, 8) {
		return Invalidf("exemplar: trace %.40q, span %.40q: want 32 and 16 hexadecimal digits", e.TraceID, e.SpanID)
	}
	return valid.NonNegative("latency of exemplar", float64(e.Latency))
}

// isID reports whether s is a valid id of n bytes.
func isID(s string, n int) bool {
	if len(s) != 2*n {
		return false
	}
	b, err := hex.DecodeString(s)
	return err == nil && hex.EncodeToString(b) == s && slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// validExemplars checks a list.
func validExemplars(list []Exemplar) error {
	if len(list) > MaxExemplars {
		return Invalidf("%d exemplars, limit %d", len(list), MaxExemplars)
	}
	for i := range list {
		if err := list[i].Validate(); err != nil {
			return err
		}
	}
	return nil
}
