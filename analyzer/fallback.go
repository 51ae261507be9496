package analyzer

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/analyzer/report"
)

// The fallbacks, in the order in which they are tried.
const (
	ByProxy   = "proxy"
	ByProfile = "profile"
	ByDemand  = "demand"
)

// Fallback is what an operator declared for when there is no performance to
// learn from.
//
// It stands in when the performance was not seen for StaleAfter rounds. Then
// Hold stays, and the planner may raise the workload by the curve, never lower
// it. Where no performance is declared at all, it is all that there is to
// know, and the planner goes by it in both directions.
//
// Source: Cilantro (OSDI'23), section 5, its three fallback options.
type Fallback struct {
	// Proxy tells that samples of the quantity Proxy stand for performance,
	// in the same unit. They teach a learner of their own.
	Proxy bool
	// Profile is a recorded curve; nil: none.
	Profile *declared.Profile
	// Demand is an amount that is enough; nil: none.
	Demand *declared.Demand
}

// Declared reports whether there is any.
func (f *Fallback) Declared() bool { return f.Proxy || f.Profile != nil || f.Demand != nil }

// standIn is the fallback in use; the zero value is none.
type standIn struct {
	name  string
	curve *trimtab.Curve
}

// measured reports whether there should be a performance.
func (w *workload) measured() bool { return w.PerformanceFrom == FromPrometheus || w.SLO.Latency > 0 }

// standIn returns the first fallback that can answer, when the performance is
// missing for longer than it takes to be stale.
func (w *workload) standIn(now time.Time, hold *trimtab.Held) standIn {
	if in := w.declaredFor(now); in.name != "" {
		return in
	}
	return w.inferred(now, hold)
}

// declaredFor is standIn of what an operator declared.
func (w *workload) declaredFor(now time.Time) standIn {
	if !w.Fallback.Declared() || !(w.Max > 0) || w.measured() && !w.stale(now, w.sawPerformance) {
		return standIn{}
	}
	l := w.forecastLoad()
	if l != nil && l.Upper > 0 && !w.stale(now, w.sawLoad) {
		if w.proxy != nil && w.fresh(trimtab.Proxy, now) != nil {
			if c := learn.CurveOf(w.proxy, l.Upper, w.Min, w.most(), w.config.Level); c != nil {
				return standIn{ByProxy, c}
			}
		}
		if p := w.Fallback.Profile; p != nil {
			if c := p.Curve(l.Upper, w.Min, w.most(), w.config.Level); c != nil {
				return standIn{ByProfile, c}
			}
		}
	}
	if d := w.Fallback.Demand; d != nil {
		load := 0.0
		if l != nil {
			load = l.Upper
		}
		if c := d.Curve(load, w.Min, w.most(), w.config.Level); c != nil {
			return standIn{ByDemand, c}
		}
	}
	return standIn{}
}

// knowsEnough reports whether a declared demand is all that there is to go by,
// so that no input can be missing.
func (w *workload) knowsEnough() bool {
	return !w.measured() && w.Fallback.Demand != nil && w.Fallback.Profile == nil && !w.Fallback.Proxy
}

// stale reports whether what was last seen at t is too old to go by.
func (w *workload) stale(now, t time.Time) bool {
	if t.Before(w.since) {
		t = w.since
	}
	return now.Sub(t) > w.staleAfter(trimtab.Performance)
}

// stand puts the fallback's curve into e.
func (w *workload) stand(e *trimtab.Estimate, in standIn) {
	e.Fallback, e.Curve, e.Model, e.Reports = in.name, in.curve, in.name, 0
	if in.name == ByIdleness || in.name == ByStarvation {
		return // which says itself what it knows, and of what
	}
	switch in.name {
	case ByProxy:
		e.Model, e.Reports = in.name+" "+w.proxy.Name(), w.proxy.Reports()
	case ByDemand:
		e.Inputs = append(e.Inputs, trimtab.Input{Name: in.name, Value: w.Fallback.Demand.Amount, Source: "configuration"})
	}
	if w.measured() && e.Hold == nil {
		e.Hold = &trimtab.Held{Code: trimtab.HeldAbsent, Text: "no performance", Input: "performance"}
	}
	if e.Hold != nil {
		hold := *e.Hold
		hold.Text += fmt.Sprintf("; the declared %s stands in, to raise it if need be", in.name)
		e.Hold = &hold
	}
}

// teachProxy gives the proxy's value to the learner that stands in. What is
// set aside for the curve is set aside here, too.
func (w *workload) teachProxy(r *report.Report, s *trimtab.Sample, c *counts) {
	if w.proxy == nil || s == nil || r.Load == nil || *r.Load <= 0 || r.Allocation == nil || *r.Allocation <= 0 || r.Aside == "transient" {
		return
	}
	err := w.proxy.Observe(learn.Observation{Time: r.At, Allocation: *r.Allocation, Load: *r.Load,
		Performance: s.Value, Requests: s.Requests, Sigma: s.Sigma})
	if err != nil {
		c.refused++
	}
}
