package config

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// What rises when things get worse.
const (
	ofPercentile  = "a percentile of latency"
	meanLatency   = "a mean latency"
	latencyItself = "a latency"
	shareOfErrors = "a share of errors"
	errorsItself  = "a number of errors"
	whatWaits     = "what waits"
	burnRate      = "a burn rate"
)

// rises says what an expression measures, and whether that is more when things get worse
// (1) or better (-1); 0: unknown.
func rises(e parser.Expr) (what string, worse int) {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return rises(e.Expr)
	case *parser.StepInvariantExpr:
		return rises(e.Expr)
	case *parser.SubqueryExpr:
		return rises(e.Expr)
	case *parser.MatrixSelector:
		return rises(e.VectorSelector)
	case *parser.UnaryExpr:
		what, worse = rises(e.Expr)
		if e.Op == parser.SUB {
			worse = -worse
		}
		return what, worse
	case *parser.AggregateExpr:
		if hidesValue(e) {
			return "", 0
		}
		return rises(e.Expr)
	case *parser.VectorSelector:
		return risesByName(e)
	case *parser.Call:
		return risesOf(e)
	case *parser.BinaryExpr:
		return risesBoth(e)
	}
	return "", 0
}

// risesByName reads a gauge or a recorded series by its name.
func risesByName(s *parser.VectorSelector) (what string, worse int) {
	name := promql.Name(s)
	if isCounter(name) {
		return "", 0
	}
	words := wordsOf(name)
	has := func(some ...string) bool {
		return slices.ContainsFunc(some, func(w string) bool { return slices.Contains(words, w) })
	}
	part := has("ratio", "rate", "percent", "percentage", "fraction", "share") || strings.ContainsFunc(name, func(r rune) bool { return r == ':' })
	late := has("latency", "duration", "delay") || has("response", "request", "rtt") && has("time")
	switch {
	case has("burn", "burnrate"):
		return burnRate, 1
	case has("budget"):
		return "", 0
	case has("availability", "success", "successful", "good", "uptime", "apdex"):
		return "", -1
	case part && has("error", "errors", "failure", "failures", "failed", "err", "errs", "throttled"):
		return shareOfErrors, 1
	case late && (slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "quantile" }) || slices.ContainsFunc(words, isPercentile)):
		return ofPercentile, 1
	case slices.ContainsFunc(words, isPercentile):
		return ofPercentile, 1
	case late && has("mean", "avg", "average"):
		return meanLatency, 1
	case late && !has("bucket", "sum", "count"):
		return latencyItself, 1
	case has("lag", "backlog") || has("queue", "queued", "waiting", "pending") && has("length", "size", "depth", "messages", "jobs", "requests", "count"):
		return whatWaits, 1
	}
	return "", 0
}

// isPercentile reports whether a word of a name is p99 or the like.
func isPercentile(word string) bool {
	digits, ok := strings.CutPrefix(word, "p")
	return ok && len(digits) >= 2 && len(digits) <= 4 && strings.Trim(digits, "0123456789") == "" && digits[0] >= '5'
}

func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == ':' || r == '.' || r == '-' })
}

// risesOf reads a function.
func risesOf(e *parser.Call) (what string, worse int) {
	switch e.Func.Name {
	case "histogram_quantile":
		if unitIn(e.Args[1]) > 0 {
			return ofPercentile, 1
		}
	case "histogram_avg":
		if unitIn(e.Args[0]) > 0 {
			return meanLatency, 1
		}
	case "histogram_fraction":
		if is(e.Args[0], 0) {
			return "", -1
		}
	case "rate", "irate", "increase":
		if countsErrors(e) > 0 {
			return errorsItself, 1
		}
	case "avg_over_time", "max_over_time", "min_over_time", "last_over_time", "sum_over_time", "quantile_over_time",
		"clamp", "clamp_max", "clamp_min", "ceil", "floor", "round", "abs", "sqrt", "ln", "log2", "log10", "exp",
		"label_replace", "label_join", "sort", "sort_desc", "scalar", "vector", "holt_winters", "double_exponential_smoothing":
		for _, arg := range e.Args {
			if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
				return rises(arg)
			}
		}
	}
	return "", 0
}

// risesBoth reads an operator.
func risesBoth(e *parser.BinaryExpr) (what string, worse int) {
	l, left := rises(e.LHS)
	r, right := rises(e.RHS)
	a, leftNumber := bare(e.LHS).(*parser.NumberLiteral)
	b, rightNumber := bare(e.RHS).(*parser.NumberLiteral)
	switch e.Op {
	case parser.LAND, parser.LUNLESS:
		return l, left
	case parser.LOR:
		if left != 0 {
			return l, left
		}
		return r, right
	case parser.GTR, parser.GTE, parser.LSS, parser.LTE:
		return compared(e, l, left, r, right)
	case parser.SUB:
		if rightNumber {
			return l, left
		}
		if leftNumber {
			return r, -right
		}
	case parser.ADD:
		if left == 0 {
			return r, right
		}
		return l, left
	case parser.MUL:
		switch {
		case leftNumber && a.Val > 0:
			return r, right
		case rightNumber && b.Val > 0:
			return l, left
		case leftNumber && a.Val < 0:
			return r, -right
		}
	case parser.DIV:
		switch {
		case isMean(e):
			return meanLatency, 1
		case countsErrors(e.LHS) != 0 && countsErrors(e.RHS) == 0:
			return shareOfErrors, countsErrors(e.LHS)
		case left != 0 && right == 0:
			return l, left
		case left == 0 && right != 0:
			return r, -right
		}
	}
	return "", 0
}

