package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/prometheus/prometheus/promql/parser"
)

// This file and slofile_*.go read service level objectives as others write them, and say
// what a workload of trimtab is that has the same one:
//
//	OpenSLO   apiVersion: openslo/v1, kinds SLO, SLI, DataSource
//	Sloth     version: prometheus/v1, or kind PrometheusServiceLevel
//	Pyrra     kind ServiceLevelObjective
//
// What has no meaning here is a mistake with its place, never left out in silence.

// DefaultWindow is the range of rates of an imported objective: four scrapes of 15 s.
const DefaultWindow = time.Minute

// maxObjectives bounds the objectives of one file.
const maxObjectives = 1000

// Objective is one service level objective of a file, in trimtab's terms.
type Objective struct {
	// Name is its own in the file, Service that of the service, "" where none is named.
	Name, Service string
	// File and Line are where it begins, Form is OpenSLO, Sloth or Pyrra.
	File string
	Line int
	Form string
	// SLO is what is asked, Performance and Load are PromQL; Load is "" where the file
	// has none.
	SLO               SLO
	Performance, Load string
	// Notes say what a person should know of the mapping.
	Notes []string
}

// ReadObjectives reads all objectives of a file of OpenSLO, Sloth or Pyrra. Rates are
// taken over window. The error is [Errors]. It never panics.
func ReadObjectives(filename string, data []byte, window time.Duration) ([]Objective, error) {
	r := &sloReader{decoder: newDecoder(filename), window: window}
	r.read(data)
	if len(r.errs) > 0 {
		return nil, r.errs.ordered()
	}
	return r.found, nil
}

// sloReader collects the objectives of one file.
type sloReader struct {
	*decoder
	window time.Duration
	found  []Objective
	// indicators and sources are the SLI and DataSource documents of OpenSLO by name.
	indicators, sources map[string]item
}

// item is a value of the file, or the place where one is missing.
type item struct {
	r    *sloReader
	path string
	node ast.Node // nil: it is not there
}

// get returns the value under a chain of keys.
func (x item) get(keys ...string) item {
	for _, key := range keys {
		next := item{r: x.r, path: join(x.path, key)}
		for _, e := range fields(x.node) {
			if t := e.Key.GetToken(); t == nil || t.Value != key {
				continue
			}
			next.node = e.Value
			x.r.keyAt[next.path] = positionOf(e.Key)
			if e.Value != nil {
				x.r.at[next.path] = positionOf(e.Value)
				if isText(e.Value) {
					x.r.texts[next.path] = e.Value
				}
			}
			break
		}
		x = next
	}
	return x
}

// has reports whether the value is there.
func (x item) has() bool {
	_, null := x.node.(*ast.NullNode)
	return x.node != nil && !null
}

// items returns the entries of a list.
func (x item) items() (out []item) {
	s, ok := x.node.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	for i, n := range s.Values {
		one := item{x.r, fmt.Sprintf("%s[%d]", x.path, i), n}
		if n != nil {
			x.r.at[one.path] = positionOf(n)
		}
		out = append(out, one)
	}
	return out
}

// text is a scalar as it stands in the file, "" where there is none.
func (x item) text() string {
	if !x.has() || !isText(x.node) && !isNumber(x.node) {
		return ""
	}
	return scalarText(x.node)
}

// number reads a scalar, in quotes or not, and reports what is none.
func (x item) number() (v float64, ok bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(x.text()), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		x.fail(fmt.Sprintf("%s is no number", lastOf(x.path)), "write a plain number")
		return 0, false
	}
	return v, true
}

// fail reports a mistake at the value, or at the nearest place that is there.
func (x item) fail(message, hint string) {
	if len(x.r.errs) < maxErrors {
		x.r.report(x.r.where(x.path), message, hint)
	}
}

// documents are those of the file, without empty ones.
func (r *sloReader) documents(data []byte, hint string) (out []item) {
	if len(data) > MaxBytes {
		r.report(position{1, 1}, fmt.Sprintf("the file is larger than %d bytes", MaxBytes), "split it")
		return nil
	}
	if at, message, hint := unreadable(data); message != "" {
		r.report(at, message, hint)
		return nil
	}
	file := r.parse(strings.TrimPrefix(string(data), "\ufeff"))
	if file == nil {
		return nil
	}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		x := item{r, fmt.Sprintf("document%d", i), doc.Body}
		r.at[x.path] = positionOf(doc.Body)
		out = append(out, x)
	}
	if len(out) == 0 {
		r.report(position{1, 1}, "the file is empty", hint)
	}
	return out
}

// read finds out what each document is, and reads it.
func (r *sloReader) read(data []byte) {
	documents := r.documents(data, "name a file of OpenSLO, Sloth or Pyrra")
	if len(r.errs) > 0 {
		return
	}
	r.collect(documents)
	for _, x := range documents {
		r.document(x)
	}
	if len(r.found) == 0 && len(r.errs) == 0 {
		r.report(position{1, 1}, "the file has no objective", "it has only documents of other kinds: name the one with the SLO")
	}
}

