package analyzer

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/quantile"
)

// report is what one interval showed. Nil pointers are missing values.
type report struct {
	at   time.Time // the interval's end; zero: no report yet
	load *float64
	// now is the load at the end of the interval, where load is of a longer time.
	now         *float64
	loadFrom    string
	loadAt      time.Time
	performance *float64
	// requests is how many performance is the share of; fresh, how many of them no
	// earlier report taught, since windows overlap.
	requests, fresh float64
	// window is how long before its time the performance covers; 0: the interval.
	window     time.Duration
	sigma      float64
	perfFrom   string
	perfAt     time.Time
	allocation *float64
	allocFrom  string
	allocAt    time.Time
	noAlloc    string // why allocation is missing
	latency    map[string]trimtab.Seconds
	slowest    []trimtab.Exemplar
	// aside is why it did not teach the curve.
	aside string
}

// coming is the load that the forecaster is told: the one of the report, and what
// the use tells since then; where the report's is a rate over a longer window, what
// the use of the last seconds tells.
func (w *workload) coming(r *report) *float64 {
	r.now = r.load
	if r.load == nil || w.queueing.model == nil {
		return r.now
	}
	if r.loadFrom == FromSpans {
		load := w.sinceReport(r)
		r.now = &load
		return r.now
	}
	if s := w.fresh(trimtab.Load, r.at); s != nil && s.Window > 0 {
		w.queueing.answered(s.Time.Add(-s.Window.Duration()), s.Time, s.Value*float64(s.Window), true)
	}
	load := w.useLoad(r.at, *r.load)
	r.now = &load
	return r.now
}

// skip tells the forecaster that the loads of n intervals are missing, so that
// a season stays at its time of day.
func (w *workload) skip(n int) {
	if w.forecaster != nil {
		w.forecaster.Skip(n)
	}
}

func quantiles(h *quantile.Histogram) map[string]trimtab.Seconds {
	out := map[string]trimtab.Seconds{}
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		if v, ok := h.Quantile(q); ok {
			out[name] = trimtab.Seconds(v)
		}
	}
	return out
}

// rate is the load of one interval, over the requests that it was counted by.
type rate struct {
	Number   int64   `json:"number"`
	Load     float64 `json:"load"`
	Requests float64 `json:"requests"`
}

const (
	// enough requests make a rate good to 10%; fewer are joined by those of
	// the intervals before, at most so many.
	enough, maxJoined = 100, 5
)

