package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/promql"
)

const (
	// requestCounters matches the names of counters of served requests.
	requestCounters = `.*requests?_total|.*request.*_(seconds|milliseconds)_count|(http|rpc|grpc)_server_.+_(seconds|milliseconds)_count|grpc_server_handled_total|.*downstream_rq_total`
	// otherCounters matches counters of sent requests, and those of the monitoring itself.
	otherCounters = `.*client.*|(promhttp|prometheus|trimtab|go|process|scrape)_.*`
	// draftMeasured bounds the services that only Prometheus knows.
	draftMeasured = 100
	// draftQuery bounds one query.
	draftQuery = 5 * time.Second
	// draftMargin is the least ratio of a drafted latency to the measured p95.
	draftMargin = 1.5
)

// serviceLabels are the labels that name a service, the most telling first.
func serviceLabels() []string {
	return []string{"service_name", "service", "app", "deployment", "job", "container"}
}

// requests is a counter of requests, with the labels that it has.
type requests struct {
	metric string
	labels map[string]string
}

// labelled is the label by which the counter names a service, "" where it does not.
func (r *requests) labelled(service string) string {
	for _, label := range serviceLabels() {
		if r.labels[label] == service {
			return label
		}
	}
	return ""
}

// unseen is a service that only Prometheus knows.
type unseen struct {
	name, label string // label="name" selects it
	metrics     []string
	jobs        []string
}

func (m *unseen) selector() string { return fmt.Sprintf("%s=%q", m.label, m.name) }

// prometheus returns the address of Prometheus; "": there is none.
func (d *draft) prometheus() string {
	return cmp.Or(d.cmd.Prometheus, d.given.Config.Prometheus.URL)
}

// ask evaluates PromQL.
func (d *draft) ask(expr string) ([]prometheus.Labelled, error) {
	c := prometheus.Config{URL: d.prometheus(), HTTP: promconfig.DefaultHTTPClientConfig, Interval: draftQuery, Timeout: draftQuery}
	if p := &d.given.Config.Prometheus; p.URL == c.URL {
		c.HTTP = p.HTTP // with its credentials
	}
	return prometheus.Vector(d.ctx, c, expr)
}

// number evaluates PromQL that gives one number.
func (d *draft) number(expr string) (float64, bool) {
	all, err := d.ask(expr)
	if err != nil || len(all) != 1 {
		return 0, false
	}
	return all[0].Value, true
}

// askPrometheus lists the existing counters of requests.
func (d *draft) askPrometheus() {
	if d.prometheus() == "" {
		return
	}
	all, err := d.ask(fmt.Sprintf(`count by (__name__, %s) ({__name__=~%q, __name__!~%q})`, strings.Join(serviceLabels(), ", "), requestCounters, otherCounters))
	if err != nil {
		d.unasked = err
		return
	}
	for _, s := range all {
		d.asked = append(d.asked, requests{s.Labels["__name__"], s.Labels})
	}
	slices.SortFunc(d.asked, func(a, b requests) int {
		return cmp.Or(cmp.Compare(rankOf(a.metric), rankOf(b.metric)), cmp.Compare(a.metric, b.metric))
	})
}

// unaskedText says why there are no answers of Prometheus.
func (d *draft) unaskedText() string {
	switch {
	case d.unasked != nil:
		return fmt.Sprintf(" (%v)", d.unasked)
	case d.prometheus() == "":
		return " (no Prometheus is named)"
	}
	return ""
}

// rankOf orders counters: whole requests that have latencies first.
func rankOf(metric string) int {
	rank := 2
	if strings.HasPrefix(metric, "http_") || strings.HasPrefix(metric, "grpc_") || strings.HasPrefix(metric, "rpc_") {
		rank = 0
	}
	if !strings.HasSuffix(metric, "_count") {
		rank++
	}
	return rank
}

// unseen lists services of which a target is up, and that are not among those that are
// seen, by name.
func (d *draft) unseen(seen map[string]bool) []*unseen {
	all := map[string]*unseen{}
	for i := range d.asked {
		of := &d.asked[i]
		if slices.ContainsFunc(serviceLabels(), func(label string) bool { return seen[of.labels[label]] }) {
			continue
		}
		for _, label := range serviceLabels() {
			name := of.labels[label]
			if name == "" {
				continue
			}
			m := all[name]
			if m == nil {
				m = &unseen{name: name, label: label}
				all[name] = m
			}
			if m.label == label && !slices.Contains(m.metrics, of.metric) {
				m.metrics = append(m.metrics, of.metric)
			}
			m.jobs = append(m.jobs, of.labels["job"])
			break
		}
	}
	if len(all) == 0 {
		return nil
	}
	up := d.up()
	var out []*unseen
	for _, m := range all {
		if name := view.DraftName(m.name); !seen[name] && slices.ContainsFunc(m.jobs, func(job string) bool { return up[job] }) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *unseen) int { return cmp.Compare(a.name, b.name) })
	if len(out) > draftMeasured {
		d.add("  # %d services are only in Prometheus: the first %d by name are here", len(out), draftMeasured)
	}
	return out[:min(len(out), draftMeasured)]
}

