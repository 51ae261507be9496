package gate

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// maxAnswer bounds an answer, which has up to about 2,000 bytes.
const maxAnswer = 64 << 10

// form is how the gate's admin API says one kind of limit.
type form struct {
	path string
	// most is the largest limit that the gate accepts, and per how many values it has in 1.
	most, per float64
	// decode returns the limit of an answer, nil if there is none, and how long it stays, in
	// milliseconds.
	decode func(answer []byte) (v *float64, left float64, err error)
	// body is what sets a limit.
	body func(v float64, exact bool) []byte
}

// formOf returns the form of a resource: of concurrency the max of the envelope, in requests, whose rate
// is left to others; of the rate the requests admitted per second, apart from the envelope.
func formOf(resource string) form {
	if resource == trimtab.Rate {
		return form{path: "/v1/rate", most: 1e9, per: 1000, decode: decodeRate, body: func(v float64, exact bool) []byte {
			return fmt.Appendf(nil, `{"rate":%.3f,"exact":%t,"lease_ms":%d}`, v, exact, Lease.Milliseconds())
		}}
	}
	return form{path: "/v1/limit", most: 1 << 20, per: 1, decode: decodeLimit, body: func(v float64, _ bool) []byte {
		return fmt.Appendf(nil, `{"min":1,"max":%.0f,"rate":null,"lease_ms":%d}`, v, Lease.Milliseconds())
	}}
}

// envelope is the range in which the gate's rule may move the limit. With a nil Max the range has
// no upper end.
type envelope struct {
	Min       float64  `json:"min"`
	Max       *float64 `json:"max"`
	Rate      *float64 `json:"rate"`
	LeaseLeft float64  `json:"lease_left_ms"`
}

// decodeLimit decodes the answer of /v1/limit. It is an error if the document has no envelope.
func decodeLimit(b []byte) (v *float64, left float64, err error) {
	var l struct {
		Envelope *envelope `json:"envelope"`
	}
	if err := decode(b, "envelope", &l); err != nil || l.Envelope == nil {
		return nil, 0, err
	}
	return l.Envelope.Max, l.Envelope.LeaseLeft, nil
}

// decodeRate decodes the answer of /v1/rate.
func decodeRate(b []byte) (v *float64, left float64, err error) {
	var r struct {
		Rate      *float64 `json:"rate"`
		LeaseLeft float64  `json:"lease_left_ms"`
	}
	err = decode(b, "in_force", &r)
	return r.Rate, r.LeaseLeft, err
}

// decode decodes a document that must have a field.
func decode(b []byte, field string, into any) error {
	var raw map[string]json.RawMessage
	err := json.Unmarshal(b, &raw)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return trimtab.Invalidf("read the limit of the gate: %w", err)
	}
	if _, ok := raw[field]; !ok {
		return trimtab.Invalidf("%.60q is no answer of a gate: is this its admin address?", b)
	}
	return nil
}

// parse returns the limit of an answer, and how long it stays, in milliseconds.
func (f *form) parse(answer []byte) (v trimtab.Amount, left float64, err error) {
	told, left, err := f.decode(answer)
	switch {
	case err != nil:
		return trimtab.Unlimited(), 0, err
	case !(left >= 0):
		return trimtab.Unlimited(), 0, trimtab.Invalidf("the gate has %v ms of a lease left", left)
	case told == nil:
		return trimtab.Unlimited(), left, nil
	case f.per == 1 && *told != math.Trunc(*told):
		return trimtab.Unlimited(), 0, trimtab.Invalidf("the gate has a limit of %v, want a whole number", *told)
	case !(*told*f.per >= 1 && *told <= f.most):
		return trimtab.Unlimited(), 0, trimtab.Invalidf("the gate has a limit of %v, want %v to %.0f", *told, 1/f.per, f.most)
	}
	return trimtab.Units(*told), left, nil
}
