package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// fault is the reason why a query has no value. kind is the metric's label.
type fault struct{ kind, reason string }

func (f *fault) Error() string { return f.reason }

// The kinds of fault, and of a value.
const (
	kindOK          = "ok"
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
	kindPartial     = "partial"
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
	// Warnings are remarks on the query, or name parts of the data that could not be read.
	Warnings []string `json:"warnings"`
	Infos    []string `json:"infos"`
	// IsPartial is set by a cluster of VictoriaMetrics if a storage node is missing.
	IsPartial bool `json:"isPartial"`
}

// partial returns which part of the data the answer lacks; nil: none. Thanos and Prometheus with
// remote read answer with what they have and name the rest in a warning. Remarks on the query, in
// the same list, begin with a fixed word.
func (r *reply) partial() error {
	for _, w := range r.Warnings {
		if !strings.HasPrefix(w, "PromQL warning") && !strings.HasPrefix(w, "PromQL info") && !strings.HasSuffix(w, " annotations omitted") {
			return &fault{kindPartial, clip("the answer is partial: " + w)}
		}
	}
	if r.IsPartial {
		return &fault{kindPartial, "the answer is partial: a part of the storage did not answer"}
	}
	return nil
}

// series is one element of a vector. The labels host and instance name the copy of the workload.
type series struct {
	Metric struct {
		Host     string `json:"host"`
		Instance string `json:"instance"`
		Job      string `json:"job"`
		Part     string `json:"trimtab"`
	} `json:"metric"`
	Value     *point          `json:"value"`
	Histogram json.RawMessage `json:"histogram"`
}

// point is [time, "value"]. The time is the one at which the server evaluated the
// expression, in seconds since 1970 by its clock.
type point struct{ at, value float64 }

// time returns the point's time; false: it is invalid.
func (p point) time() (time.Time, bool) {
	if !(p.at > 0 && p.at < maxTime) {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(math.Round(p.at * 1e6))), true
}

// maxTime bounds a time in seconds since 1970: the year 2500.
const maxTime = 530 * 366 * 24 * 3600

// UnmarshalJSON reads [1700000000.1,"3"]; the value is a text so that it can
// be NaN or Inf.
func (p *point) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	var text string
	if len(pair) != 2 {
		return fmt.Errorf("value of %d parts, want time and value", len(pair))
	}
	if err := errors.Join(json.Unmarshal(pair[0], &p.at), json.Unmarshal(pair[1], &text)); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return fmt.Errorf("value %.40q is not a number", text)
	}
	p.value = v
	return nil
}

// number is one value of an answer. With place{} it is of the whole workload, otherwise of one
// instance. err says why the value is missing.
type number struct {
	place
	value float64
	err   error
}

// place names one instance.
type place struct{ host, instance string }

// maxNumbers is the largest number of instances in one answer.
const maxNumbers = 1000

