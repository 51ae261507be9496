package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
)

// pyrra reads a ServiceLevelObjective of Pyrra.
func (r *sloReader) pyrra(x *object) {
	if x.kind != "ServiceLevelObjective" {
		x.get("kind").fail(fmt.Sprintf("kind %q is not read", clip(x.kind)), "write kind: ServiceLevelObjective")
		return
	}
	spec := x.get("spec")
	o := Objective{Form: "Pyrra", Name: x.get("metadata", "name").text()}
	if o.Name == "" {
		x.get("metadata", "name").fail("the objective has no metadata.name", "write metadata: {name: NAME}")
		return
	}
	if service := x.get("metadata", "labels", "pyrra.dev/service"); service.has() {
		o.Service = service.text()
	}
	target := spec.get("target")
	if !target.has() {
		target.fail("the objective has no target", `write target: "99.9", in percent`)
		return
	}
	fraction, ok := target.share(100)
	if !ok {
		return
	}
	if fraction <= 0.01 {
		o.Notes = append(o.Notes, fmt.Sprintf("target %s is in percent, not a fraction", clip(target.text())))
	}
	o.SLO.Fraction = fraction
	if r.pyrraIndicator(spec.get("indicator"), &o) {
		r.finish(&o)
		r.add(x.item, o)
	}
}

// pyrraIndicator maps the one indicator of an objective.
func (r *sloReader) pyrraIndicator(x item, o *Objective) bool {
	var kinds []string
	for _, key := range []string{"ratio", "latency", "latencyNative", "bool_gauge"} {
		if x.get(key).has() {
			kinds = append(kinds, key)
		}
	}
	if len(kinds) != 1 {
		x.fail(fmt.Sprintf("the objective has %d indicators, want one", len(kinds)), "write one of ratio, latency, latencyNative and bool_gauge")
		return false
	}
	one := x.get(kinds[0])
	if g := one.get("grouping"); len(g.items()) > 0 {
		g.fail("a grouped objective is one for each group, and a workload has one", "remove grouping, and select the group by a label in each metric")
		return false
	}
	switch kinds[0] {
	case "ratio":
		errors, ok := one.get("errors", "metric").selected(r.rangeText())
		total, also := one.get("total", "metric").selected(r.rangeText())
		if !ok || !also {
			return false
		}
		o.Load = r.summed(total)
		o.Performance = "1 - " + ratio(r.summed(errors), o.Load)
	case "latency":
		return r.pyrraLatency(one, o)
	case "latencyNative":
		return r.pyrraNative(one, o)
	case "bool_gauge":
		metric, ok := one.get("metric").selected(r.rangeText())
		o.Performance = fmt.Sprintf("avg(avg_over_time(%s[%s]))", metric, r.rangeText())
		o.Notes = append(o.Notes, "a gauge tells no load: it is that of the workload's spans, unless load gives another")
		return ok
	}
	return true
}

// pyrraLatency maps a bucket of a histogram over all.
func (r *sloReader) pyrraLatency(one item, o *Objective) bool {
	success := one.get("success", "metric")
	text, ok := success.selected(r.rangeText())
	total, also := one.get("total", "metric").selected(r.rangeText())
	if !ok || !also {
		return false
	}
	e, _ := promql.Parse(text)
	s, _ := e.(*parser.VectorSelector)
	b, has := promql.BucketOf(s)
	switch {
	case !has:
		success.fail("the metric of a latency needs one bucket", `write le="0.2" among its labels, in the unit of the metric`)
		return false
	case !(b.Latency > 0 && b.Latency <= time.Hour):
		success.fail(fmt.Sprintf("the bucket le=%g is no latency up to 1h by the unit in the metric's name", b.Le), "name a histogram of seconds or milliseconds, or write a ratio")
		return false
	case !b.Named && b.Le >= 5:
		o.Notes = append(o.Notes, fmt.Sprintf("le=%g is taken for seconds, since the name of the metric has no unit", b.Le))
	}
	o.SLO.Latency = b.Latency
	o.Load = r.summed(total)
	o.Performance = ratio(r.summed(text), o.Load)
	return true
}

// pyrraNative maps a native histogram.
func (r *sloReader) pyrraNative(one item, o *Objective) bool {
	latency := one.get("latency")
	d, err := time.ParseDuration(strings.TrimSpace(latency.text()))
	if err != nil || d <= 0 || d > time.Hour {
		latency.fail("latency is no duration up to 1h", "write it as in latency: 200ms")
		return false
	}
	total, ok := one.get("total", "metric").selected(r.rangeText())
	if !ok {
		return false
	}
	o.SLO.Latency = d
	all := r.summed(total)
	metric, _ := promql.Parse(total)
	o.Performance = fmt.Sprintf("histogram_fraction(0, %g, %s)", float64(d)/float64(max(unitIn(metric), 1)), all)
	o.Load = fmt.Sprintf("histogram_count(%s)", all)
	return true
}

// summed is the rate of a counter over all of its series.
func (r *sloReader) summed(metric string) string {
	return fmt.Sprintf("sum(rate(%s[%s]))", metric, r.rangeText())
}

// selected reads a plain selector.
func (x item) selected(window string) (string, bool) {
	if !x.has() {
		x.fail(lastOf(x.path)+" is missing", `write metric: name{label="value"}`)
		return "", false
	}
	text, e, ok := x.query(window)
	if !ok {
		return "", false
	}
	s, plain := bare(e).(*parser.VectorSelector)
	if !plain || s.OriginalOffset != 0 || s.Timestamp != nil {
		x.fail("this is an expression, and Pyrra takes a metric with labels", `write metric: name{label="value"}`)
		return "", false
	}
	return textOf(text, s), true
}
