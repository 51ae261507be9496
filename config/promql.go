package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// This file finds mistakes in PromQL, and reports them in words with their position.

// standIn is a matcher that takes the place of $match while a query is parsed. It is as
// long as the placeholder, so that every position of the parser is one of the file.
const standIn = `_m="x"`

// parsePromQL parses a query that may contain $match.
func parsePromQL(query string) (parser.Expr, error) {
	if len(query) > maxQuery {
		return nil, errors.New("too long")
	}
	return promql.Parse(strings.ReplaceAll(query, placeholder, standIn))
}

// textOf is a part of a query as it is written.
func textOf(query string, e parser.Node) string {
	at := e.PositionRange()
	if at.Start < 0 || int(at.End) > len(query) || at.Start >= at.End {
		return ""
	}
	return query[at.Start:at.End]
}

// checkPromQL says what is wrong with a query; nil when a Prometheus server would take
// it and answer with one number or one for each series.
func checkPromQL(query string) *queryError {
	e, err := parsePromQL(query)
	var all parser.ParseErrors
	switch {
	case errors.As(err, &all) && len(all) > 0:
		// What follows the first is most often a consequence of it.
		return mistakeOf(query, all[0])
	case err != nil:
		return &queryError{0, "Prometheus cannot read the query: " + clip(err.Error()), "write one expression of PromQL"}
	}
	at := int(e.PositionRange().Start)
	switch e.Type() {
	case parser.ValueTypeMatrix:
		return &queryError{at, "the query gives a range of values for each series, and one number is needed", "put it into a function, as in sum(rate(" + clip(textOf(query, e)) + "))"}
	case parser.ValueTypeString:
		return &queryError{at, "the query gives a text, and a number is needed", "remove the quotes"}
	}
	return bareRange(query, e)
}

// bareRange finds a range without a unit, which Prometheus 3 takes for seconds and
// Prometheus 2 refuses.
func bareRange(query string, e parser.Expr) (bad *queryError) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		m, ok := n.(*parser.MatrixSelector)
		if !ok || bad != nil {
			return nil
		}
		at, text := rangeIn(query, m)
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			bad = &queryError{at, fmt.Sprintf("the range [%s] has no unit", text), fmt.Sprintf("write [%[1]sm] for minutes or [%[1]ss] for seconds", text)}
		}
		return nil
	})
	return bad
}

// rangeIn returns the text between the brackets of a range, and its offset.
func rangeIn(query string, m *parser.MatrixSelector) (at int, text string) {
	from := int(m.VectorSelector.PositionRange().Start)
	to := min(int(m.EndPos), len(query))
	// A selector's braces may hold brackets in quotes: the last one opens the range.
	open := strings.LastIndexByte(query[from:to], '[')
	if open < 0 {
		return from, ""
	}
	at = from + open
	text, _, _ = strings.Cut(query[at+1:], "]") // what modifies the selector may follow
	return at, strings.TrimSpace(text)
}

// mistakeOf puts an error of the parser into words, with its position.
func mistakeOf(query string, e parser.ParseErr) *queryError {
	at := min(max(int(e.PositionRange.Start), 0), len(query))
	text := e.Err.Error()
	bad := &queryError{at, "PromQL: " + clipTo(firstLine(text), 120), "see https://prometheus.io/docs/prometheus/latest/querying/basics"}
	part := ""
	if end := int(e.PositionRange.End); end <= len(query) && at < end {
		part = query[at:end]
	}
	switch {
	case strings.HasPrefix(text, "unknown function"):
		name := wordAt(query, at)
		bad.message, bad.hint = fmt.Sprintf("PromQL has no function %q", clip(name)), suggestFunction(name)
	case strings.HasPrefix(text, "unexpected <by>"), strings.HasPrefix(text, "unexpected <without>"):
		from, name := wordBefore(query, at)
		bad.at = from
		bad.message, bad.hint = fmt.Sprintf("%q is no aggregation, and by and without follow one", clip(name)), suggest(name, aggregations())
	case strings.Contains(text, "got instant vector") && strings.Contains(text, "range vector"):
		bad.message = functionIn(text) + " needs a range of values, and this is the newest value only"
		bad.hint = "add the range: " + clip(part) + "[1m]"
	case strings.Contains(text, "got range vector"), strings.Contains(text, "only scalar and instant vector"):
		bad.message = "this is a range of values, and " + functionIn(text) + " needs one value of each series"
		bad.hint = "put it into a function, as in rate(" + clip(part) + ")"
	case strings.HasPrefix(text, "expected type"):
		bad.message = "an argument of " + functionIn(text) + " is of another type: " + clipTo(text, 120)
		bad.hint = "are the arguments in order? As in histogram_quantile(0.95, sum by (le) (rate(x_bucket[1m])))"
	default:
		for _, row := range hints() {
			if strings.Contains(text, row.text) {
				bad.hint = row.hint
				break
			}
		}
	}
	return bad
}