// readReply reads one answer, whose result is not yet decoded; or returns why it is none.
func readReply(status int, contentType string, body []byte) (*reply, error) {
	media, _, _ := mime.ParseMediaType(contentType)
	var r reply
	if jsonErr := json.Unmarshal(body, &r); jsonErr != nil || r.Status == "" {
		return nil, notAnAnswer(status, media, jsonErr)
	}
	if r.Status != "success" || status/100 != 2 {
		if r.ErrorType == "timeout" || r.ErrorType == "canceled" {
			return nil, &fault{kindTimeout, clip(fmt.Sprintf("Prometheus gave up: %s", r.Error))}
		}
		return nil, &fault{kindRefused, clip(fmt.Sprintf("Prometheus answers HTTP %d, %s: %s", status, r.ErrorType, r.Error))}
	}
	if err := r.partial(); err != nil {
		return nil, err
	}
	return &r, nil
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

// numbers decodes a result: at least one number, of different instances; or returns why there is
// none.
func (r *reply) numbers() ([]number, error) {
	switch r.Data.Type {
	case "scalar":
		var p point
		if err := json.Unmarshal(r.Data.Result, &p); err != nil {
			return nil, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
		}
		return one(number{value: p.value, err: p.fault()})
	case "vector":
		all, err := r.vector()
		if err != nil {
			return nil, err
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
		if len(all) > 1 { // a single series is of the whole workload, whatever its labels
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

// ages reads the answer to [ageQuery], with the time as of which the ages are; none are an
// error.
func (r *reply) ages() (found map[target]ages, asOf time.Time, err error) {
	all, err := r.vector()
	if err != nil {
		return nil, asOf, err
	}
	found = map[target]ages{}
	for _, s := range all {
		id, word := target{job: s.Metric.Job, instance: s.Metric.Instance}, ""
		// A proxy that removes labels leaves one source, of one age.
		if _, err := fmt.Sscanf(s.Metric.Part, "%s %d", &word, &id.part); err != nil && s.Metric.Part != "" || s.Value == nil {
			return nil, asOf, &fault{kindMalformed, "the answer to the query for ages has a series without its label or value"}
		}
		at, ok := s.Value.time()
		if !ok {
			return nil, asOf, &fault{kindMalformed, fmt.Sprintf("the answer to the query for ages is as of %v", s.Value.at)}
		}
		if asOf = at; math.IsNaN(s.Value.value) || s.Value.value > maxAge {
			return nil, asOf, &fault{kindNotFinite, fmt.Sprintf("the age of its series is %v", s.Value.value)}
		}
		age := trimtab.Seconds(max(0, s.Value.value)).Duration() // negative: a sample from the server's future
		a, had := found[id]
		if !had {
			a = ages{newest: age, oldest: age}
		}
		a.newest, a.oldest = min(a.newest, age), max(a.oldest, age)
		found[id] = a
	}
	if len(found) == 0 {
		return nil, asOf, &fault{kindGone, "the series behind the value have ended"}
	}
	return found, asOf, nil
}

// maxAge bounds an age in seconds: ten years.
const maxAge = 10 * 366 * 24 * 3600

// health reads the answer to [upQuery].
func (r *reply) health() (health, error) {
	all, err := r.vector()
	if err != nil {
		return nil, err
	}
	up := health{}
	for _, s := range all {
		id := [2]string{s.Metric.Job, s.Metric.Instance}
		of := up[id]
		if s.Value == nil || math.IsNaN(s.Value.value) || s.Value.value > maxAge {
			return nil, &fault{kindMalformed, "the answer to the query for up has no value"}
		}
		switch s.Metric.Part {
		case "age":
			at, ok := s.Value.time()
			if !ok {
				return nil, &fault{kindMalformed, fmt.Sprintf("the answer to the query for up is as of %v", s.Value.at)}
			}
			of.at = at.Add(-trimtab.Seconds(max(0, s.Value.value)).Duration())
		case "up":
			of.works = s.Value.value != 0
		default:
			continue
		}
		up[id] = of
	}
	return up, nil
}

// vector reads a result that is one.
func (r *reply) vector() (all []series, err error) {
	if r.Data.Type != "vector" {
		return nil, &fault{kindMalformed, fmt.Sprintf("result type %.40q, want a vector", r.Data.Type)}
	}
	if err := json.Unmarshal(r.Data.Result, &all); err != nil {
		return nil, &fault{kindMalformed, clip(fmt.Sprintf("the answer cannot be read: %v", err))}
	}
	return all, nil
}

// one is an answer of one number, which is none where that is none.
func one(n number) ([]number, error) {
	if n.err != nil {
		return nil, n.err
	}
	return []number{n}, nil
}

// fault returns why a value is invalid; nil: it is finite and >= 0.
func (p point) fault() error {
	switch {
	case math.IsNaN(p.value) || math.IsInf(p.value, 0):
		return &fault{kindNotFinite, fmt.Sprintf("the value is %v", p.value)}
	case p.value < 0:
		return &fault{kindNegative, fmt.Sprintf("the value is negative: %v", p.value)}
	}
	return nil
}

// clip cuts a reason from outside to 200 characters.
func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
