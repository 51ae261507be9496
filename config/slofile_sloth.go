package config

import "fmt"

// slothKeys are how a file or a resource of Kubernetes writes the queries.
type slothKeys struct{ errors, total, ratio string }

// slothResource reads a PrometheusServiceLevel of Sloth.
func (r *sloReader) slothResource(o *object) {
	if o.kind != "PrometheusServiceLevel" {
		o.get("kind").fail(fmt.Sprintf("kind %q is not read", clip(o.kind)), "write kind: PrometheusServiceLevel")
		return
	}
	r.sloth(o.get("spec"), slothKeys{"errorQuery", "totalQuery", "errorRatioQuery"})
}

// sloth reads the objectives of Sloth.
func (r *sloReader) sloth(spec item, keys slothKeys) {
	service := spec.get("service").text()
	slos := spec.get("slos")
	if len(slos.items()) == 0 {
		slos.fail("the file has no slos", "write slos: [{name: ..., objective: 99.9, sli: ...}]")
		return
	}
	for _, one := range slos.items() {
		o := Objective{Form: "Sloth", Name: one.get("name").text(), Service: service}
		if o.Name == "" {
			one.get("name").fail("the SLO has no name", "write name: requests-availability")
			continue
		}
		if !one.get("objective").has() {
			one.get("objective").fail("the SLO has no objective", "write objective: 99.9, in percent")
			continue
		}
		fraction, ok := one.get("objective").share(100)
		o.SLO.Fraction = fraction
		if ok && r.slothIndicator(one.get("sli"), keys, &o) {
			r.finish(&o)
			r.add(one, o)
		}
	}
}

// slothIndicator converts an indicator with events or a ratio of errors. It refuses a plugin, whose
// queries are not in the file.
func (r *sloReader) slothIndicator(sli item, keys slothKeys, o *Objective) bool {
	events, raw := sli.get("events"), sli.get("raw")
	switch {
	case sli.get("plugin").has():
		sli.get("plugin").fail("a plugin of Sloth makes the query, and it is not run here", "write the queries under events")
		return false
	case events.has():
		errors, ok := events.get(keys.errors).slothQuery(r.rangeText())
		total, also := events.get(keys.total).slothQuery(r.rangeText())
		if !ok || !also {
			return false
		}
		o.Performance = "1 - " + ratio(errors, total)
		o.Load = r.loadOf(total, o)
		return true
	case raw.has():
		text, ok := raw.get(keys.ratio).slothQuery(r.rangeText())
		r.divided(text, "1 - ", o)
		return ok
	}
	sli.fail("the SLO has neither sli.events nor sli.raw", fmt.Sprintf("write sli: {events: {%s: PromQL, %s: PromQL}}", keys.errors, keys.total))
	return false
}

// slothQuery reads a query, in which {{.window}} is the range.
func (x item) slothQuery(window string) (string, bool) {
	if !x.has() {
		x.fail(lastOf(x.path)+" is missing", "write PromQL with [{{.window}}] as range")
		return "", false
	}
	text, _, ok := x.query(window)
	return text, ok
}
