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

// coming is the load that the forecaster is told: the one of the report, and what
// the use tells since then; where the report's is a rate over a longer window, what
// the use of the last seconds tells.
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

// extrapolated is by how much a ratio of two rates may exceed 1 and still be a
// share: Prometheus extrapolates each to the ends of its range.
const extrapolated = 0.05

func (w *workload) reportPerformance(r *report.Report, v *interval, s report.Spans, seen bool) {
	if w.spec.PerformanceFrom == FromPrometheus {
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

// reportAllocation finds what was in force over the whole interval, from the
// actuator, else from a sample.
func (w *workload) reportAllocation(r *report.Report, end time.Time) {
	over := max(w.config.Report, r.Window)
	f := w.held.during(end.Add(-over), end, w.config.Settle)
	switch {
	case r.Window == 0:
	case w.queueing.uneven(end.Add(-over), end):
		r.Aside = "transient" // a rate over a time in which the load was another
	case w.queueing.full(end.Add(-2*over), end, &w.held):
		r.Aside = "backlog"
	}
	switch {
	case f.Known && f.Shared && !f.Amount.Unlimited:
		w.reportShare(r, f, end.Add(-over), end)
	case f.Known && f.Amount.Unlimited:
		// The planner never gives more than Max: what is reached without a
		// limit is at least what Max reaches, and counts as that.
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

// allocation is what a workload has of its first resource.
type allocation struct {
	report.History
	spec *Workload
	// loads are those of its instances; nil: not known.
	loads report.Loads
	// transients counts reports set aside in a row.
	transients int
}

// during returns the allocation in force over [from, to).
func (a *allocation) during(from, to time.Time, settle time.Duration) report.InForce {
	return a.During(from, to, settle, a.loads)
}

// most is the largest allocation that the workload can have: that of its instances
// together, where there are several.
func (a *allocation) most() float64 { return max(a.spec.Max, a.Most(a.loads)) }

// endure sets r aside when the allocation changed, unless it did in all of the
// latest reports too: then the mean over the interval has to do.
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
