// Package promql reads PromQL with Prometheus's own parser, for every part of trimtab that analyses
// a query, so that it accepts the same queries as a server.
package promql

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Parse reads one expression. It accepts syntax that servers have behind a flag, and
// holt_winters, as Prometheus 2 calls double_exponential_smoothing: the server decides whether it
// supports them.
func Parse(text string) (parser.Expr, error) {
	options := parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true}
	if strings.Contains(text, holtWinters) {
		options.Functions = maps.Clone(parser.Functions)
		f := *parser.Functions["double_exponential_smoothing"]
		f.Name = holtWinters
		options.Functions[holtWinters] = &f
	}
	return parser.NewParser(options).ParseExpr(text)
}

const holtWinters = "holt_winters"

// Selectors returns the vector selectors of an expression in order, each once, without ranges and
// with offsets, and the longest range. The second argument of info() is left out: it selects
// labels, no series. ok is false if the expression cannot be read or has the modifier @, whose
// series are of another time.
func Selectors(text string) (selectors []string, longest time.Duration, ok bool) {
	e, err := Parse(text)
	if err != nil {
		return nil, 0, false
	}
	ok = true
	seen, labelsOnly := map[string]bool{}, map[parser.Node]bool{}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.Call:
			if n.Func.Name == "info" && len(n.Args) > 1 {
				labelsOnly[n.Args[1]] = true
			}
		case *parser.VectorSelector:
			if labelsOnly[n] {
				break
			}
			ok = ok && n.Timestamp == nil && n.StartOrEnd == 0
			one := *n
			one.Anchored, one.Smoothed = false, false
			if s := one.String(); !seen[s] {
				seen[s], selectors = true, append(selectors, s)
			}
		case *parser.MatrixSelector:
			longest = max(longest, Length(n.Range, n.RangeExpr))
		case *parser.SubqueryExpr:
			ok = ok && n.Timestamp == nil && n.StartOrEnd == 0
			longest = max(longest, Length(n.Range, n.RangeExpr))
		}
		return nil
	})
	if !ok {
		return nil, 0, false
	}
	return selectors, longest, true
}

// Length returns a duration of a query: written, or an expression such as 5m + 1m; 0 if it
// depends on the request, as step() does.
func Length(written time.Duration, e *parser.DurationExpr) time.Duration {
	if e == nil {
		return written
	}
	s, ok := seconds(e)
	if !ok || !(s > 0 && s < math.MaxInt64/1e9) {
		return 0
	}
	return time.Duration(math.Round(s * 1e9))
}

// seconds computes a duration expression.
func seconds(e parser.Expr) (float64, bool) {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		return e.Val, true
	case *parser.ParenExpr:
		return seconds(e.Expr)
	case *parser.DurationExpr:
		if e == nil || e.RHS == nil {
			return 0, false
		}
		r, ok := seconds(e.RHS)
		if e.LHS == nil {
			if e.Op == parser.SUB {
				r = -r
			}
			return r, ok && (e.Op == parser.SUB || e.Op == parser.ADD || e.Wrapped)
		}
		l, also := seconds(e.LHS)
		ok = ok && also
		switch e.Op {
		case parser.ADD:
			return l + r, ok
		case parser.SUB:
			return l - r, ok
		case parser.MUL:
			return l * r, ok
		case parser.DIV:
			return l / r, ok
		case parser.MOD:
			return math.Mod(l, r), ok
		case parser.POW:
			return math.Pow(l, r), ok
		case parser.MIN:
			return math.Min(l, r), ok
		case parser.MAX:
			return math.Max(l, r), ok
		}
	}
	return 0, false
}
