// Package metric holds the one table of the metrics that trimtab exports
// about itself, and the set that counts them. docs/metrics.md is printed from
// the table, and dashboards and rules are tested against it. It does not
// serve HTTP.
package metric

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is the Prometheus type of a metric.
type Type string

// The types in use.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Row describes one metric.
type Row struct {
	// Name starts with "trimtab_"; counters end in "_total".
	Name   string
	Type   Type
	Labels []string
	// Help is one sentence without a full stop that names the unit.
	Help string
	// Buckets are the upper borders of a histogram, in the metric's unit.
	Buckets []float64
	// Start are the label values of counter series that exist as 0 from the start, so that a rate
	// includes the first event; a counter without labels always does.
	Start [][]string
}

// Table returns all rows, in order of name.
func Table() []Row {
	rows := slices.Concat(collectorRows(), analyzerRows(), plannerRows(), actuatorRows(), colocateRows(), speculateRows(), batchRows(), fastRows(), pipelineRows(), exporterRows(), GateRows())
	slices.SortFunc(rows, func(a, b Row) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return rows
}

// Set counts the metrics of the table. Names that are not in the table, and
// wrong numbers of labels, are programmer's errors: its methods panic on them.
type Set struct {
	// registry has the metrics that are not in the table.
	registry   *prometheus.Registry
	rows       []Row
	vectors    []prometheus.Collector // of rows
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec

	mu     sync.Mutex
	before []func()
}

// NewSet makes the metrics of the whole table.
func NewSet() *Set { return NewSetOf(Table()) }

// NewSetOf makes the metrics of some rows of the table, for a process that has no others.
func NewSetOf(rows []Row) *Set {
	s := &Set{
		registry:   prometheus.NewRegistry(),
		rows:       rows,
		counters:   map[string]*prometheus.CounterVec{},
		gauges:     map[string]*prometheus.GaugeVec{},
		histograms: map[string]*prometheus.HistogramVec{},
	}
	for _, r := range s.rows {
		switch r.Type {
		case Counter:
			s.counters[r.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: r.Name, Help: r.Help}, r.Labels)
			s.vectors = append(s.vectors, s.counters[r.Name])
			if len(r.Labels) == 0 {
				s.Counter(r.Name)
			}
			for _, values := range r.Start {
				s.Counter(r.Name, values...)
			}
		case Gauge:
			s.gauges[r.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: r.Name, Help: r.Help}, r.Labels)
			s.vectors = append(s.vectors, s.gauges[r.Name])
		case Histogram:
			s.histograms[r.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: r.Name, Help: r.Help, Buckets: r.Buckets}, r.Labels)
			s.vectors = append(s.vectors, s.histograms[r.Name])
		default:
			panic(fmt.Sprintf("metric: %s has type %q", r.Name, r.Type))
		}
	}
	return s
}

// each makes label values of one label for Row.Start.
func each(values ...string) [][]string {
	out := make([][]string, len(values))
	for i, v := range values {
		out[i] = []string{v}
	}
	return out
}

// Registry returns the registry for metrics that are not in the table, such as those of the
// process.
func (s *Set) Registry() *prometheus.Registry { return s.registry }

// Counter returns the counter; callers that use it often should keep it.
func (s *Set) Counter(name string, labels ...string) prometheus.Counter {
	return get(s.counters, name).WithLabelValues(labels...)
}

// Gauge returns the gauge.
func (s *Set) Gauge(name string, labels ...string) prometheus.Gauge {
	return get(s.gauges, name).WithLabelValues(labels...)
}

// Histogram returns the histogram.
func (s *Set) Histogram(name string, labels ...string) prometheus.Observer {
	return get(s.histograms, name).WithLabelValues(labels...)
}

// Forget drops the series of a gauge or counter, for a workload or host that is
// gone.
func (s *Set) Forget(name string, labels ...string) {
	if c, ok := s.counters[name]; ok {
		c.DeleteLabelValues(labels...)
		return
	}
	get(s.gauges, name).DeleteLabelValues(labels...)
}

func get[V any](m map[string]V, name string) V {
	v, ok := m[name]
	if !ok {
		panic(fmt.Sprintf("metric: %s is not in the table", name))
	}
	return v
}
