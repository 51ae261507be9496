package analyzer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantile"
)

// coming is the load that the forecaster is told: the one of the report, and what
// the use tells since then; where the report's is a rate over a longer window, what
// the use of the last seconds tells.
func (w *workload) coming(r *report.Report) *float64 {
	r.Now = r.Load
	if r.Load == nil || w.queueing.model == nil {
		return r.Now
	}
	if r.LoadFrom == FromSpans {
		load := w.sinceReport(r)
		r.Now = &load
		return r.Now
	}
	if s := w.fresh(trimtab.Load, r.At); s != nil && s.Window > 0 {
		w.queueing.answered(s.Time.Add(-s.Window.Duration()), s.Time, s.Value*float64(s.Window), true)
	}
	load := w.useLoad(r.At, *r.Load)
	r.Now = &load
	return r.Now
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
	for _, of := range [...]struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
		if v, ok := h.Quantile(of.q); ok {
			out[of.name] = trimtab.Seconds(v)
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
	// enough requests make a rate good; fewer are joined by those of
	// the intervals before, at most so many.
	enough, maxJoined = report.Enough, 5
)

// smooth returns the load over the latest intervals in a row that hold enough
// requests together. A rate of a few requests is mostly counting noise, which
// would both flatten the curve over a/l and raise the forecast's bound.
func (w *workload) smooth(number int64, s report.Spans) float64 {
	if n := len(w.recent); n > 0 && w.recent[n-1].Number != number-1 {
		w.recent = w.recent[:0]
	}
	w.recent = append(w.recent, rate{number, s.Load, s.Read})
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
func (w *workload) reportLoad(r *report.Report, s report.Spans, seen bool) {
	sample := w.fresh(trimtab.Load, r.At)
	if sample != nil && (w.LoadFrom == FromPrometheus || seen && s.Sampled) {
		r.Load, r.LoadFrom, r.LoadAt = &sample.Value, sample.Source, sample.Time
		return
	}
	if seen && w.LoadFrom == FromSpans {
		load := s.Load
		r.Load, r.LoadFrom, r.LoadAt = &load, FromSpans, r.At
	}
}

func (w *workload) reportPerformance(r *report.Report, v *interval, s report.Spans, seen bool) {
	if w.PerformanceFrom == FromPrometheus {
		if p := v.performance; p != nil {
			value := p.Value
			r.Performance, r.Requests, r.Sigma = &value, p.Requests, p.Sigma
			r.PerfFrom, r.PerfAt, r.Window = p.Source, p.Time, p.Window.Duration()
			switch {
			case value > 1+extrapolated:
				r.Requests = 0 // not a fraction, whatever it was taken over
			case value > 1 && r.Requests > 0:
				value = 1
			}
			r.Fresh = w.freshOf(r)
		}
		return
	}
	if w.app != nil && w == w.app.entry {
		if p, ok := w.ratio(&s); seen && ok {
			r.Performance, r.PerfFrom, r.PerfAt = &p, FromSpans, r.At
		}
		return
	}
	if seen && w.SLO.Latency > 0 {
		p := min(1, s.Under/s.Requests)
		r.Performance, r.Requests, r.PerfFrom, r.PerfAt = &p, s.Read, FromSpans, r.At
		r.Fresh = r.Requests
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
func (w *workload) freshOf(r *report.Report) float64 {
	if r.Window <= 0 || w.taught.IsZero() || r.Requests == 0 {
		return r.Requests
	}
	return max(leastFresh, r.Requests*min(1, r.PerfAt.Sub(w.taught).Seconds()/r.Window.Seconds()))
}

// reportAllocation finds what was in force over the whole interval, from the
// actuator, else from a sample.
func (w *workload) reportAllocation(r *report.Report, end time.Time) {
	over := max(w.config.Report, r.Window)
	f := w.during(end.Add(-over), end, w.config.Settle)
	switch {
	case r.Window == 0:
	case w.queueing.uneven(end.Add(-over), end):
		r.Aside = "transient" // a rate over a time in which the load was another
	case w.full(end.Add(-2*over), end):
		r.Aside = "backlog"
	}
	switch {
	case f.Known && f.Shared && !f.Amount.Unlimited:
		w.reportShare(r, f, end.Add(-over), end)
	case f.Known && f.Amount.Unlimited:
		// The planner never gives more than Max: what is reached without a
		// limit is at least what Max reaches, and counts as that.
		if v := w.most(); v > 0 {
			if u := w.fresh(trimtab.Usage, end); u != nil && u.Value > v {
				v = u.Value
			}
			r.Allocation, r.AllocFrom = &v, "actuator: unlimited"
		} else {
			r.NoAlloc = "unlimited, and no maximum declared"
		}
	case f.Known:
		v := f.Amount.Value
		r.Allocation, r.AllocFrom = &v, "actuator"
	}
	if f.Known {
		r.AllocAt = w.held.Latest()
		w.endure(r, f)
		return
	}
	if f.Transient {
		r.NoAlloc = "the knob was first seen, or could not be read, in this interval"
		return
	}
	s := w.fresh(trimtab.Allocation, end)
	if s == nil {
		if r.NoAlloc = "none known"; f.Over {
			r.NoAlloc = fmt.Sprintf("more instances than the %d that are kept", report.MaxInstances)
		}
		return
	}
	v := s.Value
	r.Allocation, r.AllocFrom, r.AllocAt = &v, s.Source, s.Time
	if b := w.last.Allocation; b != nil && w.last.AllocFrom == s.Source && report.Far(trimtab.Units(*b), trimtab.Units(v)) {
		r.Aside = "transient"
	}
}

// hardly is up to which share of the periods in which the limit of all was used up what is set
// for a workload did not bind.
const hardly = 0.05

// reportShare tells what a workload really had that shares by weight. Where the limit of all
// was not used up, nothing bound it: what it reached is what its maximum reaches. Where it was,
// it had what it used, or its share, at least, and as much more as others left while it wanted
// it: such a report is censored, and teaches nothing. To learn from those that did well, at the
// least that they may have had, would be to learn that little is enough. Of a node nobody tells
// whether it was full: who is late would be no less so with the least that it had, and who is in
// time no less with its maximum.
func (w *workload) reportShare(r *report.Report, f report.InForce, from, to time.Time) {
	use, known := w.queueing.use(from, to)
	if u := w.fresh(trimtab.Usage, to); !known && u != nil {
		use, known = u.Value, true
	}
	v := math.Max(f.Amount.Value, use)
	switch {
	case f.Open && r.Performance != nil && *r.Performance < cmp.Or(w.Target, w.SLO.Fraction):
		r.AllocFrom = "actuator: a request, which is the least that it had"
	case !known && !f.Open:
		r.NoAlloc = "a share by weight, and no use was measured"
		return
	case w.queueing.contended(from, to) > hardly:
		r.Aside, r.AllocFrom = "shared", "actuator: a share of what is used up"
	default:
		if v = w.most(); w.held.Above(w.loads) > 0 {
			v = math.Min(v, w.held.Above(w.loads))
		}
		v, r.AllocFrom = math.Max(v, use), "actuator: a share, nothing waits"
	}
	r.Allocation = &v
}

// endure sets r aside when the allocation changed, unless it did in all of the
// latest reports too: then the mean over the interval has to do.
func (w *workload) endure(r *report.Report, f report.InForce) {
	if !f.Transient {
		w.transients = 0
		return
	}
	if w.transients++; w.transients <= patience || f.Amount.Unlimited || !(f.Mean > 0) {
		r.Aside = "transient"
		return
	}
	mean := f.Mean
	r.Allocation, r.AllocFrom = &mean, "actuator: mean"
}

// teach gives r to the learner, or notes why not.
func (w *workload) teach(r *report.Report, c *counts) {
	if w.learner == nil {
		return
	}
	switch {
	case r.Performance == nil:
		r.Aside = "no_performance"
	case r.Load == nil || *r.Load <= 0:
		r.Aside = "no_load"
	case r.Allocation == nil || *r.Allocation <= 0:
		r.Aside = "no_allocation"
	}
	if r.Aside != "" {
		c.aside(r.Aside)
		return
	}
	performance, ok := w.teachFurther(r, c)
	if !ok {
		r.Aside = "other_short"
		c.aside(r.Aside)
		return
	}
	o := learn.Observation{Time: r.At, Allocation: *r.Allocation, Load: *r.Load + w.headroom(),
		Performance: performance, Requests: r.Fresh, Sigma: r.Sigma}
	if w.teachFixed(r, o) {
		r.Aside = "fixed_quota"
		c.aside(r.Aside)
		return
	}
	err := w.learner.Observe(o)
	if err != nil {
		r.Aside = "refused"
		c.aside(r.Aside)
		return
	}
	w.taught = r.PerfAt
	o.Load = *r.Load
	w.teachModel(&o)
	c.learned++
	if n := w.learner.Changes(); n > w.changes {
		c.changes += uint64(n - w.changes)
		w.changes = n
	}
}
