package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// This file and slofile_*.go read service level objectives in the formats of other tools, and
// convert them into the SLO of a workload:
//
//	OpenSLO   apiVersion: openslo/v1, kinds SLO, SLI, DataSource
//	Sloth     version: prometheus/v1, or kind PrometheusServiceLevel
//	Pyrra     kind ServiceLevelObjective
//
// Anything that trimtab cannot express is reported as a mistake with its position.

// DefaultWindow is the range of rates of an imported objective: four scrapes of 15 s.
const DefaultWindow = time.Minute

// maxObjectives bounds the objects of one kind that are read of a file.
const maxObjectives = 1000

// Objective is one service level objective of a file, in trimtab's terms.
type Objective struct {
	// Name is its own in the file, Service that of the service, "" where none is named.
	Name, Service string
	// File and Line are where it begins, Form is OpenSLO, Sloth or Pyrra.
	File string
	Line int
	Form string
	// SLO is the objective, Performance and Load are PromQL; Load is "" if the file
	// has none.
	SLO               SLO
	Performance, Load string
	// Notes say what a person should know of the mapping.
	Notes []string
}

// ObjectiveFile is a file that may have objectives.
type ObjectiveFile struct {
	Name string
	Data []byte
	// Any: the file may be of any kind, as in a directory: documents of other tools are
	// skipped.
	Any bool
	// Beside: only indicators and sources of the file are read, for objectives of other
	// files that refer to them.
	Beside bool
}

// ReadObjectives reads all objectives of a file of OpenSLO, Sloth or Pyrra; objects of other
// kinds are passed over. Rates are taken over window. The error is [Errors]. It never panics.
func ReadObjectives(filename string, data []byte, window time.Duration) ([]Objective, error) {
	found, _, err := ReadObjectiveFiles([]ObjectiveFile{{Name: filename, Data: data}}, window)
	return found, err
}

