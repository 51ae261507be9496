package analyzer

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantile"
	"github.com/trimtab/trimtab/quantity"
)

// coming returns the load for the forecaster: the load of the report, continued by the use since
// then. If the report's load is a rate over a longer window, it is computed from the use of the
// last seconds.
func (w *workload) coming(r *report.Report) *float64 {
	r.Now = r.Load
	if r.Load == nil || w.queueing.model == nil {
		return r.Now
	}
	var load float64
	if r.LoadFrom == FromSpans {
		load = w.queueing.sinceReport(r, &w.held)
	} else {
		if s := w.samples.fresh(quantity.Load, r.At); s != nil && s.Window > 0 {
			w.queueing.answered(s.Time.Add(-s.Window.Duration()), s.Time, s.Value*float64(s.Window), true)
		}
		load = w.queueing.useLoad(r.At, *r.Load, &w.held)
	}
	r.Now = &load
	return r.Now
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

// extrapolated is by how much a ratio of two rates may exceed 1 and still count as a fraction:
// Prometheus extrapolates each rate to the ends of its range.
const extrapolated = 0.05

func (w *workload) reportPerformance(r *report.Report, v *interval, s report.Spans, seen bool) {
	if w.spec.PerformanceFrom == FromPrometheus {
		if p := v.performance; p != nil {
			value := p.Value
			r.Performance, r.Requests, r.Sigma = &value, p.Requests, p.Sigma
			r.PerfFrom, r.PerfAt, r.Window = p.Source, p.Time, p.Window.Duration()
			switch {
			case value > 1+extrapolated:
				r.Requests = 0 // it is no fraction of requests
			case value > 1 && r.Requests > 0:
				value = 1
			}
			r.Fresh = w.curves.freshOf(r)
		}
		return
	}
	if w.app != nil && w == w.app.entry {
		if p, ok := w.spec.ratio(&s); seen && ok {
			r.Performance, r.PerfFrom, r.PerfAt = &p, FromSpans, r.At
		}
		return
	}
	if seen && w.spec.SLO.Latency > 0 {
		p := min(1, s.Under/s.Requests)
		r.Performance, r.Requests, r.PerfFrom, r.PerfAt = &p, s.Read, FromSpans, r.At
		r.Fresh = r.Requests
	}
}

// reportAllocation sets the allocation that was in force over the whole interval, from the actuator
// or else from a sample.
func (w *workload) reportAllocation(r *report.Report, end time.Time) {
	over := max(w.config.Report, r.Window)
	f := w.held.during(end.Add(-over), end, w.config.Settle)
	switch {
	case r.Window == 0:
	case w.queueing.uneven(end.Add(-over), end):
		r.Aside = "transient" // a mean over a time in which the load changed
	case w.queueing.full(end.Add(-2*over), end, &w.held):
		r.Aside = "backlog"
	}
	switch {
	case f.Known && f.Shared && !f.Amount.Unlimited:
		w.reportShare(r, f, end.Add(-over), end)
	case f.Known && f.Amount.Unlimited:
		// The planner never gives more than Max, so that a performance without a limit counts as
		// one at Max.
		if v := w.held.most(); v > 0 {
			if u := w.samples.fresh(quantity.Usage, end); u != nil && u.Value > v {
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
		w.held.endure(r, f)
		return
	}
	if f.Transient {
		r.NoAlloc = "the knob was first seen, or could not be read, in this interval"
		return
	}
	s := w.samples.fresh(quantity.Allocation, end)
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

// hardly is the fraction of periods in which the common limit was used up, up to which the
// workload's share counts as not limiting it.
const hardly = 0.05

// reportShare sets the allocation of a workload that shares CPU by weight. If the common limit was
// not used up, nothing limited the workload, and its performance counts as that at its maximum. If
// it was used up, the workload had its share or its use, whichever is more, and an unknown part of
// what others left idle: the report is censored and teaches nothing. (To learn only from good
// reports, at the least that the workload may have had, would be to learn that little is enough.)
// For nodes it is unknown whether they were full. A workload that missed its SLO then counts at its
// least, with which it would have missed it too; one that met its SLO counts at its maximum, with
// which it would have met it too.
func (w *workload) reportShare(r *report.Report, f report.InForce, from, to time.Time) {
	use, known := w.queueing.use(from, to)
	if u := w.samples.fresh(quantity.Usage, to); !known && u != nil {
		use, known = u.Value, true
	}
	v := math.Max(f.Amount.Value, use)
	switch {
	case f.Open && r.Performance != nil && *r.Performance < cmp.Or(w.spec.Target, w.spec.SLO.Fraction):
		r.AllocFrom = "actuator: a request, which is the least that it had"
	case !known && !f.Open:
		r.NoAlloc = "a share by weight, and no use was measured"
		return
	case w.queueing.contended(from, to) > hardly:
		r.Aside, r.AllocFrom = "shared", "actuator: a share of what is used up"
	default:
		if v = w.held.most(); w.held.Above(w.held.loads) > 0 {
			v = math.Min(v, w.held.Above(w.held.loads))
		}
		v, r.AllocFrom = math.Max(v, use), "actuator: a share, nothing waits"
	}
	r.Allocation = &v
}

// allocation is the allocation of a workload's first resource over time.
type allocation struct {
	report.History
	spec *Workload
	// loads are the loads of its instances; nil: unknown.
	loads report.Loads
	// transients counts the reports in a row that were ignored because the allocation changed.
	transients int
}

// during returns the allocation in force over [from, to).
func (a *allocation) during(from, to time.Time, settle time.Duration) report.InForce {
	return a.During(from, to, settle, a.loads)
}

// most returns the largest allocation that the workload can have, over all its instances.
func (a *allocation) most() float64 { return max(a.spec.Max, a.Most(a.loads)) }

// endure marks r as transient if the allocation changed. If it changed in each of the latest
// reports as well, it uses the mean over the interval instead.
func (a *allocation) endure(r *report.Report, f report.InForce) {
	if !f.Transient {
		a.transients = 0
		return
	}
	if a.transients++; a.transients <= patience || f.Amount.Unlimited || !(f.Mean > 0) {
		r.Aside = "transient"
		return
	}
	mean := f.Mean
	r.Allocation, r.AllocFrom = &mean, "actuator: mean"
}

// perSecond converts numbers of requests of an interval to rates.
func perSecond(of map[string]float64, interval time.Duration) map[string]float64 {
	if len(of) == 0 {
		return nil
	}
	out := make(map[string]float64, len(of))
	for class, n := range of {
		out[class] = n / interval.Seconds()
	}
	return out
}