// compared reads a comparison: with bool it is 1 where it holds, else it keeps a value.
func compared(e *parser.BinaryExpr, l string, left int, r string, right int) (string, int) {
	less := e.Op == parser.LSS || e.Op == parser.LTE
	switch {
	case !e.ReturnBool && e.LHS.Type() == parser.ValueTypeScalar:
		return r, right
	case !e.ReturnBool:
		return l, left
	case left != 0 && less:
		return l, -left
	case left != 0:
		return l, left
	case less:
		return r, right
	}
	return r, -right
}

// isMean reports whether e is a sum of times over their number.
func isMean(e *parser.BinaryExpr) bool {
	sum, n := counterIn(e.LHS), counterIn(e.RHS)
	base, sums := strings.CutSuffix(sum, "_sum")
	if sums {
		unit, _ := promql.UnitOf(base)
		return unit > 0 && n == base+"_count"
	}
	unit, named := promql.UnitOf(sum)
	return sum != "" && named && unit > 0 && !strings.Contains(sum, "cpu") && strings.HasSuffix(sum, "_total") && strings.HasSuffix(n, "_total") && strings.Contains(n, "request")
}

// counterIn is the one metric of an expression; "": it has several, or a bucket is chosen.
func counterIn(e parser.Expr) (name string) {
	several := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			several = several || name != "" && name != promql.Name(s)
			name = promql.Name(s)
		}
		return nil
	})
	if several {
		return ""
	}
	return name
}

// countsErrors reports whether an expression counts bad events (1) or good ones (-1), by names
// and labels; 0: all events, or unknown.
func countsErrors(e parser.Expr) int {
	switch e := bare(e).(type) {
	case *parser.AggregateExpr:
		return countsErrors(e.Expr)
	case *parser.MatrixSelector:
		return countsErrors(e.VectorSelector)
	case *parser.VectorSelector:
		return selectsErrors(e)
	case *parser.Call:
		for _, arg := range e.Args {
			if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
				return countsErrors(arg)
			}
		}
	case *parser.BinaryExpr:
		l, r := countsErrors(e.LHS), countsErrors(e.RHS)
		switch {
		case e.Op == parser.LOR || e.Op == parser.GTR || e.Op == parser.LAND:
			return l
		case e.Op == parser.SUB && l == 0:
			return -r
		case e.Op == parser.ADD && l == r:
			return l
		case e.Op == parser.MUL && !is(e.LHS, 0) && e.LHS.Type() == parser.ValueTypeScalar:
			return r
		case e.Op == parser.MUL && e.RHS.Type() == parser.ValueTypeScalar:
			return l
		}
	}
	return 0
}

// selectsErrors is [countsErrors] of a selector.
func selectsErrors(s *parser.VectorSelector) int {
	if _, ok := promql.BucketOf(s); ok {
		return -1
	}
	for _, m := range s.LabelMatchers {
		one, sign := m, 1
		if m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp {
			inverse, err := m.Inverse()
			if err != nil {
				continue
			}
			one, sign = inverse, -1 // what it leaves out
		}
		if of := choosesErrors(one); of != 0 {
			return sign * of
		}
	}
	words := wordsOf(promql.Name(s))
	for _, w := range words {
		switch w {
		case "error", "errors", "failure", "failures", "failed", "fails", "timeouts", "exceptions", "dropped", "rejected", "throttled":
			return 1
		case "success", "successful", "succeeded", "successes":
			return -1
		}
	}
	return 0
}

// choosesErrors reports whether a matcher chooses events that went wrong (1) or well (-1).
func choosesErrors(m *labels.Matcher) int {
	label := strings.ToLower(m.Name)
	var bad, good []string
	switch {
	case strings.Contains(label, "code") || strings.Contains(label, "status") || label == "outcome" || label == "result":
		bad = []string{"500", "502", "503", "504", "429", "5xx", "error", "failure", "failed", "fail", "timeout", "SERVER_ERROR", "Internal", "Unavailable"}
		good = []string{"200", "201", "204", "302", "2xx", "success", "ok", "OK", "SUCCESS", "succeeded"}
	case label == "error" || label == "exception" || label == "failed":
		bad, good = []string{"true", "x"}, []string{"", "false", "none", "None"}
	case label == "success":
		bad, good = []string{"false"}, []string{"true"}
	}
	isBad, isGood := slices.ContainsFunc(bad, m.Matches), slices.ContainsFunc(good, m.Matches)
	switch {
	case isBad && !isGood:
		return 1
	case isGood && !isBad:
		return -1
	}
	return 0
}
