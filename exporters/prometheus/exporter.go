// Package prometheus exports what the stages tell each other as metrics, so
// that a site's own Prometheus and Grafana show workloads, allocations and
// decisions: it follows estimates, holdings, plans and outcomes on the bus and
// sets the gauges of [metric.Table].
//
// Missing stays missing: a series whose value is not known is removed, never
// set to 0. It serves no HTTP and counts nothing about the stages themselves,
// which do that.
//
//	e := prometheus.New(metrics)
//	stop, err := e.Follow(ctx, bus)
package prometheus

import (
	"context"
	"fmt"
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
)

// maxWorkloads bounds the series: what is discovered beyond it is not exported.
const maxWorkloads = 10000

// Exporter turns values into metrics. It is safe for concurrent use.
type Exporter struct {
	metrics *metric.Set

	mu        sync.Mutex
	workloads map[string]bool
}

// New returns an exporter that sets the metrics of s.
func New(s *metric.Set) *Exporter { return &Exporter{metrics: s, workloads: map[string]bool{}} }

// Follow subscribes to what is exported; stop ends it.
func (e *Exporter) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for _, k := range []trimtab.Kind{trimtab.KindEstimate, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome} {
		s, err := b.Subscribe(ctx, bus.Subscription{Kind: k, Handle: func(_ context.Context, d bus.Delivery) error {
			e.Observe(d.Value)
			return nil
		}})
		if err != nil {
			stop()
			return nil, fmt.Errorf("follow %s: %w", k, err)
		}
		stops = append(stops, s)
	}
	return stop, nil
}

// Observe takes one value.
func (e *Exporter) Observe(value trimtab.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch v := value.(type) {
	case *trimtab.Estimate:
		e.estimate(v)
	case *trimtab.Holding:
		for _, t := range v.Targets {
			if t.Now.Unlimited || t.Problem != "" || !e.known(t.Target) {
				e.metrics.Forget("trimtab_workload_allocation", t.Target, v.Host, t.Resource)
				continue
			}
			e.metrics.Gauge("trimtab_workload_allocation", t.Target, v.Host, t.Resource).Set(t.Now.Value)
		}
	case *trimtab.Plan:
		e.plan(v)
	case *trimtab.Outcome:
		for _, r := range v.Results {
			e.metrics.Counter("trimtab_actions_total", r.Resource, string(r.Status)).Inc()
		}
		if len(v.Results) > 0 {
			e.metrics.Histogram("trimtab_action_duration_seconds").Observe(float64(v.Took))
		}
	}
}

// known admits a workload, up to the bound.
func (e *Exporter) known(name string) bool {
	if !e.workloads[name] && len(e.workloads) >= maxWorkloads {
		return false
	}
	e.workloads[name] = true
	return true
}

func (e *Exporter) estimate(v *trimtab.Estimate) {
	if !e.known(v.Workload) {
		return
	}
	var load, upper *float64
	if v.Load != nil {
		load, upper = &v.Load.Now, &v.Load.Upper
	}
	reports, held := float64(v.Reports), 0.0
	if v.Hold != "" {
		held = 1
	}
	seen := float64(v.Time.UnixMilli()) / 1000
	e.set("trimtab_workload_load", load, v.Workload)
	e.set("trimtab_workload_load_upper", upper, v.Workload)
	e.set("trimtab_workload_performance", v.Performance, v.Workload)
	e.set("trimtab_workload_reports", &reports, v.Workload)
	e.set("trimtab_workload_held", &held, v.Workload)
	e.set("trimtab_workload_estimate_timestamp_seconds", &seen, v.Workload)
	for name, percentile := range map[string]string{"p50": "50", "p95": "95", "p99": "99"} {
		var latency *float64
		if l, ok := v.Latency[name]; ok {
			s := float64(l)
			latency = &s
		}
		e.set("trimtab_workload_latency_seconds", latency, v.Workload, percentile)
	}
}

func (e *Exporter) plan(p *trimtab.Plan) {
	e.metrics.Gauge("trimtab_pool_capacity", p.Pool).Set(p.Capacity)
	e.metrics.Gauge("trimtab_pool_plan_timestamp_seconds", p.Pool).Set(float64(p.Time.UnixMilli()) / 1000)
	e.set("trimtab_pool_objective", p.Value, p.Pool, p.Objective)
	for _, a := range p.Actions {
		if e.known(a.Target) {
			e.set("trimtab_workload_target", a.Why.Target, a.Target)
			e.set("trimtab_workload_demand", a.Why.Demand, a.Target)
		}
	}
}

// set sets the gauge, or removes its series when the value is missing.
func (e *Exporter) set(name string, v *float64, labels ...string) {
	if v == nil {
		e.metrics.Forget(name, labels...)
		return
	}
	e.metrics.Gauge(name, labels...).Set(*v)
}
