package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// collect keeps what objectives of OpenSLO refer to by name.
func (r *sloReader) collect(documents []item) {
	r.indicators, r.sources = map[string]item{}, map[string]item{}
	for _, x := range documents {
		if !strings.HasPrefix(x.get("apiVersion").text(), "openslo") {
			continue
		}
		switch name := x.get("metadata", "name").text(); x.get("kind").text() {
		case "SLI":
			r.indicators[name] = x.get("spec")
		case "DataSource":
			r.sources[name] = x.get("spec")
		}
	}
}

// openSLO reads a document of OpenSLO. Kinds beside the SLO say nothing of their own.
func (r *sloReader) openSLO(x item, version, kind string) {
	if version != "openslo/v1" {
		x.get("apiVersion").fail(fmt.Sprintf("version %s of OpenSLO is not read", clip(version)), "write apiVersion: openslo/v1, and the document as that version has it")
		return
	}
	if kind != "SLO" {
		return
	}
	spec := x.get("spec")
	o := Objective{Form: "OpenSLO", Name: x.get("metadata", "name").text(), Service: spec.get("service").text()}
	if o.Name == "" {
		x.get("metadata", "name").fail("the SLO has no metadata.name", "write metadata: {name: NAME}")
		return
	}
	objectives := spec.get("objectives").items()
	switch {
	case len(objectives) == 0:
		spec.get("objectives").fail("the SLO has no objectives", "write objectives: [{target: 0.99}]")
		return
	case len(objectives) > 1:
		objectives[1].fail("the SLO has several objectives, and a workload has one", "keep one, or write an SLO for each")
		return
	}
	one := objectives[0]
	for _, key := range []string{"indicator", "indicatorRef", "compositeWeight"} {
		if c := one.get(key); c.has() {
			c.fail("a composite SLO has no meaning for one workload", "write an SLO for each of its parts")
			return
		}
	}
	indicator := spec.get("indicator", "spec")
	if ref := spec.get("indicatorRef"); ref.has() {
		found, ok := r.indicators[ref.text()]
		if !ok {
			ref.fail(fmt.Sprintf("the file has no SLI %q", clip(ref.text())), "put the document of kind SLI into the same file")
			return
		}
		indicator = found
	} else if !indicator.has() {
		spec.get("indicator").fail("the SLO has no indicator", "write indicator: {spec: {ratioMetric: ...}} or indicatorRef: NAME")
		return
	}
	ok := false
	switch {
	case indicator.get("ratioMetric").has():
		ok = r.openTarget(spec, one, &o.SLO.Fraction) && r.openRatio(indicator.get("ratioMetric"), &o)
	case indicator.get("thresholdMetric").has():
		ok = r.openThreshold(indicator.get("thresholdMetric"), one, &o)
	default:
		indicator.fail("the indicator has neither ratioMetric nor thresholdMetric", "write one of them")
	}
	if ok {
		r.calendar(spec, &o)
		r.add(x, o)
	}
}

// openTarget reads the fraction that is asked for.
func (r *sloReader) openTarget(spec, one item, fraction *float64) (ok bool) {
	target, percent, slice := one.get("target"), one.get("targetPercent"), one.get("timeSliceTarget")
	switch method := spec.get("budgetingMethod").text(); {
	case target.has() && percent.has():
		percent.fail("the objective has both target and targetPercent", "keep one of them")
		return false
	case method == "Timeslices" || method == "RatioTimeslices":
		if !slice.has() {
			slice.fail("the objective has no timeSliceTarget", "write the fraction that each time slice needs")
			return false
		}
		*fraction, ok = slice.share(1)
		return ok
	case percent.has():
		*fraction, ok = percent.share(100)
		return ok
	case target.has():
		*fraction, ok = target.share(1)
		return ok
	}
	target.fail("the objective has no target", "write target: 0.99")
	return false
}

// calendar notes what of a time window has no meaning here.
func (r *sloReader) calendar(spec item, o *Objective) {
	for _, w := range spec.get("timeWindow").items() {
		if w.get("calendar").has() {
			o.Notes = append(o.Notes, "the calendar window is taken for a rolling one")
		}
	}
	if one := spec.get("objectives").items(); strings.HasSuffix(spec.get("budgetingMethod").text(), "imeslices") && len(one) == 1 {
		o.Notes = append(o.Notes, fmt.Sprintf("the fraction is that of each time slice; the share of slices, %s, is not used", clip(one[0].get("target").text()+one[0].get("targetPercent").text())))
	}
}

// source finds the query of a metricSource.
func (r *sloReader) source(x item) (item, bool) {
	m := x.get("metricSource")
	if !m.has() {
		m.fail(lastOf(x.path)+" has no metricSource", "write metricSource: {type: Prometheus, spec: {query: PromQL}}")
		return m, false
	}
	kind := m.get("type")
	if ref := m.get("metricSourceRef"); !kind.has() && ref.has() {
		kind = r.sources[ref.text()].orAt(ref).get("type")
	}
	if !strings.EqualFold(kind.text(), "prometheus") {
		kind.fail(fmt.Sprintf("the source is of type %q, and only Prometheus is asked", clip(kind.text())), "write type: Prometheus, or a DataSource of that type in the same file")
		return m, false
	}
	for _, key := range []string{"query", "promql"} {
		if q := m.get("spec", key); q.has() {
			return q, true
		}
	}
	m.get("spec").fail("the source has no query", "write spec: {query: PromQL}")
	return m, false
}

