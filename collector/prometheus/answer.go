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

// series is one element of a vector. The labels host and instance name the copy of
// the workload that it is of.
type series struct {
	Metric struct {
		Host     string `json:"host"`
		Instance string `json:"instance"`
	} `json:"metric"`
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

// number is one value of an answer: of all of a workload, with place{}, or of one
// instance. err says why it is none.
type number struct {
	place
	value float64
	err   error
}

// place names one instance.
type place struct{ host, instance string }

// maxNumbers bounds the instances that one answer tells of.
const maxNumbers = 1000

// readAnswer reads one answer into numbers, at least one, of instances that differ;
// or says why there is none.
func readAnswer(status int, contentType string, body []byte) (all []number, warnings []string, err error) {
	media, _, _ := mime.ParseMediaType(contentType)
	var r reply
	if jsonErr := json.Unmarshal(body, &r); jsonErr != nil || r.Status == "" {
		return nil, nil, notAnAnswer(status, media, jsonErr)
	}
	warnings = slices.Concat(r.Warnings, r.Infos)
	if r.Status != "success" || status/100 != 2 {
		if r.ErrorType == "timeout" || r.ErrorType == "canceled" {
			return nil, warnings, &fault{kindTimeout, clip(fmt.Sprintf("Prometheus gave up: %s", r.Error))}
		}
		return nil, warnings, &fault{kindRefused, clip(fmt.Sprintf("Prometheus answers HTTP %d, %s: %s", status, r.ErrorType, r.Error))}
	}
	all, err = r.numbers()
	return all, warnings, err
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

// numbers reads what a result tells.
func (r *reply) numbers() ([]number, error) {
	switch r.Data.Type {
	case "scalar":
		var p point
		if err := json.Unmarshal(r.Data.Result, &p); err != nil {
			return nil, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
		}
		return one(number{value: p.value, err: p.fault()})
	case "vector":
		var all []series
		if err := json.Unmarshal(r.Data.Result, &all); err != nil {
			return nil, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
		}
		return numbersOf(all)
	case "matrix":
		return nil, &fault{kindType, "the result is a range of values: use rate(), or remove the range"}
	case "string":
		return nil, &fault{kindType, "the result is a text, not a number"}
	}
	return nil, &fault{kindMalformed, fmt.Sprintf("unknown result type %.40q", r.Data.Type)}
}

// numbersOf reads a vector: several series are of one instance each.
func numbersOf(all []series) ([]number, error) {
	if len(all) == 0 {
		return nil, &fault{kindEmpty, "empty result"}
	}
	several := &fault{kindSeveral, fmt.Sprintf("%d series: aggregate with sum(), or with sum by (host, instance)() for each instance", len(all))}
	if len(all) > maxNumbers {
		return nil, several
	}
	seen := map[place]bool{}
	var out []number
	for _, s := range all {
		var n number
		if len(all) > 1 { // a single one is of all, whatever labels are left on it
			n.place = place{s.Metric.Host, s.Metric.Instance}
			if n.host == "" || seen[n.place] {
				return nil, several
			}
			seen[n.place] = true
		}
		switch {
		case s.Value == nil && s.Histogram != nil:
			return nil, &fault{kindType, "the result is a histogram: use histogram_fraction() or histogram_quantile()"}
		case s.Value == nil:
			return nil, &fault{kindMalformed, "the answer has a series without a value"}
		}
		n.value, n.err = s.Value.value, s.Value.fault()
		out = append(out, n)
	}
	if len(out) == 1 {
		return one(out[0])
	}
	return out, nil
}

// one is an answer of one number, which is none where that is none.
func one(n number) ([]number, error) {
	if n.err != nil {
		return nil, n.err
	}
	return []number{n}, nil
}

// fault says why a value is none; nil: it is finite and >= 0.
func (p point) fault() error {
	switch {
	case math.IsNaN(p.value) || math.IsInf(p.value, 0):
		return &fault{kindNotFinite, fmt.Sprintf("the value is %v", p.value)}
	case p.value < 0:
		return &fault{kindNegative, fmt.Sprintf("the value is negative: %v", p.value)}
	}
	return nil
}

// clip bounds a reason that comes from elsewhere to 200 characters.
func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
