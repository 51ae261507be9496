package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ratio is what the PromQL of a performance says of itself where that is a
// share of requests.
type Ratio struct {
	// Within is the latency that requests are counted under, by the one bucket
	// of a histogram that the query names; 0: it names none, or several.
	Within time.Duration
	// Requests is PromQL for the number of requests that the share is of; "": it
	// cannot be told.
	Requests string
}

// RatioOf reads the PromQL of a performance. The number of requests of a ratio
// of rates is its denominator over the range R of both:
//
//	sum(rate(good[R])) / sum(rate(all[R]))           →  sum(rate(all[R])) · R
//	sum(increase(good[R])) / sum(increase(all[R]))   →  sum(increase(all[R]))
//
// So too of 1 − bad/all, in parentheses, clamped to [0, 1], where sums are by or
// without labels or added up, and where a counter that is absent counts as 0, by
// or vector(0). Of anything else, such as two ranges, a recording rule, or
// counters that by their names are not of events, nothing is derived.
func RatioOf(query string) Ratio {
	r := Ratio{Within: withinOf(query)}
	if e := parsePromQL(query); e != nil {
		r.Requests = requestsOf(e)
	}
	return r
}

// Ratio returns what the performance query says, with an explicit requests query
// before a derived one. What is asked of a performance that may be over 1 is no
// share.
func (w *Workload) Ratio() Ratio {
	r := RatioOf(w.Performance)
	switch {
	case w.Requests != "":
		r.Requests = w.Requests
	case w.SLO.Target() > 1:
		r.Requests = ""
	}
	return r
}

// withinOf reads the bucket le="…" of a query; that of all requests, +Inf, is no
// latency.
func withinOf(query string) (within time.Duration) {
	lexemes, _ := lexemesOf(query)
	for i, t := range lexemes {
		if t.text != "{" || t.kind != signToken {
			continue
		}
		matchers, _, _ := matchersIn(lexemes, i)
		for _, m := range matchers {
			if m.label != "le" || m.sign != "=" || m.value == "+Inf" {
				continue
			}
			seconds, err := strconv.ParseFloat(m.value, 64)
			if err != nil || !(seconds > 0 && seconds < 3600) {
				return 0
			}
			this := time.Duration(seconds * float64(time.Second))
			if within != 0 && within != this {
				return 0
			}
			within = this
		}
	}
	return within
}

// requestsOf derives the number of requests of a share; "": it is none.
func requestsOf(e *expression) string {
	switch {
	case e.op == "/":
		good, all := countOf(e.args[0]), countOf(withoutFloor(e.args[1]))
		if good == nil || all == nil || *good != *all {
			return ""
		}
		text := withoutFloor(e.args[1]).text
		if all.function == "rate" {
			return fmt.Sprintf("(%s) * %g", text, all.over.Seconds())
		}
		return text
	case e.op == "-" && e.args[0].is(1):
		return requestsOf(e.args[1])
	case e.op == "clamp_max" && len(e.args) == 2 && e.args[1].is(1),
		e.op == "clamp_min" && len(e.args) == 2 && e.args[1].is(0),
		e.op == "clamp" && len(e.args) == 3 && e.args[1].is(0) && e.args[2].is(1):
		return requestsOf(e.args[0])
	}
	return ""
}

// withoutFloor returns what stands in clamp_min(all, 1), which only keeps a
// denominator from being 0.
func withoutFloor(e *expression) *expression {
	if e.op == "clamp_min" && len(e.args) == 2 && e.args[1].op == "number" {
		return e.args[0]
	}
	return e
}

// is reports whether e is the number v.
func (e *expression) is(v float64) bool { return e.op == "number" && e.number == v }

// count is how events are counted: by rate or increase, over a time.
type count struct {
	function string
	over     time.Duration
}

// countOf reads a number of events; nil: it is none.
func countOf(e *expression) *count {
	switch e.op {
	case "rate", "increase":
		if len(e.args) == 1 && e.args[0].op == "selector" && e.args[0].over > 0 && countsEvents(e.args[0].metric) {
			return &count{e.op, e.args[0].over}
		}
	case "sum":
		if len(e.args) == 1 {
			return countOf(e.args[0])
		}
	case "+", "-":
		if a, b := countOf(e.args[0]), countOf(e.args[1]); a != nil && b != nil && *a == *b {
			return a
		}
	case "or": // vector(0), for a counter that nothing has counted in yet
		if zero := e.args[1]; zero.op == "vector" && len(zero.args) == 1 && zero.args[0].is(0) {
			return countOf(e.args[0])
		}
	case ">", "!=": // 0: no value without a request
		if e.args[1].is(0) {
			return countOf(e.args[0])
		}
	}
	return nil
}

// countsEvents reports whether a metric counts events by its name: neither sums
// of an observation nor counters of a unit do.
func countsEvents(metric string) bool {
	if metric == "" {
		return false
	}
	base := strings.TrimSuffix(metric, "_total")
	for _, unit := range []string{"_sum", "_seconds", "_bytes", "_joules", "_meters", "_celsius", "_volts", "_amperes"} {
		if strings.HasSuffix(base, unit) {
			return false
		}
	}
	// By convention the colons of a recorded rate: level:metric:operations.
	return !strings.Contains(metric, ":")
}