// orAt is x, or a missing value at another place.
func (x item) orAt(other item) item {
	if x.r == nil {
		return item{r: other.r, path: other.path}
	}
	return x
}

// openRatio maps good, bad and total, or a ratio that is there already.
func (r *sloReader) openRatio(m item, o *Objective) bool {
	if raw := m.get("raw"); raw.has() {
		q, ok := r.source(raw)
		if !ok {
			return false
		}
		text, _, ok := q.query()
		o.Performance = text
		if m.get("rawType").text() == "failure" {
			o.Performance = "1 - (" + text + ")"
		}
		o.Notes = append(o.Notes, "a ratio tells no load: it is that of the workload's spans, unless load gives another")
		return ok
	}
	read := func(key string) (text string, ok bool) {
		q, ok := r.source(m.get(key))
		if !ok {
			return "", false
		}
		if m.get("counter").text() == "false" || scalarBool(m.get("counter")) == "false" {
			text, _, ok = q.query()
			return text, ok
		}
		return q.rate()
	}
	if !m.get("total").has() {
		m.get("total").fail("ratioMetric has no total", "write total: {metricSource: ...}, or raw")
		return false
	}
	total, ok := read("total")
	if !ok {
		return false
	}
	switch good, bad := m.get("good"), m.get("bad"); {
	case good.has() && bad.has():
		bad.fail("ratioMetric has both good and bad", "keep one of them")
		return false
	case good.has():
		text, ok := read("good")
		if !ok {
			return false
		}
		o.Performance = ratio(text, total)
		o.SLO.Latency = bucketOf(text)
	case bad.has():
		text, ok := read("bad")
		if !ok {
			return false
		}
		o.Performance = lessErrors(text, total)
	default:
		m.fail("ratioMetric has neither good nor bad", "write one of them beside total")
		return false
	}
	o.Load = r.loadOf(total, o)
	r.finish(o)
	return true
}

// scalarBool is true or false as the file says it.
func scalarBool(x item) string {
	if !x.has() {
		return ""
	}
	return scalarText(x.node)
}

// finish says what a fraction without a latency asks of the performance.
func (r *sloReader) finish(o *Objective) {
	if o.SLO.Latency == 0 {
		o.SLO = SLO{Performance: o.SLO.Fraction}
	}
}

// ratio is one sum over another.
func ratio(good, total string) string { return operand(good) + " / " + operand(total) }

// lessErrors is 1 - errors/total. Errors that nothing has counted yet are none; a total
// that is missing stays missing.
func lessErrors(errors, total string) string {
	return fmt.Sprintf("1 - (%s or 0 * %s) / %s", operand(errors), operand(total), operand(total))
}

// operand puts what an operator would tear apart into parentheses.
func operand(text string) string {
	if e, err := parsePromQL(text); err == nil {
		switch e.(type) {
		case *parser.BinaryExpr, *parser.UnaryExpr:
			return "(" + text + ")"
		}
	}
	return text
}

// bucketOf is the latency whose bucket of a histogram a query counts; 0: none.
func bucketOf(query string) time.Duration {
	e, err := parsePromQL(query)
	if err != nil {
		return 0
	}
	return withinOf(e)
}

// openThreshold maps a value that stays on one side of a bound.
func (r *sloReader) openThreshold(m, one item, o *Objective) bool {
	op, value := one.get("op"), one.get("value")
	if !op.has() || !value.has() {
		one.fail("a thresholdMetric needs op and value in the objective", "write op: lte and value: the bound")
		return false
	}
	bound, ok := value.number()
	if !ok {
		return false
	}
	if !(bound > 0) {
		value.fail(fmt.Sprintf("value is %v, want more than 0", bound), "trimtab divides by what is measured: write a bound that is more than 0")
		return false
	}
	q, ok := r.source(m)
	if !ok {
		return false
	}
	text, _, ok := q.query()
	if !ok {
		return false
	}
	switch op.text() {
	case "lte", "lt":
		o.Performance = strconv.FormatFloat(bound, 'g', -1, 64) + " / " + operand(text)
		o.SLO.Performance = 1
	case "gte", "gt":
		o.Performance, o.SLO.Performance = text, bound
	default:
		op.fail(fmt.Sprintf("op %q is none", clip(op.text())), "write lte, lt, gte or gt")
		return false
	}
	o.Notes = append(o.Notes, "a threshold tells no load: it is that of the workload's spans, unless load gives another")
	return true
}

// fixed reports whether a selector has a label with that one value.
func fixed(e parser.Expr, name string) (value string, ok bool) {
	s, is := e.(*parser.VectorSelector)
	if !is {
		return "", false
	}
	for _, m := range s.LabelMatchers {
		if m.Name == name && m.Type == labels.MatchEqual {
			return m.Value, true
		}
	}
	return "", false
}