// document reads one document by its kind.
func (r *sloReader) document(x item) {
	version, kind := x.get("apiVersion").text(), x.get("kind").text()
	switch {
	case strings.HasPrefix(version, "openslo"):
		r.openSLO(x, version, kind)
	case strings.HasPrefix(version, "sloth.slok.dev/"):
		r.slothResource(x, kind)
	case strings.HasPrefix(version, "pyrra.dev/"):
		r.pyrra(x, kind)
	case version != "":
		x.get("apiVersion").fail(fmt.Sprintf("apiVersion %q is none of OpenSLO, Sloth or Pyrra", clip(version)), "write openslo/v1, sloth.slok.dev/v1 or pyrra.dev/v1alpha1")
	case x.get("version").text() == "prometheus/v1":
		r.sloth(x, slothKeys{"error_query", "total_query", "error_ratio_query"})
	default:
		x.fail("this is no file of OpenSLO, Sloth or Pyrra", "they begin with apiVersion: openslo/v1, version: prometheus/v1 or apiVersion: pyrra.dev/v1alpha1")
	}
}

// add keeps an objective.
func (r *sloReader) add(x item, o Objective) {
	o.File, o.Line = r.file, r.where(x.path).line
	if len(r.found) >= maxObjectives {
		x.fail(fmt.Sprintf("more than %d objectives", maxObjectives), "split the file")
		return
	}
	r.found = append(r.found, o)
}

// share reads a percentage or a fraction as a fraction.
func (x item) share(of float64) (v float64, ok bool) {
	if v, ok = x.number(); !ok {
		return 0, false
	}
	// 99.9 / 100 is 0.999, not the float beside it.
	if v = math.Round(v/of*1e12) / 1e12; !(v > 0 && v < 1) {
		x.fail(fmt.Sprintf("%s is %s, want more than 0 and less than %v", lastOf(x.path), clip(x.text()), of), fmt.Sprintf("no allocation keeps every request: write %v at most", 0.9999*of))
		return 0, false
	}
	return v, true
}

// templated is what Sloth puts its windows in for.
func templated(query, window string) string {
	return regexp.MustCompile(`{{ *\.window *}}`).ReplaceAllString(query, window)
}

// query reads PromQL, and reports what Prometheus would not take.
func (x item) query() (text string, e parser.Expr, ok bool) {
	text = x.text()
	if strings.TrimSpace(text) == "" {
		x.fail(fmt.Sprintf("%s has no query", lastOf(x.path)), "write PromQL")
		return "", nil, false
	}
	if bad := checkPromQL(text); bad != nil {
		line := 1 + strings.Count(text[:bad.at], "\n")
		column := bad.at - (strings.LastIndexByte(text[:bad.at], '\n') + 1)
		v := validator{decoder: x.r.decoder}
		x.r.report(v.inside(x.path, line, column), bad.message, bad.hint)
		return "", nil, false
	}
	e, err := parsePromQL(text)
	return strings.TrimSpace(text), e, err == nil
}

// rangeText is the range of rates as PromQL writes it.
func (r *sloReader) rangeText() string { return rangeText(r.window) }

// rangeText prints 1m for a minute.
func rangeText(d time.Duration) string {
	if d%time.Minute == 0 && d > 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", max(1, int(d/time.Second)))
}

// rate makes a rate of a counter: of a selector, alone or in one sum, or of a query that
// has a range already, which is replaced.
func (x item) rate() (text string, ok bool) {
	text, e, ok := x.query()
	if !ok {
		return "", false
	}
	window := x.r.rangeText()
	switch s := bare(e).(type) {
	case *parser.VectorSelector:
		return "sum(rate(" + textOf(text, s) + "[" + window + "]))", true
	case *parser.AggregateExpr:
		if inner, plain := bare(s.Expr).(*parser.VectorSelector); plain && s.Op == parser.SUM {
			at := inner.PositionRange()
			return text[:at.Start] + "rate(" + textOf(text, inner) + "[" + window + "])" + text[at.End:], true
		}
	}
	if replaced, n := withRange(text, e, window); n > 0 {
		return replaced, true
	}
	x.fail("this counter is neither a selector, nor a sum of one, nor has it a range", "write it as metric{...}, sum(metric{...}) or sum(rate(metric{...}[5m]))")
	return "", false
}

// withRange replaces the range of all selectors, and counts them.
func withRange(text string, e parser.Expr, window string) (string, int) {
	type place struct{ from, to int }
	var places []place
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if m, ok := n.(*parser.MatrixSelector); ok {
			at, inside := rangeIn(text, m)
			if inside != "" {
				places = append(places, place{at, min(int(m.EndPos), len(text))})
			}
		}
		return nil
	})
	for i := len(places) - 1; i >= 0; i-- { // from the last, so that the earlier places hold
		text = text[:places[i].from] + "[" + window + "]" + text[places[i].to:]
	}
	return text, len(places)
}

// loadOf makes requests per second of the number of events that a ratio is over: an
// increase is divided by its range.
func (r *sloReader) loadOf(total string, o *Objective) string {
	e, err := parsePromQL(total)
	if err != nil {
		return total
	}
	function := ""
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && (c.Func.Name == "increase" || c.Func.Name == "count_over_time" || c.Func.Name == "sum_over_time") {
			function = c.Func.Name
		}
		return nil
	})
	if function == "" {
		return total
	}
	o.Notes = append(o.Notes, fmt.Sprintf("load is divided by the range of %v s, since %s counts over all of it", r.window.Seconds(), function))
	return fmt.Sprintf("(%s) / %g", total, r.window.Seconds())
}
