package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// collect keeps what objectives of OpenSLO refer to by name; of several with one name, the
// first.
func (r *sloReader) collect(o *object) {
	of := map[string]map[string]item{"SLI": r.indicators, "DataSource": r.sources}[o.kind]
	if of == nil {
		return
	}
	name := o.get("metadata", "name").text()
	for _, key := range []string{name, o.m.file + "\x00" + name} { // that of its own file comes first
		if _, ok := of[key]; !ok {
			of[key] = o.get("spec")
		}
	}
}

// referred returns the item that a reference names: in its own file, else in any.
func referred(of map[string]item, ref item) (item, bool) {
	if found, ok := of[ref.m.file+"\x00"+ref.text()]; ok {
		return found, true
	}
	found, ok := of[ref.text()]
	return found, ok
}

// openKeys are how a version of OpenSLO calls the indicator of an objective.
type openKeys struct{ indicator, ref string }

// openSLO reads an object of OpenSLO. Kinds beside the SLO say nothing of their own.
func (r *sloReader) openSLO(x object) {
	keys := openKeys{"indicator", "indicatorRef"}
	switch _, version, _ := strings.Cut(x.version, "/"); version {
	case "v1", "v1alpha":
	case "v2alpha":
		keys = openKeys{"sli", "sliRef"}
	default:
		x.get("apiVersion").fail(fmt.Sprintf("version %s of OpenSLO is not read", clip(x.version)), "write apiVersion: openslo/v1, and the document as that version has it")
		return
	}
	if x.kind != "SLO" {
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
	for _, key := range []string{keys.indicator, keys.ref, "compositeWeight"} {
		if c := one.get(key); c.has() {
			c.fail("a composite SLO has no meaning for one workload", "write an SLO for each of its parts")
			return
		}
	}
	if one.get("ratioMetrics").has() { // v1alpha has it in the objective
		if r.openTarget(spec, one, &o.SLO.Fraction) && r.openRatio(one.get("ratioMetrics"), &o) {
			r.calendar(spec, &o)
			r.add(x.item, o)
		}
		return
	}
	if indicator, ok := r.indicator(spec, keys); ok && r.openIndicator(spec, indicator, one, &o) {
		r.calendar(spec, &o)
		r.add(x.item, o)
	}
}

// indicator finds the indicator of an objective: its own, or the SLI that it refers to.
func (r *sloReader) indicator(spec item, keys openKeys) (item, bool) {
	own, ref := spec.get(keys.indicator, "spec"), spec.get(keys.ref)
	if old := spec.get(keys.indicator); !own.has() && old.get("thresholdMetric").has() { // v1alpha
		own = old
	}
	switch {
	case ref.has():
		found, ok := referred(r.indicators, ref)
		if !ok && r.several {
			ref.fail(fmt.Sprintf("no file has the SLI %q", clip(ref.text())), "name the file of that SLI too")
		} else if !ok {
			ref.fail(fmt.Sprintf("the file has no SLI %q", clip(ref.text())), "put the document of kind SLI into the same file, or give trimtab import slo both files")
		}
		return found, ok
	case !own.has():
		spec.get(keys.indicator).fail("the SLO has no "+keys.indicator, fmt.Sprintf("write %s: {spec: {ratioMetric: ...}} or %s: NAME", keys.indicator, keys.ref))
		return own, false
	}
	return own, true
}

// openIndicator maps the indicator and what is asked of it.
func (r *sloReader) openIndicator(spec, indicator, one item, o *Objective) bool {
	switch {
	case indicator.get("ratioMetric").has():
		return r.openTarget(spec, one, &o.SLO.Fraction) && r.openRatio(indicator.get("ratioMetric"), o)
	case indicator.get("thresholdMetric").has():
		return r.openThreshold(indicator.get("thresholdMetric"), one, o)
	}
	indicator.fail("the indicator has neither ratioMetric nor thresholdMetric", "write one of them")
	return false
}

// openTarget reads the fraction that is asked for.
func (r *sloReader) openTarget(spec, one item, fraction *float64) (ok bool) {
	target, percent, slice := one.get("target"), one.get("targetPercent"), one.get("timeSliceTarget")
	switch method := spec.get("budgetingMethod").text(); {
	case target.has() && percent.has():
		percent.fail("the objective has both target and targetPercent", "keep one of them")
		return false
	case method == "Timeslices":
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
	one := spec.get("objectives").items()
	switch method := spec.get("budgetingMethod").text(); {
	case method == "Timeslices" && len(one) == 1:
		o.Notes = append(o.Notes, fmt.Sprintf("the fraction is that of each time slice; the share of slices, %s, is not used", clip(one[0].get("target").text()+one[0].get("targetPercent").text())))
	case method == "RatioTimeslices":
		o.Notes = append(o.Notes, "the target is that of the mean of the slices' ratios; here requests count alike, whichever slice they are in")
	}
}

// source finds the query of a metric: under metricSource, in version 2 beside a
// dataSourceRef or dataSourceSpec, in v1alpha in itself.
func (r *sloReader) source(x item) (item, bool) {
	if kind := x.get("queryType"); kind.has() {
		if !strings.EqualFold(kind.text(), "promql") {
			kind.fail(fmt.Sprintf("the query is %q, and only PromQL is read", clip(kind.text())), "write queryType: promql")
			return kind, false
		}
		return x.get("query"), true
	}
	m := x.get("metricSource")
	kind, ref := m.get("type"), m.get("metricSourceRef")
	if !m.has() && (x.get("dataSourceRef").has() || x.get("dataSourceSpec").has()) {
		m, kind, ref = x, x.get("dataSourceSpec", "type"), x.get("dataSourceRef")
	}
	if !m.has() {
		m.fail(lastOf(x.path)+" has no metricSource", "write metricSource: {type: Prometheus, spec: {query: PromQL}}")
		return m, false
	}
	if !kind.has() && ref.has() {
		if found, ok := referred(r.sources, ref); ok {
			kind = found.get("type")
		} else {
			ref.fail(fmt.Sprintf("no DataSource is called %q, so nobody knows whom to ask", clip(ref.text())), "write type: Prometheus beside it, or put the DataSource into the same file")
			return m, false
		}
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

// openRatio maps good, bad and total, or a ratio that is there already.
func (r *sloReader) openRatio(m item, o *Objective) bool {
	if raw := m.get("raw"); raw.has() {
		q, ok := r.source(raw)
		if !ok {
			return false
		}
		text, _, ok := q.query(r.rangeText())
		switch kind := m.get("rawType"); kind.text() {
		case "success":
			r.divided(text, "", o)
		case "failure":
			r.divided(text, "1 - ", o)
		default:
			kind.fail("rawType does not say what the ratio is of", "write rawType: success, or failure")
			return false
		}
		r.finish(o)
		return ok
	}
	read := func(key string) (text string, ok bool) {
		q, ok := r.source(m.get(key))
		if !ok {
			return "", false
		}
		if counter := m.get("counter"); counter.has() && scalarText(counter.node) == "false" {
			text, _, ok = q.query(r.rangeText())
			return text, ok
		}
		return q.rate(r.rangeText())
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
		o.Performance = "1 - " + ratio(text, total)
	default:
		m.fail("ratioMetric has neither good nor bad", "write one of them beside total")
		return false
	}
	o.Load = r.loadOf(total, o)
	r.finish(o)
	return true
}

// finish says what a fraction without a latency asks of the performance.
func (r *sloReader) finish(o *Objective) {
	if o.SLO.Latency == 0 {
		o.SLO = SLO{Performance: o.SLO.Fraction}
	}
}

// ratio is one sum over another. A counter that nothing has counted yet is 0 while the total
// is there, and a total that is missing stays missing. A bucket is there with its histogram:
// where it is missing there is none of that bound, which is not 0.
func ratio(good, total string) string {
	if bucketed(good) {
		return operand(good) + " / " + operand(total)
	}
	return fmt.Sprintf("(%s or 0 * %s) / %s", operand(good), operand(total), operand(total))
}

// divided takes a ratio that is there already, as [ratio] has it where it is one of two sums;
// if these are rates of requests, they tell the load, too.
func (r *sloReader) divided(text, before string, o *Objective) {
	o.Performance = text
	if before != "" {
		o.Performance = before + operand(text)
	}
	if e, err := promql.Parse(text); err == nil {
		if d, ok := bare(e).(*parser.BinaryExpr); ok && d.Op == parser.DIV && plain(d) && d.LHS.Type() == parser.ValueTypeVector && d.RHS.Type() == parser.ValueTypeVector {
			some, all := d.LHS.PositionRange(), d.RHS.PositionRange()
			total := text[all.Start:all.End]
			o.Performance = before + ratio(text[some.Start:some.End], total)
			if RatioOf(o.Performance).Requests != "" {
				o.Load = r.loadOf(total, o)
			}
		}
	}
	if o.Load == "" {
		o.Notes = append(o.Notes, "a ratio tells no load: it is that of the workload's spans, unless load gives another")
	}
}

// bucketed reports whether a query takes a bucket of a histogram.
func bucketed(query string) (is bool) {
	e, err := promql.Parse(query)
	if err != nil {
		return false
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			_, one := promql.BucketOf(s)
			is = is || one
		}
		return nil
	})
	return is
}

// operand puts what an operator would tear apart into parentheses.
func operand(text string) string {
	if e, err := promql.Parse(text); err == nil {
		switch e.(type) {
		case *parser.BinaryExpr, *parser.UnaryExpr:
			return "(" + text + ")"
		}
	}
	return text
}

// bucketOf returns the latency of the histogram bucket that a query counts; 0: none.
func bucketOf(query string) time.Duration {
	e, err := promql.Parse(query)
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
	text, _, ok := q.query(r.rangeText())
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