// up are the jobs of which a target answers.
func (d *draft) up() map[string]bool {
	jobs := map[string]bool{}
	all, err := d.ask("max by (job) (up)")
	if err != nil {
		d.add("  # Prometheus was asked which targets are up: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for _, s := range all {
		jobs[s.Labels["job"]] = s.Value > 0
	}
	return jobs
}

// measured writes one service that only Prometheus knows.
func (d *draft) measured(m *unseen) {
	d.series = true
	metric, load, window := d.loadOf(m)
	now := "no load yet"
	if window != "" {
		now = fmt.Sprintf("%.3g requests per second now", load)
	}
	d.add("")
	d.add("  - name: %s # only in Prometheus, %s: %s; no span names it", view.DraftText(view.DraftName(m.name)), oneLine(m.selector()), now)
	if window == "" {
		d.add("    # load: no counter of it has a rate over 1m, 2m or 5m: %s", strings.Join(m.metrics, ", "))
		d.add("    mode: off # write load and performance first: PromQL for requests per second and for the share of good ones")
		return
	}
	d.add("    load: %s # requests per second", yamlQuoted(fmt.Sprintf("sum(rate(%s{%s}[%s]))", metric, m.selector(), window)))
	drafted := d.sloOf(m, metric, window)
	group := d.group(m.name)
	switch {
	case group != "" && d.cores > 0 && drafted:
		d.add("    knob: {cgroup: %s, cpu: {max: %v}} # the control group of that name; max is all that there is", view.DraftText(group), d.cores)
		d.add("    mode: recommend # trimtab says what it would set, and writes nothing")
		d.knobs++
	case group != "" && d.cores > 0:
		d.add("    # knob: {cgroup: %s, cpu: {max: %v}} # the control group of that name; max is all that there is", view.DraftText(group), d.cores)
		d.add("    mode: off # write an slo first; then use the knob above, and mode: recommend")
	default:
		d.add("    mode: off # no control group is named %s: write knob: {cgroup: PATH, cpu: {min: 0.1, max: 4}}, and then mode: recommend", oneLine(m.name))
	}
}

// loadOf is the first counter that has a rate now, in the shortest range that has two
// scrapes; window is "" where none has.
func (d *draft) loadOf(m *unseen) (metric string, load float64, window string) {
	for _, metric := range m.metrics[:min(len(m.metrics), 3)] {
		for _, window := range []string{"1m", "2m", "5m"} {
			if v, ok := d.number(fmt.Sprintf("sum(rate(%s{%s}[%s]))", metric, m.selector(), window)); ok {
				return metric, v, window
			}
		}
	}
	return "", 0, ""
}

// sloOf writes performance and SLO of a service from the buckets of its latency histogram, or a
// comment on what is missing.
func (d *draft) sloOf(m *unseen, metric, window string) (drafted bool) {
	base, isCount := strings.CutSuffix(metric, "_count")
	bounds := map[float64]string{}
	if unit, _ := promql.UnitOf(base); isCount && unit > 0 {
		all, _ := d.ask(fmt.Sprintf("count by (le) (%s_bucket{%s})", base, m.selector())) // none: a summary
		for _, s := range all {
			if v, err := strconv.ParseFloat(s.Labels["le"], 64); err == nil && v > 0 && !math.IsInf(v, 0) {
				bounds[v] = s.Labels["le"]
			}
		}
	}
	if len(bounds) == 0 {
		d.add("    # performance: %s tells no latencies: write PromQL for the share of requests that were good, and slo: {performance: 0.95}", metric)
		return false
	}
	count, counted := d.number(fmt.Sprintf("sum(increase(%s{%s}[1h]))", metric, m.selector()))
	p95, known := d.number(fmt.Sprintf("histogram_quantile(0.95, sum by (le) (rate(%s_bucket{%s}[1h])))", base, m.selector()))
	bound := boundOf(bounds, p95)
	good := yamlQuoted(fmt.Sprintf("sum(rate(%s_bucket{%s,le=%q}[%s])) / sum(rate(%s{%s}[%s]))", base, m.selector(), bounds[bound], window, metric, m.selector(), window))
	within := latencyOf(metric, bound)
	if !counted || !known || count < trimtab.ObservedNeeded() {
		d.add("    # performance: %s # the share of requests within %v", good, within)
		d.add("    # slo: {performance: 0.95} # a guess: Prometheus saw only %.0f requests in the last hour; %.0f are needed. Put what your users need, or draft again later", count, trimtab.ObservedNeeded())
		return false
	}
	d.add("    performance: %s # the share of requests within %v", good, within)
	d.add("    slo: {performance: 0.95} # Prometheus saw %.0f requests in the last hour: 95%% of them took at most about %v; %v is the bucket from %v times that on, or the last. Put what your users need, and draft again after a usual day",
		count, latencyOf(metric, p95).Round(100*time.Microsecond), within, draftMargin)
	return true
}

// boundOf is the least bound of a bucket that leaves the margin above a measured latency,
// or the largest there is.
func boundOf(bounds map[float64]string, measured float64) (best float64) {
	for v := range bounds {
		enough, bestEnough := v >= measured*draftMargin, best >= measured*draftMargin
		if best == 0 || enough && (!bestEnough || v < best) || !enough && !bestEnough && v > best {
			best = v
		}
	}
	return best
}

// latencyOf is a value of a histogram as a time, by the unit in the histogram's name.
func latencyOf(metric string, v float64) time.Duration {
	unit, _ := promql.UnitOf(metric)
	return trimtab.Seconds(v * unit.Seconds()).Duration()
}

// yamlQuoted is a query in YAML.
func yamlQuoted(query string) string { return "'" + strings.ReplaceAll(query, "'", "''") + "'" }

// oneLine is a text in a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