// hints say what to do about messages of the parser that have the text, the first that
// fits.
func hints() []struct{ text, hint string } {
	return []struct{ text, hint string }{
		{"in label matching, expected string", `put the value into quotes, as in job="shop"`},
		{"inside braces", `write {label="value"}: labels have letters, digits and _`},
		{"expected ':'", "write the number and its unit without a space, as in [5m]"},
		{"ranges only allowed", "a range belongs to the metric, inside the function: rate(x[1m])"},
		{"offset modifier", "offset belongs to the metric, inside the function: rate(x[1m] offset 5m)"},
		{"trailing comma", "remove the comma"},
		{`unexpected "="`, "write == to compare, or put the label into braces"},
		{`in grouping opts, expected "("`, "put the labels into parentheses, as in sum by (job) (x)"},
		{"duration", "write a number and a unit: 30s, 5m or 1h"},
		{"unexpected end of input", "something is missing at the end: write the rest, or remove what it belongs to"},
		{"non-empty matcher", "name a metric or at least one label with a value: this would select every series"},
		{"regexp", `it is a regular expression: escape what stands for itself, as in \\.`},
		{"argument", "see the function in https://prometheus.io/docs/prometheus/latest/querying/functions"},
		{"set operator", "write vector(0) in place of a plain number beside or, and and unless"},
		{"BOOL modifier", "write bool behind the comparison, as in 1 > bool 0"},
		{"unexpected identifier", "an operator or a comma is missing before it, or the word before it is misspelt"},
		{"unexpected number", "an operator or a comma is missing before it"},
		{"unexpected string", "an operator or a comma is missing before it"},
		{"unexpected", "remove it, or write what belongs before it"},
	}
}

// functionIn returns the function, or other construct around a value, that a message of the
// parser names.
func functionIn(text string) string {
	if _, rest, ok := strings.Cut(text, `call to function "`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name + "()"
	}
	if strings.Contains(text, "aggregation") {
		return "an aggregation"
	}
	return "an operator"
}

// suggestFunction is a hint for a name that is no function.
func suggestFunction(name string) string {
	known := slices.Concat(slices.Sorted(maps.Keys(parser.Functions)), aggregations())
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "see https://prometheus.io/docs/prometheus/latest/querying/functions for those that there are"
}

// aggregations are the words before by and without.
func aggregations() []string {
	return []string{"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile", "count_values", "limitk", "limit_ratio"}
}

// wordAt is the word that begins at a byte of a query.
func wordAt(query string, at int) string {
	end := at
	for end < len(query) && wordByte(query[end]) {
		end++
	}
	return query[at:end]
}

// wordBefore is the last word before a byte of a query, and where it begins.
func wordBefore(query string, at int) (from int, word string) {
	end := len(strings.TrimRight(query[:at], " \t\r\n"))
	for from = end; from > 0 && wordByte(query[from-1]); {
		from--
	}
	return from, query[from:end]
}

func wordByte(c byte) bool {
	return c == '_' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
