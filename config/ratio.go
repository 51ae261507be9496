package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// Ratio describes the PromQL of a performance where that is a
// share of requests.
type Ratio struct {
	// Within is the latency that requests are counted under, by the one bucket
	// of a histogram that the query names; 0: it names none, or several.
	Within time.Duration
	// Requests is PromQL for the number of requests that the share is of; "": not
	// known.
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
	// What is derived is a part of it on one line, since a comment in it would end elsewhere.
	query = promql.OneLine(strings.ReplaceAll(query, placeholder, standIn))
	e, err := parsePromQL(query)
	if err != nil {
		return Ratio{}
	}
	return Ratio{Within: withinOf(e), Requests: strings.ReplaceAll(reading(query).requests(e), standIn, placeholder)}
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

// withinOf is the latency of the one bucket that a query counts, in the unit of its metric; that
// of all requests, +Inf, is no latency. Of a native histogram it is the end of a fraction
// that begins at 0.
func withinOf(e parser.Expr) (within time.Duration) {
	several := false
	saw := func(this time.Duration) {
		several = several || !(this > 0 && this < time.Hour) || within != 0 && within != this
		within = this
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			if b, ok := promql.BucketOf(n); ok {
				saw(b.Latency)
			} else if namesBucket(n) {
				several = true
			}
		case *parser.Call:
			if n.Func.Name != "histogram_fraction" || !is(n.Args[0], 0) {
				break
			}
			if most, ok := bare(n.Args[1]).(*parser.NumberLiteral); ok {
				saw(time.Duration(math.Round(most.Val * float64(unitIn(n.Args[2])))))
			}
		}
		return nil
	})
	if several {
		return 0
	}
	return within
}

// namesBucket reports whether a selector takes some of the buckets of a histogram.
func namesBucket(s *parser.VectorSelector) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == model.BucketLabel && m.Value != "+Inf" && m.Type == labels.MatchEqual {
			return true
		}
	}
	return false
}

// unitIn is the unit of the first metric of an expression.
func unitIn(e parser.Expr) (unit time.Duration) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && unit == 0 {
			unit, _ = promql.UnitOf(promql.Name(s))
		}
		return nil
	})
	return unit
}

// reading is a query as it is written, from which parts are derived.
type reading string

// requests derives the number of requests of a share; "": it is none.
func (q reading) requests(e parser.Expr) string {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return q.requests(e.Expr)
	case *parser.BinaryExpr:
		switch {
		case !plain(e):
		case e.Op == parser.DIV:
			denominator := withoutFloor(e.RHS)
			good, all := countOf(e.LHS), countOf(denominator)
			if good == nil || all == nil || *good != *all {
				return ""
			}
			text := textOf(string(q), denominator)
			if all.function == "rate" {
				return fmt.Sprintf("(%s) * %g", text, all.over.Seconds())
			}
			return text
		case e.Op == parser.SUB && is(e.LHS, 1):
			return q.requests(e.RHS)
		}
	case *parser.Call:
		switch name := e.Func.Name; {
		case name == "clamp_max" && is(e.Args[1], 1), name == "clamp_min" && is(e.Args[1], 0), name == "clamp" && is(e.Args[1], 0) && is(e.Args[2], 1):
			return q.requests(e.Args[0])
		}
	}
	return ""
}

// plain reports whether an operator takes the series of both sides as they match by
// all their labels.
func plain(e *parser.BinaryExpr) bool {
	m := e.VectorMatching
	return !e.ReturnBool && (m == nil || !m.On && len(m.MatchingLabels) == 0 && len(m.Include) == 0 && m.FillValues.LHS == nil && m.FillValues.RHS == nil)
}

// bare returns the expression within parentheses.
func bare(e parser.Expr) parser.Expr {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// withoutFloor returns all of clamp_min(all, 1), which only keeps a
// denominator from being 0.
func withoutFloor(e parser.Expr) parser.Expr {
	if c, ok := bare(e).(*parser.Call); ok && c.Func.Name == "clamp_min" {
		if _, number := c.Args[1].(*parser.NumberLiteral); number {
			return c.Args[0]
		}
	}
	return e
}

// is reports whether e is the number v.
func is(e parser.Expr, v float64) bool {
	n, ok := bare(e).(*parser.NumberLiteral)
	return ok && n.Val == v
}

// count is how events are counted: by rate or increase, over a time.
type count struct {
	function string
	over     time.Duration
}

// countOf reads a number of events; nil: it is none.
func countOf(e parser.Expr) *count {
	switch e := bare(e).(type) {
	case *parser.Call:
		if e.Func.Name == "rate" || e.Func.Name == "increase" {
			return countedBy(e.Func.Name, e.Args[0])
		}
	case *parser.AggregateExpr:
		if e.Op == parser.SUM {
			return countOf(e.Expr)
		}
	case *parser.BinaryExpr:
		if !plain(e) {
			return nil
		}
		switch e.Op {
		case parser.ADD, parser.SUB:
			if a, b := countOf(e.LHS), countOf(e.RHS); a != nil && b != nil && *a == *b {
				return a
			}
		case parser.LOR: // 0, for a counter that nothing has counted in yet
			if isZero(e.RHS) {
				return countOf(e.LHS)
			}
		case parser.GTR, parser.NEQ: // 0: no value without a request
			if is(e.RHS, 0) {
				return countOf(e.LHS)
			}
		}
	}
	return nil
}

// isZero reports whether e is vector(0), or 0 for each series of a number of events.
func isZero(e parser.Expr) bool {
	switch e := bare(e).(type) {
	case *parser.Call:
		return e.Func.Name == "vector" && is(e.Args[0], 0)
	case *parser.BinaryExpr:
		return e.Op == parser.MUL && plain(e) && is(e.LHS, 0) && countOf(e.RHS) != nil
	}
	return false
}

// countedBy reads the range that rate or increase is taken over, of a counter of events
// as it is now.
func countedBy(function string, e parser.Expr) *count {
	m, ok := e.(*parser.MatrixSelector)
	if !ok || m.Range <= 0 || m.RangeExpr != nil {
		return nil
	}
	s, ok := m.VectorSelector.(*parser.VectorSelector)
	now := ok && s.OriginalOffset == 0 && s.OriginalOffsetExpr == nil && s.Timestamp == nil && s.StartOrEnd == 0 && !s.Anchored && !s.Smoothed
	if !now || !countsEvents(s.Name) {
		return nil
	}
	return &count{function, m.Range}
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
