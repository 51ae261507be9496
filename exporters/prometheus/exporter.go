// Package prometheus exports the values on the bus as metrics, so that a site's own Prometheus and
// Grafana show workloads, allocations and decisions: it follows estimates, holdings, plans and
// outcomes on the bus and sets the gauges of [metric.Table].
//
// What it sets for workloads and hosts stays under [maxBytes], however many there
// are: the first workloads have every series, in order of configuration, the
// others those of [brief] alone (room.go).
//
// Missing stays missing: a series whose value is not known is removed, never
// set to 0. It serves no HTTP and counts nothing about the stages themselves,
// which do that.
//
// What a workload's performance is worth is known from the configuration:
//
//	utility = u(performance),  u in [0, 1] of the workload itself
//
//	e := prometheus.New(metrics)
//	e.Configure([]prometheus.Workload{{Name: "shop", SLO: 0.95, Utility: u}})
//	stop, err := e.Follow(ctx, bus)
package prometheus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/newest"
	"github.com/trimtab/trimtab/quantity"
)

// maxWorkloads limits the series: discovered workloads beyond it are not exported.
const maxWorkloads = 10000

// Exporter sets metrics from values. It is safe for concurrent use.
type Exporter struct {
	metrics *metric.Set

	mu        sync.Mutex
	patience  time.Duration // see SetPatience
	workloads map[string]*workload
	// newest has the values; its estimates are dropped once they are exported. news names the
	// workloads with an estimate since the last scrape, and audits has the newest plans with an
	// audit, by pool.
	newest  newest.Model
	updated map[string]bool
	audits  map[string]*trimtab.Plan
	// tails are the Servpods of each workload that have series, tailNews the values since the
	// last scrape.
	tails           map[string]*tail
	changedTails    map[string]*colocation.Contributions
	pods, tailBytes int
	// counted are the workloads that have series of performance counters.
	counted      map[string]bool
	countedBytes int
	shedding     shedding
	hosts        map[newest.HostKey]*host
	jobHosts     map[string]*jobsHost
	changedJobs  map[string]jobsUpdate
	usage        usage
	names        names
	// trace names the trace of a decision; nil: there are none.
	trace func(pool string, epoch, sequence uint64) string
}

// Workload is the declared part of one workload.
type Workload struct {
	Name string
	// SLO is the target performance, > 0; 0: none.
	SLO float64
	// Utility maps performance to [0, 1]; nil: unknown.
	Utility func(performance float64) float64
}

// workload is the exporter's state of one workload.
type workload struct {
	declared Workload
	curve    curve
	// classes are those of which it has series of refused requests.
	classes []string
	// audited is the pool whose newest audit listed it; "": none.
	audited string
	// has is what it has on each host, shown the labels of the series of that.
	has   map[newest.HostResource]newest.Given
	shown map[newest.HostResource]bool
	stale bool // shown differs from has
	// measured says that the figures of an estimate are exported.
	measured bool
	// inBrief says that the workload has only the series in brief; counted is about how many
	// bytes all take.
	inBrief bool
	counted int
}

// New returns an exporter that sets the metrics of s.
func New(s *metric.Set) *Exporter {
	e := &Exporter{metrics: s, workloads: map[string]*workload{}, updated: map[string]bool{}, audits: map[string]*trimtab.Plan{}, tails: map[string]*tail{}, changedTails: map[string]*colocation.Contributions{}, counted: map[string]bool{},
		hosts: map[newest.HostKey]*host{}, newest: newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: maxWorkloads}, jobHosts: map[string]*jobsHost{}, changedJobs: map[string]jobsUpdate{}}
	e.newest.Admits = func(name string) bool { return e.known(name) != nil }
	s.Before(e.catchUp)
	return e
}

