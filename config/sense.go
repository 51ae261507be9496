package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// This file checks what queries measure, since a server answers any query: with a performance
// that grows when things get worse, the worst service would look like the best. A finding is a
// warning with the right form of the query; where the file cannot decide, it warns of nothing.

// checkSenses warns of queries of a workload that measure something else than what is asked for.
func (w *Workload) checkSenses(v *validator, at string) {
	if e, err := parsePromQL(w.Performance); err == nil && w.Performance != "" {
		where := v.queryAt(at, "performance")
		w.checkRising(v, where, e)
		v.counters(where, "performance", e)
		w.checkOtherBucket(v, where, e)
	}
	if e, err := parsePromQL(w.Load); err == nil && w.Load != "" {
		where := v.queryAt(at, "load")
		v.counters(where, "load", e)
		v.increases(where, e)
		v.longer(where, e)
	}
}

// queryAt returns the path of a query, or of the objective that it is taken from.
func (v *validator) queryAt(at, key string) string {
	for _, where := range []string{at + "." + key, at + ".slo.file", at + ".slo.object"} {
		if v.has(where) {
			return where
		}
	}
	return at
}

// checkRising warns of a performance that rises when things get worse.
func (w *Workload) checkRising(v *validator, where string, e parser.Expr) {
	doubt, what := doubtOf(e)
	if doubt == "" {
		return
	}
	target := w.SLO.Performance
	form := short1(w.Performance)
	message := doubt + ", and trimtab takes more for better"
	switch {
	case what == shareOfErrors:
		if target > 0 && target < 0.5 {
			target = 1 - target
		}
		if !(target > 0 && target < 1) {
			target = 0.99
		}
		hint := fmt.Sprintf("write 1 - (%s)", form)
		if !w.SLO.Shares() {
			hint += fmt.Sprintf(" and slo: {performance: %s}", rounded(target))
		}
		v.warn(where, message, hint)
	case target > 0:
		v.warn(where, message, fmt.Sprintf("write %s / (%s) and slo: {performance: 1}", rounded(target), form))
	default:
		v.warn(where, message, `write the share of requests in time, as in sum(rate(x_bucket{le="0.2"}[1m])) / sum(rate(x_count[1m]))`)
	}
}

// Doubt says why a performance seems to rise when things get worse; "": by its query, it does
// not.
func (w *Workload) Doubt() string {
	e, err := parsePromQL(w.Performance)
	if err != nil || w.Performance == "" {
		return ""
	}
	doubt, _ := doubtOf(e)
	return doubt
}

func doubtOf(e parser.Expr) (doubt, what string) {
	what, worse := rises(e)
	if worse <= 0 {
		return "", what
	}
	return fmt.Sprintf("performance is %s, which rises when things get worse", what), what
}

// short1 is a query on one line, cut short where it is long.
func short1(query string) string {
	return clipTo(strings.ReplaceAll(promql.OneLine(strings.ReplaceAll(query, placeholder, standIn)), standIn, placeholder), 200)
}

// checkOtherBucket warns of a share within another latency than that of the SLO.
func (w *Workload) checkOtherBucket(v *validator, where string, e parser.Expr) {
	within := withinOf(e)
	if !w.SLO.Shares() || within == 0 || math.Abs(float64(within-w.SLO.Latency)) <= 1e-6*float64(w.SLO.Latency) {
		return
	}
	unit, name, le := time.Second, "", ""
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && name == "" {
			if b, ok := promql.BucketOf(s); ok {
				name, le = promql.Name(s), strconv.FormatFloat(b.Le, 'g', -1, 64)
				unit, _ = promql.UnitOf(name)
			}
		}
		return nil
	})
	asked := rounded(float64(w.SLO.Latency) / float64(max(unit, 1)))
	of, form := "", fmt.Sprintf("histogram_fraction(0, %s, ...)", asked)
	if name != "" {
		of, form = fmt.Sprintf(" (le=%s of %s)", le, clip(name)), fmt.Sprintf("the bucket le=%q, where the histogram has it,", asked)
	}
	v.warn(where, fmt.Sprintf("performance counts requests within %s%s, and slo.latency is %s", within, of, w.SLO.Latency), fmt.Sprintf("write %s or slo: {latency: %s}", form, within))
}

