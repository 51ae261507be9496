package collector

import (
	"errors"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// Reason says why a span was rejected.
type Reason uint8

// The reasons, with the label that counts them.
const (
	// BadTraceID says that the trace ID is missing, all zero, or not of 16 bytes.
	BadTraceID Reason = iota
	// BadSpanID says that the span ID is missing, all zero, or not of 8 bytes.
	BadSpanID
	// BadParentID says that the parent ID is neither missing nor of 8 bytes.
	BadParentID
	// UnknownKey says that the span is under a key that its format does not have.
	UnknownKey
	// TooLarge says that the request needs more space in frames than any honest request.
	TooLarge
	// Overloaded says that too many spans were waiting; the sender was asked to retry.
	Overloaded
	// Unanswered says that no analyzer confirmed the spans in time; the sender was asked to retry.
	Unanswered
	reasons
)

// String returns the reason's label.
func (r Reason) String() string {
	switch r {
	case BadTraceID:
		return "trace_id"
	case BadSpanID:
		return "span_id"
	case BadParentID:
		return "parent_id"
	case UnknownKey:
		return "unknown_key"
	case TooLarge:
		return "too_large"
	case Overloaded:
		return "overloaded"
	case Unanswered:
		return "unanswered"
	}
	return "unknown"
}

// meaning tells a sender what to change; "": the label says it.
func (r Reason) meaning() string {
	switch r {
	case BadTraceID:
		return "not 16 bytes or 32 hexadecimal digits, or zero"
	case BadSpanID, BadParentID:
		return "not 8 bytes or 16 hexadecimal digits, or zero"
	case TooLarge:
		return "the request has more than this receiver holds at one time"
	}
	return ""
}

// Refusal is the error of [Source.Send] for spans that the sender still owns
// and should send again after RetryAfter. It is [trimtab.ErrRefused].
type Refusal struct {
	Reason     Reason
	RetryAfter time.Duration
	// Cause is the error of the bus, nil for Overloaded.
	Cause error
}

// Error names the reason and the pause.
func (r *Refusal) Error() string {
	if r.Cause != nil {
		return fmt.Sprintf("send spans: %v, retry after %v: %v", r.Reason, r.RetryAfter, r.Cause)
	}
	return fmt.Sprintf("send spans: %v, retry after %v", r.Reason, r.RetryAfter)
}

// Unwrap makes errors.Is see ErrRefused and the cause.
func (r *Refusal) Unwrap() []error { return []error{trimtab.ErrRefused, r.Cause} }

// AsRefusal returns the refusal in err, or nil.
func AsRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