// catchUp exports the newest estimates, audits, contributions and holdings at a scrape: they come
// far more often than scrapes.
func (e *Exporter) catchUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle()
	e.settleJobs()
	for _, name := range slices.Sorted(maps.Keys(e.updated)) {
		told := &e.newest.Of(name).Estimate
		if told.Value != nil { // else it was late
			e.estimate(told.Value, e.workloads[name])
			told.Value = nil
		}
	}
	clear(e.updated)
	for _, pool := range slices.Sorted(maps.Keys(e.audits)) {
		e.audit(e.audits[pool])
	}
	clear(e.audits)
	for _, name := range slices.Sorted(maps.Keys(e.changedTails)) {
		e.tail(e.changedTails[name])
	}
	clear(e.changedTails)
	for name, w := range e.workloads {
		if e.patience > 0 && w.measured && e.newest.Of(name).Estimate.Age(time.Now()) > e.patience {
			w.measured = false
			e.measured(&trimtab.Estimate{Workload: name}, nil)
			e.shedding.export(e.metrics, &trimtab.Estimate{Workload: name}, w)
		}
	}
}

// SetPatience says after how long an estimate's figures are no longer exported, for want
// of a newer one; 0: never.
func (e *Exporter) SetPatience(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.patience, e.newest.Followed = d, d
}

// Configure replaces the declared workloads and keeps the observed state.
func (e *Exporter) Configure(declared []Workload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, w := range e.workloads {
		w.declared = Workload{}
		e.metrics.Forget("trimtab_workload_slo_performance", name)
		e.metrics.Forget("trimtab_workload_utility", name)
	}
	e.readmit(declared)
	for _, d := range declared {
		w := e.known(d.Name)
		if w == nil {
			continue
		}
		w.declared = d
		if d.SLO > 0 {
			e.metrics.Gauge("trimtab_workload_slo_performance", d.Name).Set(d.SLO)
		}
	}
}

// SetTraces adds exemplars to the durations of actions: the trace ID of their decision that trace
// returns, if any; nil: none.
func (e *Exporter) SetTraces(trace func(pool string, epoch, sequence uint64) string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trace = trace
}

// took observes how long the actions of an outcome took.
func (e *Exporter) took(o *trimtab.Outcome) {
	h, id := e.metrics.Histogram("trimtab_action_duration_seconds"), ""
	if e.trace != nil {
		id = e.trace(o.Pool, o.Epoch, o.Sequence)
	}
	if x, ok := h.(prometheus.ExemplarObserver); ok && id != "" {
		x.ObserveWithExemplar(float64(o.Took), prometheus.Labels{"trace_id": id})
		return
	}
	h.Observe(float64(o.Took))
}

// Follow subscribes to the values that it exports; stop ends it.
func (e *Exporter) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, false, e.Observe,
		trimtab.KindEstimate, colocation.KindContributions, colocation.KindColocation, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome)
}

// Observe reads one value.
func (e *Exporter) Observe(value trimtab.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch v := value.(type) {
	case *trimtab.Estimate:
		if e.newest.Observe(v, time.Now()); e.known(v.Workload) != nil {
			e.updated[v.Workload] = true
		}
	case *colocation.Contributions:
		if e.known(v.Workload) != nil && (e.tails[v.Workload] != nil || e.changedTails[v.Workload] != nil || len(e.tails)+len(e.changedTails) < maxTails) {
			e.changedTails[v.Workload] = v
		}
	case *colocation.Colocation:
		e.observeJobs(v)
	case *trimtab.Holding:
		e.observeHolding(v)
	case *trimtab.Plan:
		e.plan(v)
	case *trimtab.Outcome:
		for _, r := range v.Results {
			e.metrics.Counter("trimtab_actions_total", e.names.resource(r.Resource), status(r.Status)).Inc()
		}
		if len(v.Results) > 0 {
			e.took(v)
		}
	}
}

// known returns a workload, new ones up to the limit; nil: there are too many.
func (e *Exporter) known(name string) *workload {
	w := e.workloads[name]
	if w == nil && len(e.workloads) < maxWorkloads {
		w = &workload{}
		if !e.admit(name, w) {
			return nil
		}
		if w.inBrief {
			return w
		}
		for _, labels := range each("trimtab_workload_decisions_total") {
			e.metrics.Counter("trimtab_workload_decisions_total", slices.Concat([]string{name}, labels)...)
		}
	}
	return w
}

