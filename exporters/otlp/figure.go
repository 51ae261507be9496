package otlp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// forgotten is how long the gauges of a workload are pushed after its last value.
const forgotten = 15 * time.Minute

// figures has the newest values of all workloads, which the SDK reads at every push. Missing values
// are not pushed.
type figures struct {
	utility func(string, float64) (float64, bool)

	mu     sync.Mutex
	newest newest.Model

	gauges  []metric.Float64ObservableGauge
	actions metric.Int64Counter
	latency metric.Float64Histogram
}

// maxHeld limits the places of one workload that are pushed, maxHosts the hosts whose reports are
// kept.
const maxHeld, maxHosts = 2 * trimtab.MaxResources, 10_000

// The places of the values.
const (
	allocation = iota
	target
	demand
	utility
	load
	performance
	numValues
	refused = numValues // by class, and so not among the values
)

func newFigures(m metric.Meter, utility func(string, float64) (float64, bool)) (*figures, error) {
	f := &figures{utility: utility, newest: newest.Model{Hosts: newest.Hosts{Max: maxHosts}, MaxWorkloads: maxWorkloads, Followed: forgotten}}
	var errs []error
	var all []metric.Observable
	for _, g := range []struct{ name, unit, about string }{
		{"trimtab.workload.allocation", "{resource}", "What the knobs of its instances on a host give together, in the unit of the resource"},
		{"trimtab.workload.target", "{resource}", "Allocation that the solver wants"},
		{"trimtab.workload.demand", "{resource}", "Least allocation that meets the SLO"},
		{"trimtab.workload.utility", "1", "Utility of the present performance, 0 to 1"},
		{"trimtab.workload.load", "{request}/s", "Load, newest report"},
		{"trimtab.workload.performance", "1", "Performance in the unit of its SLO, newest report"},
		{"trimtab.workload.refused", "{request}/s", "Requests that gates refused, by class, newest report"},
	} {
		gauge, err := m.Float64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.about))
		errs = append(errs, err)
		f.gauges, all = append(f.gauges, gauge), append(all, gauge)
	}
	var err error
	f.actions, err = m.Int64Counter("trimtab.actions", metric.WithUnit("{action}"), metric.WithDescription("Actions by what became of them"))
	errs = append(errs, err)
	f.latency, err = m.Float64Histogram("trimtab.decision.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the newest sample of a decision to its last read back"),
		metric.WithExplicitBucketBoundaries(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300))
	errs = append(errs, err)
	_, err = m.RegisterCallback(f.read, all...)
	return f, errors.Join(append(errs, err)...)
}

// observe reads one value at time now.
func (f *figures) observe(now time.Time, value trimtab.Value) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch v := value.(type) {
	case *trimtab.Estimate:
		kept := *v
		kept.Curve, kept.Curves = nil, nil // they are not pushed
		value = &kept
	case *trimtab.Outcome:
		for _, r := range v.Results {
			f.actions.Add(context.Background(), 1, metric.WithAttributes(
				attribute.String("trimtab.resource", r.Resource), attribute.String("trimtab.status", string(r.Status))))
		}
	}
	f.newest.Observe(value, now)
}

// allocations are what a workload has in each place where that is known, in the first maxHeld of
// them by name: the same at each push.
func (f *figures) allocations(name string) map[newest.HostResource]float64 {
	out, held := map[newest.HostResource]float64{}, f.newest.Given(name)
	places := slices.SortedFunc(maps.Keys(held), newest.HostResource.Compare)
	for _, at := range places[:min(maxHeld, len(places))] {
		if g := held[at]; !g.Unknown {
			out[at] = g.Amount
		}
	}
	return out
}

// values are those of a workload but for its allocation; nil is missing.
func (f *figures) values(name string) (all [numValues]*float64) {
	w := f.newest.Of(name)
	if w == nil {
		return all
	}
	if w.First != nil {
		all[target], all[demand] = w.First.Target, w.First.Demand
	}
	if e := w.Estimate.Value; e != nil {
		if all[performance] = e.Performance; e.Load != nil {
			all[load] = &e.Load.Now
		}
		if e.Performance != nil && f.utility != nil {
			if x, ok := f.utility(name, *e.Performance); ok {
				all[utility] = &x
			}
		}
	}
	return all
}

// maxClasses bounds the classes of which refused requests are pushed; those beyond it are pushed
// together as "other".
const maxClasses = 17

// refusedOf returns how many requests of a workload per second gates refuse, by class; nil: none, or
// its load is unknown.
func (f *figures) refusedOf(name string) map[string]float64 {
	w := f.newest.Of(name)
	if w == nil || w.Estimate.Value == nil || w.Estimate.Value.Load == nil || w.Estimate.Value.LoadMissing() {
		return nil
	}
	out := map[string]float64{}
	for _, class := range slices.Sorted(maps.Keys(w.Estimate.Value.Refused)) {
		v := w.Estimate.Value.Refused[class]
		if len(out) >= maxClasses-1 {
			class = "other"
		}
		out[class] += v
	}
	return out
}

// expire forgets workloads without a value for long, and hosts without a report.
func (f *figures) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest.Forget(now, forgotten)
}

// read is called by the SDK at every push.
func (f *figures) read(_ context.Context, o metric.Observer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.newest.Workloads() {
		workload := attribute.String("trimtab.workload", name)
		for i, v := range f.values(name) {
			if v != nil {
				o.ObserveFloat64(f.gauges[i], *v, metric.WithAttributes(workload))
			}
		}
		for class, v := range f.refusedOf(name) {
			o.ObserveFloat64(f.gauges[refused], v, metric.WithAttributes(workload, attribute.String("trimtab.class", class)))
		}
		for at, v := range f.allocations(name) {
			o.ObserveFloat64(f.gauges[allocation], v, metric.WithAttributes(workload,
				attribute.String("host.name", at.Host), attribute.String("trimtab.resource", at.Resource)))
		}
	}
	return nil
}

// decided counts how long a decision took. ctx carries its trace, which
// becomes the exemplar.
func (f *figures) decided(ctx context.Context, pool string, took time.Duration) {
	f.latency.Record(ctx, max(0, took.Seconds()), metric.WithAttributes(attribute.String("trimtab.pool", pool)))
}
