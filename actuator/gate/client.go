package gate

import (
	"context"
	"encoding/json"
	"math"
	"net/http"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/adminapi"
)

// maxAnswer bounds an answer, which has about 300 bytes.
const maxAnswer = 64 << 10

// limits is the JSON document that a gate returns from its limit API.
type limits struct {
	// Limit is the limit that the gate's own rule has set; nil: it set none.
	Limit    *float64  `json:"limit"`
	Envelope *envelope `json:"envelope"`
}

// envelope is the range in which the gate's rule may move the limit. With a nil Max the range has
// no upper end.
type envelope struct {
	Min       float64  `json:"min"`
	Max       *float64 `json:"max"`
	Rate      *float64 `json:"rate"`
	LeaseLeft float64  `json:"lease_left_ms"`
}

// max returns the largest number of requests that the envelope allows in service.
func (l *limits) max() trimtab.Amount {
	if l.Envelope == nil || l.Envelope.Max == nil {
		return trimtab.Unlimited()
	}
	return trimtab.Units(*l.Envelope.Max)
}

// parse decodes the document. It is an error if the document has no envelope.
func parse(b []byte) (l limits, err error) {
	var raw map[string]json.RawMessage
	if err = json.Unmarshal(b, &raw); err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return limits{}, trimtab.Invalidf("read the limit of the gate: %w", err)
	}
	if _, ok := raw["envelope"]; !ok {
		return limits{}, trimtab.Invalidf("%.60q is no answer of a gate to /v1/limit: is this its admin address?", b)
	}
	if v := l.max(); !v.Unlimited && !(v.Value >= 1 && v.Value <= most && v.Value == math.Trunc(v.Value)) {
		return limits{}, trimtab.Invalidf("the gate has a max of %v, want a whole number from 1 to %d", v, most)
	}
	if e := l.Envelope; e != nil && !(e.LeaseLeft >= 0) {
		return limits{}, trimtab.Invalidf("the gate has %v ms of a lease left", e.LeaseLeft)
	}
	return l, nil
}

// call sends one request to the gate and decodes the answer. body may be nil.
func call(ctx context.Context, gate, method string, body []byte) (limits, error) {
	api := adminapi.API{Name: "the gate", Start: "start `trimtab gate`, or name its admin address", Most: maxAnswer}
	b, err := api.Call(ctx, gate, method, "/v1/limit", body)
	if err != nil || method == http.MethodDelete && len(b) == 0 {
		return limits{}, err
	}
	return parse(b)
}