// counters warns of a query that takes the value of a counter, which counts since its process
// began, instead of its rate.
func (v *validator) counters(where, key string, e parser.Expr) {
	found := ""
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if ok && found == "" && isCounter(promql.Name(s)) && !slices.ContainsFunc(path, hidesValue) && !onlyMatched(path, n) {
			found = promql.Name(s)
		}
		return nil
	})
	if found == "" {
		return
	}
	hint := fmt.Sprintf("write the rate: sum(rate(%s{...}[1m]))", clip(found))
	if key == "load" {
		v.warn(where, fmt.Sprintf("load is the counter %s itself, which only grows, and not requests per second", clip(found)), hint)
		return
	}
	v.warn(where, fmt.Sprintf("%s takes the counter %s itself, which counts since its process began: what happens now hardly moves it", key, clip(found)), hint)
}

// isCounter reports whether a metric is a counter by its name.
func isCounter(name string) bool {
	if base, ok := strings.CutSuffix(name, "_count"); ok {
		_, histogram := promql.UnitOf(base)
		return histogram
	}
	return !strings.Contains(name, ":") && (strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket"))
}

// hidesValue reports whether the value of a selector below a node does not count: it is taken
// over a range, or asked for something else.
func hidesValue(n parser.Node) bool {
	switch n := n.(type) {
	case *parser.MatrixSelector, *parser.SubqueryExpr:
		return true
	case *parser.AggregateExpr:
		return n.Op == parser.COUNT || n.Op == parser.GROUP || n.Op == parser.COUNT_VALUES
	case *parser.Call:
		return n.Func.Name == "timestamp" || n.Func.Name == "absent"
	}
	return false
}

// onlyMatched reports whether a node is on the right of and or unless, or times 0.
func onlyMatched(path []parser.Node, n parser.Node) bool {
	for i, parent := range path {
		b, ok := parent.(*parser.BinaryExpr)
		below := n
		if i+1 < len(path) {
			below = path[i+1]
		}
		if ok && below == b.RHS && (b.Op == parser.LAND || b.Op == parser.LUNLESS || b.Op == parser.MUL && is(b.LHS, 0)) {
			return true
		}
	}
	return false
}

// increases warns of a load that is a number over a range.
func (v *validator) increases(where string, e parser.Expr) {
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		c, ok := n.(*parser.Call)
		if !ok || !slices.Contains([]string{"increase", "delta", "count_over_time", "sum_over_time"}, c.Func.Name) || slices.ContainsFunc(path, perTime) || onlyMatched(path, n) {
			return nil
		}
		m, ok := c.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		over := promql.Length(m.Range, m.RangeExpr)
		if over <= 0 {
			return nil
		}
		v.warn(where, fmt.Sprintf("load is %s over %s, and not requests per second", c.Func.Name, over), fmt.Sprintf("write rate in place of %s, or divide by %g", c.Func.Name, over.Seconds()))
		return errFound
	})
}

// longer warns of a rate that a query multiplies to one per minute, hour or day.
func (v *validator) longer(where string, e parser.Expr) {
	b, ok := bare(e).(*parser.BinaryExpr)
	if !ok || b.Op != parser.MUL {
		return
	}
	n, ok := bare(b.RHS).(*parser.NumberLiteral)
	of := b.LHS
	if !ok {
		n, ok = bare(b.LHS).(*parser.NumberLiteral)
		of = b.RHS
	}
	if !ok || !slices.Contains([]float64{60, 3600, 86400}, n.Val) {
		return
	}
	parser.Inspect(of, func(p parser.Node, _ []parser.Node) error {
		if c, ok := p.(*parser.Call); ok && (c.Func.Name == "rate" || c.Func.Name == "irate") {
			v.warn(where, fmt.Sprintf("load is requests in %g seconds, and not per second", n.Val), fmt.Sprintf("leave * %g out", n.Val))
			return errFound
		}
		return nil
	})
}

// errFound ends a walk.
var errFound = fmt.Errorf("found")

// perTime reports whether a node divides by a number.
func perTime(n parser.Node) bool {
	b, ok := n.(*parser.BinaryExpr)
	if !ok {
		return false
	}
	_, number := bare(b.RHS).(*parser.NumberLiteral)
	return number && b.Op == parser.DIV || b.Op == parser.MUL && (fraction(b.LHS) || fraction(b.RHS))
}

// fraction reports whether an expression is a number below 1.
func fraction(e parser.Expr) bool {
	n, ok := bare(e).(*parser.NumberLiteral)
	return ok && n.Val > 0 && n.Val < 1
}
