package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
)

// fault is why a query has no value. kind is the metric's label.
type fault struct{ kind, reason string }

func (f *fault) Error() string { return f.reason }

// The kinds of fault.
const (
	kindEmpty       = "empty"
	kindSeveral     = "several"
	kindNotFinite   = "not_finite"
	kindNegative    = "negative"
	kindType        = "type"
	kindRefused     = "refused"
	kindTimeout     = "timeout"
	kindUnreachable = "unreachable"
	kindMalformed   = "malformed"
	kindTooLarge    = "too_large"
	kindGone        = "gone"
	kindGap         = "gap"
)

// reply is the API's answer:
//
//	{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.1,"3"]}]}}
//	{"status":"error","errorType":"bad_data","error":"…"}
type reply struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	Data      struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
	Warnings []string `json:"warnings"`
	Infos    []string `json:"infos"`
}

// series is one element of a vector.
type series struct {
	Value     *point          `json:"value"`
	Histogram json.RawMessage `json:"histogram"`
}

// point is [time, "value"].
type point struct{ value float64 }

// UnmarshalJSON reads [1700000000.1,"3"]; the value is a text so that it can
// be NaN or Inf.
func (p *point) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	var at float64
	var text string
	if len(pair) != 2 {
		return fmt.Errorf("value of %d parts, want time and value", len(pair))
	}
	if err := errors.Join(json.Unmarshal(pair[0], &at), json.Unmarshal(pair[1], &text)); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return fmt.Errorf("value %.40q is not a number", text)
	}
	p.value = v
	return nil
}

// readAnswer reads one answer into a finite value >= 0, or says why there is none.
func readAnswer(status int, contentType string, body []byte) (value float64, warnings []string, err error) {
	media, _, _ := mime.ParseMediaType(contentType)
	var r reply
	if jsonErr := json.Unmarshal(body, &r); jsonErr != nil || r.Status == "" {
		return 0, nil, notAnAnswer(status, media, jsonErr)
	}
	warnings = slices.Concat(r.Warnings, r.Infos)
	if r.Status != "success" || status/100 != 2 {
		if r.ErrorType == "timeout" || r.ErrorType == "canceled" {
			return 0, warnings, &fault{kindTimeout, clip(fmt.Sprintf("Prometheus gave up: %s", r.Error))}
		}
		return 0, warnings, &fault{kindRefused, clip(fmt.Sprintf("Prometheus answers HTTP %d, %s: %s", status, r.ErrorType, r.Error))}
	}
	value, err = r.value()
	return value, warnings, err
}

// notAnAnswer describes a body that is not the API's.
func notAnAnswer(status int, media string, cause error) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &fault{kindRefused, fmt.Sprintf("HTTP %d: check the authentication under prometheus", status)}
	case status == http.StatusNotFound:
		return &fault{kindRefused, "HTTP 404: is the URL that of Prometheus, with its path prefix?"}
	case status/100 != 2:
		return &fault{kindRefused, fmt.Sprintf("HTTP %d", status)}
	case media != "application/json":
		return &fault{kindMalformed, clip(fmt.Sprintf("the answer is %q, not JSON: is the URL that of Prometheus?", media))}
	case cause != nil:
		return &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", cause))}
	}
	return &fault{kindMalformed, "the answer has no status"}
}

// value reads the one number of a result.
func (r *reply) value() (float64, error) {
	var p point
	switch r.Data.Type {
	case "scalar":
		if err := json.Unmarshal(r.Data.Result, &p); err != nil {
			return 0, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
		}
	case "vector":
		var all []series
		if err := json.Unmarshal(r.Data.Result, &all); err != nil {
			return 0, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
		}
		switch {
		case len(all) == 0:
			return 0, &fault{kindEmpty, "empty result"}
		case len(all) > 1:
			return 0, &fault{kindSeveral, fmt.Sprintf("%d series: aggregate with sum()", len(all))}
		case all[0].Value == nil && all[0].Histogram != nil:
			return 0, &fault{kindType, "the result is a histogram: use histogram_fraction() or histogram_quantile()"}
		case all[0].Value == nil:
			return 0, &fault{kindMalformed, "the answer has a series without a value"}
		}
		p = *all[0].Value
	case "matrix":
		return 0, &fault{kindType, "the result is a range of values: use rate(), or remove the range"}
	case "string":
		return 0, &fault{kindType, "the result is a text, not a number"}
	default:
		return 0, &fault{kindMalformed, clip(fmt.Sprintf("unknown result type %q", r.Data.Type))}
	}
	switch {
	case math.IsNaN(p.value) || math.IsInf(p.value, 0):
		return 0, &fault{kindNotFinite, fmt.Sprintf("the value is %v", p.value)}
	case p.value < 0:
		return 0, &fault{kindNegative, fmt.Sprintf("the value is negative: %v", p.value)}
	}
	return p.value, nil
}

// clip bounds a reason that comes from elsewhere to 200 characters.
func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
