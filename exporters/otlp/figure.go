package otlp

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trimtab/trimtab"
)

// forgotten is how long the gauges of a workload are pushed after its last value.
const forgotten = 15 * time.Minute

// figures holds the newest values of all workloads, which the SDK reads at every push. Missing
// values are not pushed.
type figures struct {
	utility func(string, float64) (float64, bool)

	mu        sync.Mutex
	workloads map[string]*figure
	// on are the workloads of each host's last word, by its key.
	on map[string][]string

	gauges  []metric.Float64ObservableGauge
	actions metric.Int64Counter
	latency metric.Float64Histogram
}

// figure is what is known of one workload; nil is missing.
type figure struct {
	seen time.Time
	// values are in the order of gauges.
	values [6]*float64
	held   map[place]float64
}

// place is where a workload has something of a resource.
type place struct{ host, resource string }

// maxHeld limits the places of one workload, maxHosts the hosts.
const maxHeld, maxHosts = 2 * trimtab.MaxResources, 10_000

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
	f := &figures{utility: utility, workloads: map[string]*figure{}, on: map[string][]string{}}
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

// of returns the gauges of a workload; nil when there are too many workloads.
func (f *figures) of(name string, now time.Time) *figure {
	w := f.workloads[name]
	if w == nil {
		if len(f.workloads) >= maxWorkloads {
			return nil
		}
		w = &figure{held: map[place]float64{}}
		f.workloads[name] = w
	}
	w.seen = now
	return w
}

// observe takes one value at time now.
func (f *figures) observe(now time.Time, value trimtab.Value) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch v := value.(type) {
	case *trimtab.Estimate:
		if w := f.of(v.Workload, now); w != nil {
			w.estimate(v, f.utility)
		}
	case *trimtab.Holding:
		f.hear(now, v)
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

// hear reads what a host's knobs have: for each workload the sum over its instances there,
// missing where one has no limit or cannot be read.
func (f *figures) hear(now time.Time, h *trimtab.Holding) {
	key := h.Key()
	if _, known := f.on[key]; !known && len(f.on) >= maxHosts {
		return
	}
	for _, name := range f.on[key] {
		if w := f.workloads[name]; w != nil {
			maps.DeleteFunc(w.held, func(at place, _ float64) bool { return at.host == h.Host })
		}
	}
	f.on[key] = nil
	missing := map[trimtab.KnobID]bool{}
	for i := range h.Targets {
		t := &h.Targets[i]
		w, at := f.of(t.Workload, now), place{h.Host, t.Resource}
		if w == nil {
			continue
		}
		f.on[key] = append(f.on[key], t.Workload)
		whole := trimtab.KnobID{Workload: t.Workload, Resource: t.Resource}
		if a := t.InForce(); a.Unlimited || t.Problem != "" {
			missing[whole] = true
			delete(w.held, at)
		} else if _, known := w.held[at]; !missing[whole] && (known || len(w.held) < maxHeld) {
			w.held[at] += a.Value
		}
	}
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

// expire forgets workloads without a value for long.
func (f *figures) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, w := range f.workloads {
		if now.Sub(w.seen) > forgotten {
			delete(f.workloads, name)
		}
	}
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
		for at, v := range w.held {
			o.ObserveFloat64(f.gauges[allocation], v, metric.WithAttributes(workload,
				attribute.String("host.name", at.host), attribute.String("trimtab.resource", at.resource)))
		}
	}
	return nil
}

// decided counts how long a decision took. ctx carries its trace, which
// becomes the exemplar.
func (f *figures) decided(ctx context.Context, pool string, took time.Duration) {
	f.latency.Record(ctx, max(0, took.Seconds()), metric.WithAttributes(attribute.String("trimtab.pool", pool)))
}
