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

	mu        sync.Mutex
	workloads map[string]*figure
	held      newest.Allocations

	gauges  []metric.Float64ObservableGauge
	actions metric.Int64Counter
	latency metric.Float64Histogram
}

// figure has the values of one workload; nil is missing.
type figure struct {
	seen time.Time
	// values are in the order of gauges.
	values [6]*float64
}

// maxHeld limits the places of one workload that are pushed, maxHosts and maxKnobs the hosts and
// knobs whose reports are kept.
const maxHeld, maxHosts, maxKnobs = 2 * trimtab.MaxResources, 10_000, 200_000

// The places of the values; the allocation comes from held.
const (
	allocation = iota
	target
	demand
	utility
	load
	performance
)

func newFigures(m metric.Meter, utility func(string, float64) (float64, bool)) (*figures, error) {
	f := &figures{utility: utility, workloads: map[string]*figure{}, held: newest.Allocations{MaxHosts: maxHosts, MaxKnobs: maxKnobs}}
	var errs []error
	var all []metric.Observable
	for _, g := range []struct{ name, unit, about string }{
		{"trimtab.workload.allocation", "{resource}", "What the knobs of its instances on a host give together, in the unit of the resource"},
		{"trimtab.workload.target", "{resource}", "Allocation that the solver wants"},
		{"trimtab.workload.demand", "{resource}", "Least allocation that meets the SLO"},
		{"trimtab.workload.utility", "1", "Utility of the present performance, 0 to 1"},
		{"trimtab.workload.load", "{request}/s", "Load, newest report"},
		{"trimtab.workload.performance", "1", "Performance in the unit of its SLO, newest report"},
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

// of returns the gauges of a workload; nil if there are too many workloads.
func (f *figures) of(name string, now time.Time) *figure {
	w := f.workloads[name]
	if w == nil {
		if len(f.workloads) >= maxWorkloads {
			return nil
		}
		w = &figure{}
		f.workloads[name] = w
	}
	w.seen = now
	return w
}

// observe reads one value at time now.
func (f *figures) observe(now time.Time, value trimtab.Value) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch v := value.(type) {
	case *trimtab.Estimate:
		if w := f.of(v.Workload, now); w != nil {
			w.estimate(v, f.utility)
		}
	case *trimtab.Holding:
		f.held.Hear(v, now, func(k *trimtab.KnobState) bool { return f.of(k.Workload, now) != nil })
	case *trimtab.Plan:
		for i := range v.Actions {
			if w := f.of(v.Actions[i].Workload, now); w != nil && v.First(v.Actions[i].Resource) {
				w.values[target], w.values[demand] = v.Actions[i].Why.Target, v.Actions[i].Why.Demand
			}
		}
	case *trimtab.Outcome:
		for _, r := range v.Results {
			f.actions.Add(context.Background(), 1, metric.WithAttributes(
				attribute.String("trimtab.resource", r.Resource), attribute.String("trimtab.status", string(r.Status))))
		}
	}
}

// allocations are what a workload has in each place where that is known, in the first maxHeld of
// them by name: the same at each push.
func (f *figures) allocations(name string) map[newest.Place]float64 {
	out, held := map[newest.Place]float64{}, f.held.Of(name)
	places := slices.SortedFunc(maps.Keys(held), newest.Place.Compare)
	for _, at := range places[:min(maxHeld, len(places))] {
		if g := held[at]; !g.Unknown {
			out[at] = g.Amount
		}
	}
	return out
}

func (w *figure) estimate(v *trimtab.Estimate, u func(string, float64) (float64, bool)) {
	w.values[load], w.values[utility] = nil, nil
	w.values[performance] = v.Performance
	if v.Load != nil {
		w.values[load] = &v.Load.Now
	}
	if v.Performance != nil && u != nil {
		if x, ok := u(v.Workload, *v.Performance); ok {
			w.values[utility] = &x
		}
	}
}

// expire forgets workloads without a value for long, and hosts without a report.
func (f *figures) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, w := range f.workloads {
		if now.Sub(w.seen) > forgotten {
			delete(f.workloads, name)
		}
	}
	f.held.Forget(now.Add(-forgotten))
}

// read is called by the SDK at every push.
func (f *figures) read(_ context.Context, o metric.Observer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, w := range f.workloads {
		workload := attribute.String("trimtab.workload", name)
		for i, v := range w.values {
			if v != nil {
				o.ObserveFloat64(f.gauges[i], *v, metric.WithAttributes(workload))
			}
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