func (e *Exporter) estimate(v *trimtab.Estimate, w *workload) {
	var utility *float64
	if v.Performance != nil && w.declared.Utility != nil {
		u := w.declared.Utility(*v.Performance)
		utility = &u
	}
	w.measured = true
	e.measured(v, utility)
	reports, held := float64(v.Reports), 0.0
	if v.Hold != nil {
		held = 1
	}
	seen := float64(v.Time.UnixMilli()) / 1000
	e.set("trimtab_workload_reports", &reports, v.Workload)
	e.set("trimtab_workload_held", &held, v.Workload)
	e.set("trimtab_workload_estimate_timestamp_seconds", &seen, v.Workload)
	e.expected(v, w)
	if more := e.shedding.export(e.metrics, v, w); more > 0 {
		e.usage.bytes += more
		e.fit()
	}
	e.counters(v)
}

// measured exports the measurements of a workload. A load without a recent measurement is
// missing, though the forecast goes on.
func (e *Exporter) measured(v *trimtab.Estimate, utility *float64) {
	var load, upper *float64
	if v.Load != nil && !v.LoadMissing() {
		load, upper = &v.Load.Now, &v.Load.Upper
	}
	e.set("trimtab_workload_load", load, v.Workload)
	e.set("trimtab_workload_load_upper", upper, v.Workload)
	e.set("trimtab_workload_performance", v.Performance, v.Workload)
	e.set("trimtab_workload_utility", utility, v.Workload)
	for name, q := range map[string]quantity.Quantity{"trimtab_workload_accept_queue": quantity.Queued, "trimtab_workload_cpu_wait_ratio": quantity.Waited} {
		i := slices.IndexFunc(v.Inputs, func(in trimtab.Input) bool { return in.Name == string(q) && in.Missing == "" })
		var waits *float64
		if i >= 0 {
			waits = &v.Inputs[i].Value
		}
		e.set(name, waits, v.Workload)
	}
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
	if !e.names.pool(p.Pool, p.Objective) {
		return
	}
	if e.newest.Observe(p, time.Now()); e.newest.Plan(p.Pool).Value != p {
		return // it is late
	}
	e.metrics.Gauge("trimtab_pool_capacity", p.Pool).Set(p.Capacity)
	e.metrics.Gauge("trimtab_pool_plan_timestamp_seconds", p.Pool).Set(float64(p.Time.UnixMilli()) / 1000)
	e.set("trimtab_pool_objective", p.Value, p.Pool, p.Objective)
	for name, capacity := range p.Capacities {
		if !p.First(name) && e.names.resource(name) == name {
			e.metrics.Gauge("trimtab_pool_further_capacity", p.Pool, name).Set(capacity)
		}
	}
	if p.Audit != nil {
		e.audits[p.Pool] = p
	}
	for _, a := range p.Actions {
		w := e.known(a.Workload)
		if w == nil {
			continue
		}
		e.choice(a.Workload)
		direction := "raise"
		if a.Set.Less(a.Expect) {
			direction = "lower"
		}
		if !w.inBrief {
			e.metrics.Counter("trimtab_workload_decisions_total", a.Workload, string(a.Mode), direction).Inc()
		}
	}
	for name := range p.Held {
		e.choice(name)
	}
}

// choice exports what the newest plan wants for a workload, of the pool's first resource.
func (e *Exporter) choice(name string) {
	if w := e.newest.Of(name); w != nil && w.First != nil {
		e.set("trimtab_workload_target", w.First.Target, name)
		e.set("trimtab_workload_demand", w.First.Demand, name)
	}
}

// set sets the gauge, or removes its series when the value is missing. A workload
// in brief has no more than the series of brief.
func (e *Exporter) set(name string, v *float64, labels ...string) {
	if v != nil && e.leavesOut(name, labels) {
		return
	}
	if v == nil {
		e.metrics.Forget(name, labels...)
		return
	}
	e.metrics.Gauge(name, labels...).Set(digits(*v))
}
