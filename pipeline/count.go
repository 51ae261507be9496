package pipeline

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/topic"
)

// exportEvery is the largest age of a step's counts when they are scraped.
const exportEvery = time.Second

// counts are the metrics of one stage, looked up once. Without a set they
// count nothing.
type counts struct {
	set   *metric.Set
	stage string

	step   prometheus.Observer
	lag    prometheus.Observer
	panics prometheus.Counter
	again  prometheus.Counter
	in     map[trimtab.Kind]prometheus.Counter
	out    map[trimtab.Kind]prometheus.Counter
}

func newCounts(set *metric.Set, stage string) *counts {
	c := &counts{set: set, stage: stage, in: map[trimtab.Kind]prometheus.Counter{}, out: map[trimtab.Kind]prometheus.Counter{}}
	if set == nil {
		return c
	}
	c.step = set.Histogram("trimtab_stage_step_seconds", stage)
	c.lag = set.Histogram("trimtab_stage_lag_seconds", stage)
	c.panics = set.Counter("trimtab_stage_panics_total", stage)
	c.again = set.Counter("trimtab_stage_redeliveries_total", stage)
	for _, k := range topic.All() {
		c.in[k.Kind] = set.Counter("trimtab_stage_inputs_total", stage, string(k.Kind))
		c.out[k.Kind] = set.Counter("trimtab_stage_outputs_total", stage, string(k.Kind))
	}
	return c
}

func (c *counts) input(d bus.Delivery) {
	if c.set == nil {
		return
	}
	c.in[d.Value.Kind()].Inc()
	if d.Again > 0 {
		c.again.Inc()
	}
	if !d.Stored.IsZero() {
		c.lag.Observe(max(time.Since(d.Stored), 0).Seconds())
	}
}

func (c *counts) took(d time.Duration) {
	if c.set != nil {
		c.step.Observe(d.Seconds())
	}
}

func (c *counts) panicked() {
	if c.set != nil {
		c.panics.Inc()
	}
}

func (c *counts) output(k trimtab.Kind) {
	if c.set != nil {
		c.out[k].Inc()
	}
}

func (c *counts) fenced(k trimtab.Kind)  { c.unpublished(k, "fenced") }
func (c *counts) refused(k trimtab.Kind) { c.unpublished(k, "refused") }
func (c *counts) retried(k trimtab.Kind) { c.unpublished(k, "retried") }

func (c *counts) unpublished(k trimtab.Kind, why string) {
	if c.set != nil {
		c.set.Counter("trimtab_stage_unpublished_total", c.stage, string(k), why).Inc()
	}
}

func (c *counts) snapshot(what string) {
	if c.set != nil {
		c.set.Counter("trimtab_stage_snapshots_total", c.stage, what).Inc()
	}
}

// lead records the epoch, and whether the stage is ready: one that waits for another leader is.
// The goroutine of the lock calls it, maybe before r.lock is set.
func (r *stage) lead(epoch uint64, reason string) {
	if r.counts.set != nil {
		r.counts.set.Gauge("trimtab_leader_epoch", r.Leader.Pool).Set(float64(epoch))
	}
	r.health.lead(time.Now(), epoch)
	r.ready.says(reason)
}

// exporter converts the counts of a step into metrics.
type exporter struct {
	set    *metric.Set
	log    *slog.Logger
	rows   map[string]metric.Row
	series map[string]*series
	round  int
}

// series is one exported name with its labels.
type series struct {
	name    string
	labels  []string
	counter prometheus.Counter
	gauge   prometheus.Gauge
	last    float64
	round   int // the last round in which the step returned it
}

func newExporter(set *metric.Set, log *slog.Logger) *exporter {
	e := &exporter{set: set, log: log, rows: map[string]metric.Row{}, series: map[string]*series{}}
	for _, r := range metric.Table() {
		e.rows[r.Name] = r
	}
	return e
}

// read exports the counts of the step. It drops a gauge that the step no longer yields, and keeps
// a counter.
func (e *exporter) read(step trimtab.Step) {
	counted, ok := step.(trimtab.Counted)
	if !ok || e.set == nil {
		return
	}
	e.round++
	counted.Counts(e.count)
	for id, s := range e.series {
		if s != nil && s.gauge != nil && s.round != e.round {
			e.set.Forget(s.name, s.labels...)
			delete(e.series, id)
		}
	}
}

func (e *exporter) count(name string, value float64, labels ...string) {
	id := name + "\xff" + strings.Join(labels, "\xff")
	s, known := e.series[id]
	if !known {
		s = e.open(name, labels)
		e.series[id] = s
	}
	if s == nil {
		return
	}
	s.round = e.round
	if s.gauge != nil {
		s.gauge.Set(value)
		return
	}
	// A step that was created again counts from zero.
	if value < s.last {
		s.last = 0
	}
	if d := value - s.last; d > 0 {
		s.counter.Add(d)
	}
	s.last = value
}

// open finds the metric. It returns nil, and logs once, if a step counts something that the table
// does not have: a fault that should not stop a stage.
func (e *exporter) open(name string, labels []string) *series {
	row, ok := e.rows[name]
	s := &series{name: name, labels: append([]string(nil), labels...)}
	switch {
	case ok && len(row.Labels) == len(labels) && row.Type == metric.Counter:
		s.counter = e.set.Counter(name, labels...)
	case ok && len(row.Labels) == len(labels) && row.Type == metric.Gauge:
		s.gauge = e.set.Gauge(name, labels...)
	default:
		e.log.Error("step counts what is not in the table of metrics", "name", name, "labels", labels)
		return nil
	}
	return s
}