// ReadObjectiveFiles is [ReadObjectives] of several files, whose objectives may refer to each
// other's indicators. It also names what was passed over.
func ReadObjectiveFiles(files []ObjectiveFile, window time.Duration) (found []Objective, passed []string, err error) {
	r := &sloReader{window: window, indicators: map[string]item{}, sources: map[string]item{}, several: len(files) > 1}
	var all []*manifest
	for i := range files {
		f := &files[i]
		m, documents := openManifest(f.Name, f.Data, "name a file of OpenSLO, Sloth or Pyrra")
		all = append(all, m)
		switch {
		case f.Beside:
			m.errs = nil // whatever else it is
			r.beside(objects(documents))
		case len(m.errs) == 0:
			before := len(r.open)
			if r.file(objects(documents), f.Any); len(r.open) == before {
				// No objective refers to this file. Each text keeps the whole syntax tree in memory.
				clear(m.texts)
				clear(m.anchors)
			}
		}
	}
	for _, o := range r.open {
		r.openSLO(o)
	}
	var errs Errors
	order := map[string]int{}
	for i, m := range all {
		errs = append(errs, m.errs.ordered()...)
		order[m.file] = i
	}
	switch {
	case len(errs) > 0:
		return nil, nil, errs
	case len(r.found) == 0 && r.other != nil:
		o := r.other
		o.get("apiVersion").fail(fmt.Sprintf("apiVersion %q is none of OpenSLO, Sloth or Pyrra", clip(o.version)), "write openslo/v1, sloth.slok.dev/v1 or pyrra.dev/v1alpha1")
		return nil, nil, o.m.errs
	case len(r.found) == 0:
		return nil, nil, Errors{{File: files[0].Name, Line: 1, Col: 1, Message: "the file has no objective", Hint: "it has only documents of other kinds: name the one with the SLO"}}
	}
	slices.SortStableFunc(r.found, func(a, b Objective) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return r.found, r.passed, nil
}

// sloReader collects the objectives of files.
type sloReader struct {
	window time.Duration
	// several: there is more than one file.
	several bool
	found   []Objective
	// open are the objects of OpenSLO, whose indicators and sources may be in a file that
	// is read later: the SLI and DataSource objects by name.
	open                []object
	indicators, sources map[string]item
	// passed names objects that are no objectives; other is the first of them.
	passed []string
	other  *object
}

// beside keeps what objectives of other files may refer to.
func (r *sloReader) beside(all []object) {
	for i := range all {
		if strings.HasPrefix(all[i].version, "openslo") {
			r.collect(&all[i])
		}
	}
}

// file reads the objects of one file by their kinds.
func (r *sloReader) file(all []object, lenient bool) {
	for i := range all {
		o := &all[i]
		switch {
		case strings.HasPrefix(o.version, "openslo"):
			r.open = append(r.open, *o)
			r.collect(o)
		case strings.HasPrefix(o.version, "sloth.slok.dev/"):
			r.slothResource(o)
		case strings.HasPrefix(o.version, "pyrra.dev/"):
			r.pyrra(o)
		case o.version == "" && o.get("version").text() == "prometheus/v1":
			r.sloth(o.item, slothKeys{"error_query", "total_query", "error_ratio_query"})
		case o.version != "" || lenient:
			if r.other == nil && o.version != "" {
				r.other = o
			}
			if len(r.passed) < maxObjectives {
				r.passed = append(r.passed, fmt.Sprintf("%s, %s:%d", o, o.m.file, o.m.where(o.path).line))
			}
		default:
			o.fail("this is no file of OpenSLO, Sloth or Pyrra", "they begin with apiVersion: openslo/v1, version: prometheus/v1 or apiVersion: pyrra.dev/v1alpha1")
		}
	}
}

// add keeps an objective, and notes what of its queries would be refused.
func (r *sloReader) add(x item, o Objective) {
	o.File, o.Line = x.m.file, x.m.where(x.path).line
	if len(r.found) >= maxObjectives*10 {
		x.fail(fmt.Sprintf("more than %d objectives", maxObjectives*10), "split the files")
		return
	}
	o.Performance, o.Load = promql.WholeBuckets(o.Performance), promql.WholeBuckets(o.Load)
	for _, q := range []struct{ name, text string }{{"performance", o.Performance}, {"load", o.Load}} {
		e, err := promql.Parse(q.text)
		if q.text == "" || err != nil {
			continue
		}
		if good, total := promql.Apart(e); good != "" {
			x.fail(fmt.Sprintf("%s and %s have other labels: PromQL puts none of one beside one of the other, and all would count alike", clip(good), clip(total)), "sum both up by the same labels, or by none")
			return
		}
		if by := promql.Several(e); by != nil {
			o.Notes = append(o.Notes, fmt.Sprintf("%s has a series for each %s, and a workload has one: sum them up, or select one by its labels; until then the workload is held", q.name, clip(strings.Join(by, ", "))))
			break
		}
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
		hint := fmt.Sprintf("no allocation keeps every request: write %v at most", 0.9999*of)
		if v > 1 && v < 100 && of == 1 {
			hint = fmt.Sprintf("write %v, which is %s percent", math.Round(v*1e10)/1e12, clip(x.text()))
		}
		x.fail(fmt.Sprintf("%s is %s, want more than 0 and less than %v", lastOf(x.path), clip(x.text()), of), hint)
		return 0, false
	}
	return v, true
}

// templated puts the range in for Sloth's {{.window}}, with blanks behind it, so that every
// place stays where it is.
func templated(query, window string) string {
	for from := 0; ; {
		at := strings.Index(query[from:], "{{")
		if at < 0 {
			return query
		}
		at += from
		length := strings.Index(query[at:], "}}")
		if length < 0 {
			return query
		}
		length += len("}}")
		if strings.Trim(query[at+2:at+length-2], "- ") == ".window" {
			query = query[:at] + window + strings.Repeat(" ", max(0, length-len(window))) + query[at+length:]
		}
		from = at + max(length, len(window))
	}
}

// query reads PromQL on one line, and reports what Prometheus would not take.
func (x item) query(window string) (text string, e parser.Expr, ok bool) {
	written := x.text()
	if strings.TrimSpace(written) == "" {
		x.fail(fmt.Sprintf("%s has no query", lastOf(x.path)), "write PromQL")
		return "", nil, false
	}
	template := written
	written = templated(written, window)
	if k := strings.Index(written, "{{"); k >= 0 {
		value, _, _ := strings.Cut(template[k:], "}}")
		x.failIn(written, k, "only {{.window}} is filled in", "write the value in place of "+clip(value+"}}"))
		return "", nil, false
	}
	if bad := checkPromQL(written); bad != nil {
		x.failIn(written, bad.at, bad.message, bad.hint)
		return "", nil, false
	}
	text = promql.OneLine(written)
	e, err := promql.Parse(text)
	return text, e, err == nil
}

// failIn reports a mistake at a byte of the text of the value.
func (x item) failIn(text string, at int, message, hint string) {
	line := 1 + strings.Count(text[:at], "\n")
	column := at - (strings.LastIndexByte(text[:at], '\n') + 1)
	if len(x.m.errs) < maxErrors {
		v := validator{decoder: x.m.decoder}
		x.m.report(v.inside(x.path, line, column), message, hint)
	}
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
func (x item) rate(window string) (text string, ok bool) {
	text, e, ok := x.query(window)
	if !ok {
		return "", false
	}
	if s, is := bare(e).(*parser.VectorSelector); is {
		at := s.PositionRange()
		return "sum(rate(" + promql.InRange(text, int(at.Start), int(at.End), window) + "))", true
	}
	if s, is := bare(e).(*parser.AggregateExpr); is && s.Op == parser.SUM {
		if inner, plain := bare(s.Expr).(*parser.VectorSelector); plain {
			at := inner.PositionRange()
			return text[:at.Start] + "rate(" + promql.InRange(text, int(at.Start), int(at.End), window) + ")" + text[at.End:], true
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
	type span struct{ from, to int }
	var places []span
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if m, ok := n.(*parser.MatrixSelector); ok {
			if at, inside := rangeIn(text, m); inside != "" {
				places = append(places, span{at, at + strings.IndexByte(text[at:], ']') + 1})
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
	e, err := promql.Parse(total)
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