// smooth returns the load over the latest intervals in a row that hold enough
// requests together. A rate of a few requests is mostly counting noise, which
// would both flatten the curve over a/l and raise the forecast's bound.
func (w *workload) smooth(number int64, s spans) float64 {
	if n := len(w.recent); n > 0 && w.recent[n-1].Number != number-1 {
		w.recent = w.recent[:0]
	}
	w.recent = append(w.recent, rate{number, s.load, s.read})
	if len(w.recent) > maxJoined {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	load, requests, n := 0.0, 0.0, 0
	for i := len(w.recent) - 1; i >= 0 && requests < enough && n < w.config.horizon(); i-- {
		load += w.recent[i].Load
		requests += w.recent[i].Requests
		n++
	}
	return load / float64(n)
}

// reportLoad prefers the declared source; under sampling, where the rate of
// spans is only an estimate, the metric whenever there is one.
func (w *workload) reportLoad(r *report, s spans, seen bool) {
	sample := w.fresh(trimtab.Load, r.at)
	if sample != nil && (w.LoadFrom == FromPrometheus || seen && s.sampled) {
		r.load, r.loadFrom, r.loadAt = &sample.Value, sample.Source, sample.Time
		return
	}
	if seen && w.LoadFrom == FromSpans {
		load := s.load
		r.load, r.loadFrom, r.loadAt = &load, FromSpans, r.at
	}
}

func (w *workload) reportPerformance(r *report, v *interval, s spans, seen bool) {
	if w.PerformanceFrom == FromPrometheus {
		if p := v.performance; p != nil {
			value := p.Value
			r.performance, r.requests, r.sigma = &value, p.Requests, p.Sigma
			r.perfFrom, r.perfAt, r.window = p.Source, p.Time, p.Window.Duration()
			switch {
			case value > 1+extrapolated:
				r.requests = 0 // not a fraction, whatever it was taken over
			case value > 1 && r.requests > 0:
				value = 1
			}
			r.fresh = w.freshOf(r)
		}
		return
	}
	if w.app != nil && w == w.app.entry {
		if p, ok := w.ratio(&s); seen && ok {
			r.performance, r.perfFrom, r.perfAt = &p, FromSpans, r.at
		}
		return
	}
	if seen && w.SLO.Latency > 0 {
		p := min(1, s.under/s.requests)
		r.performance, r.requests, r.perfFrom, r.perfAt = &p, s.read, FromSpans, r.at
		r.fresh = r.requests
	}
}

const (
	// extrapolated is by how much a ratio of two rates may exceed 1 and still be a
	// share: Prometheus extrapolates each to the ends of its range.
	extrapolated = 0.05
	// leastFresh keeps a report whose requests were all known before a share of
	// requests; it counts for next to nothing.
	leastFresh = 1e-3
)

// freshOf returns how many of the requests of r no report taught before. Reports
// of a window W that are Δ apart share all but
//
//	n = N · min(1, Δ / W)
//
// of their N requests. A learner that was told N each time would take W/Δ times
// as many for proven as there were.
func (w *workload) freshOf(r *report) float64 {
	if r.window <= 0 || w.taught.IsZero() || r.requests == 0 {
		return r.requests
	}
	return max(leastFresh, r.requests*min(1, r.perfAt.Sub(w.taught).Seconds()/r.window.Seconds()))
}

// reportAllocation finds what was in force over the whole interval, from the
// actuator, else from a sample.
func (w *workload) reportAllocation(r *report, end time.Time) {
	over := max(w.config.Report, r.window)
	f := w.during(end.Add(-over), end, w.config.Settle)
	switch {
	case r.window == 0:
	case w.queueing.uneven(end.Add(-over), end):
		r.aside = "transient" // a rate over a time in which the load was another
	case w.full(end.Add(-2*over), end):
		r.aside = "backlog"
	}
	switch {
	case f.known && f.amount.Unlimited:
		// The planner never gives more than Max: what is reached without a
		// limit is at least what Max reaches, and counts as that.
		if v := w.most(); v > 0 {
			if u := w.fresh(trimtab.Usage, end); u != nil && u.Value > v {
				v = u.Value
			}
			r.allocation, r.allocFrom = &v, "actuator: unlimited"
		} else {
			r.noAlloc = "unlimited, and no maximum declared"
		}
	case f.known:
		v := f.amount.Value
		r.allocation, r.allocFrom = &v, "actuator"
	}
	if f.known {
		r.allocAt = w.held.latest()
		w.endure(r, f)
		return
	}
	if f.transient {
		r.noAlloc = "the knob was first seen, or could not be read, in this interval"
		return
	}
	s := w.fresh(trimtab.Allocation, end)
	if s == nil {
		if r.noAlloc = "none known"; f.over {
			r.noAlloc = fmt.Sprintf("more instances than the %d that are kept", maxInstances)
		}
		return
	}
	v := s.Value
	r.allocation, r.allocFrom, r.allocAt = &v, s.Source, s.Time
	if b := w.last.allocation; b != nil && w.last.allocFrom == s.Source && far(step{amount: trimtab.Units(*b)}, step{amount: trimtab.Units(v)}) {
		r.aside = "transient"
	}
}

// endure sets r aside when the allocation changed, unless it did in all of the
// latest reports too: then the mean over the interval has to do.
func (w *workload) endure(r *report, f inForce) {
	if !f.transient {
		w.transients = 0
		return
	}
	if w.transients++; w.transients <= patience || f.amount.Unlimited || !(f.mean > 0) {
		r.aside = "transient"
		return
	}
	mean := f.mean
	r.allocation, r.allocFrom = &mean, "actuator: mean"
}

// teach gives r to the learner, or notes why not.
func (w *workload) teach(r *report, c *counts) {
	if w.learner == nil {
		return
	}
	switch {
	case r.performance == nil:
		r.aside = "no_performance"
	case r.load == nil || *r.load <= 0:
		r.aside = "no_load"
	case r.allocation == nil || *r.allocation <= 0:
		r.aside = "no_allocation"
	}
	if r.aside != "" {
		c.aside(r.aside)
		return
	}
	performance, ok := w.teachFurther(r, c)
	if !ok {
		r.aside = "other_short"
		c.aside(r.aside)
		return
	}
	o := learn.Observation{Time: r.at, Allocation: *r.allocation, Load: *r.load + w.headroom(),
		Performance: performance, Requests: r.fresh, Sigma: r.sigma}
	err := w.learner.Observe(o)
	if err != nil {
		r.aside = "refused"
		c.aside(r.aside)
		return
	}
	w.taught = r.perfAt
	o.Load = *r.load
	w.teachModel(&o)
	c.learned++
	if n := w.learner.Changes(); n > w.changes {
		c.changes += uint64(n - w.changes)
		w.changes = n
	}
}
