package promql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Several returns why an expression has more than one series, as far as its text shows: the
// labels that its sums keep, or the metric of a selector that is not aggregated. by is nil if it
// has one series, or if that is unknown, as for a recorded one.
func Several(e parser.Expr) (by []string) {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return Several(e.Expr)
	case *parser.UnaryExpr:
		return Several(e.Expr)
	case *parser.StepInvariantExpr:
		return Several(e.Expr)
	case *parser.SubqueryExpr:
		return Several(e.Expr)
	case *parser.MatrixSelector:
		return Several(e.VectorSelector)
	case *parser.VectorSelector:
		if name := Name(e); !strings.Contains(name, ":") {
			return []string{"set of labels of " + cmp.Or(name, e.String())}
		}
	case *parser.AggregateExpr:
		return keptBy(e)
	case *parser.Call:
		return severalOf(e)
	case *parser.BinaryExpr:
		return severalBoth(e)
	}
	return nil
}

// keptBy returns the labels by which an aggregation keeps several series.
func keptBy(e *parser.AggregateExpr) []string {
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		if n, ok := e.Param.(*parser.NumberLiteral); ok && n.Val == 1 && len(e.Grouping) == 0 {
			return nil
		}
		return Several(e.Expr)
	case parser.COUNT_VALUES:
		return []string{"value"}
	}
	inner := Several(e.Expr)
	switch {
	case inner == nil:
		return nil
	case e.Without:
		return []string{"set of labels but " + strings.Join(e.Grouping, ", ")}
	case len(e.Grouping) > 0:
		return slices.Clone(e.Grouping)
	}
	return nil
}

// severalOf is [Several] of a function's result: a quantile is one for all buckets.
func severalOf(e *parser.Call) (by []string) {
	switch e.Func.Name {
	case "absent", "absent_over_time", "scalar", "vector", "time", "pi":
		return nil
	}
	for _, arg := range e.Args {
		if t := arg.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeMatrix {
			continue
		}
		by = Several(arg)
		break
	}
	if e.Func.Name == "histogram_quantile" {
		by = slices.DeleteFunc(by, func(label string) bool { return label == model.BucketLabel })
	}
	if len(by) == 0 {
		return nil
	}
	return by
}

// severalBoth is [Several] of an operator's result.
func severalBoth(e *parser.BinaryExpr) []string {
	l, r := Several(e.LHS), Several(e.RHS)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return r
	case e.RHS.Type() == parser.ValueTypeScalar:
		return l
	case e.Op == parser.LOR:
		if l != nil {
			return l
		}
		return r
	case e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return l
	case e.VectorMatching != nil && e.VectorMatching.Card == parser.CardManyToOne:
		return l
	case e.VectorMatching != nil && e.VectorMatching.Card == parser.CardOneToMany:
		return r
	case l == nil || r == nil:
		return nil // the side with one series matches at most one of the other
	}
	return l
}

// Apart finds (a or 0 * b), a count of events that should be 0 if it is missing, whose series
// have other labels than those of b, so that the 0 has no effect.
func Apart(e parser.Expr) (a, b string) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		or, ok := n.(*parser.BinaryExpr)
		if !ok || or.Op != parser.LOR {
			return nil
		}
		if zero, ok := or.RHS.(*parser.BinaryExpr); ok && zero.Op == parser.MUL && apart(or.LHS, zero.RHS) {
			a, b = or.LHS.String(), zero.RHS.String()
		}
		return nil
	})
	return a, b
}

func apart(a, b parser.Expr) bool {
	l, sure := grouped(a)
	r, also := grouped(b)
	switch {
	case sure && also:
		return !slices.Equal(l, r)
	case sure:
		return len(l) == 0 && Several(b) != nil
	}
	return also && len(r) == 0 && Several(a) != nil
}

// grouped are the labels that the series of an aggregation have, where it says so.
func grouped(e parser.Expr) (by []string, sure bool) {
	for p, ok := e.(*parser.ParenExpr); ok; p, ok = e.(*parser.ParenExpr) {
		e = p.Expr
	}
	if s, ok := e.(*parser.AggregateExpr); ok && !s.Without && s.Param == nil {
		return slices.Compact(slices.Sorted(slices.Values(s.Grouping))), true
	}
	return nil, false
}
