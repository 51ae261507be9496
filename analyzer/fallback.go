package analyzer

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// The fallbacks, in the order in which they are tried.
const (
	ByProxy   = "proxy"
	ByProfile = "profile"
	ByDemand  = "demand"
)

// Fallback is the operator's declaration for the time without a performance.
//
// It stands in when no performance was observed for StaleAfter rounds. Hold then stays set, and the
// planner may raise the workload by the fallback's curve, but not lower it. If the workload has no
// performance at all, the fallback is all that is known, and the planner uses it in both
// directions.
//
// Source: Cilantro (OSDI'23), section 5, its three fallback options.
type Fallback struct {
	// Proxy: samples of the quantity Proxy stand in for performance, in the same unit. A separate
	// learner learns from them.
	Proxy bool
	// Profile is a recorded curve; nil: none.
	Profile *declared.Profile
	// Demand is an amount that suffices; nil: none.
	Demand *declared.Demand
}

// Declared reports whether any fallback is declared.
func (f *Fallback) Declared() bool { return f.Proxy || f.Profile != nil || f.Demand != nil }

// standIn is the fallback in use; the zero value: none.
type standIn struct {
	name  string
	curve *trimtab.Curve
}

// standIn returns the first fallback that applies, once the performance is stale.
func (w *workload) standIn(now time.Time, hold *trimtab.Held) standIn {
	if in := w.declaredFor(now); in.name != "" {
		return in
	}
	return w.inferred(now, hold)
}

// declaredFor returns the first declared fallback that applies.
func (w *workload) declaredFor(now time.Time) standIn {
	if !w.spec.Fallback.Declared() || !(w.spec.Max > 0) || w.spec.measured() && !w.samples.stale(now, w.samples.sawPerformance) {
		return standIn{}
	}
	var all []standIn
	load, least, most, level := w.loadToCome(), w.spec.Min, w.held.most(), w.config.Level
	if load > 0 && !w.samples.stale(now, w.samples.sawLoad) {
		if w.curves.proxy != nil && w.samples.fresh(quantity.Proxy, now) != nil {
			all = append(all, standIn{ByProxy, learn.CurveOf(w.curves.proxy, load, least, most, level)})
		}
		if p := w.spec.Fallback.Profile; p != nil {
			all = append(all, standIn{ByProfile, p.Curve(load, least, most, level)})
		}
	}
	if d := w.spec.Fallback.Demand; d != nil {
		all = append(all, standIn{ByDemand, d.Curve(load, least, most, level)})
	}
	for _, in := range all {
		if in.curve != nil {
			return in
		}
	}
	return standIn{}
}

// stand uses the fallback's curve in e.
func (w *workload) stand(e *trimtab.Estimate, in standIn) {
	e.Fallback, e.Curve, e.Model, e.Reports = in.name, in.curve, in.name, 0
	if in.name == ByIdleness || in.name == ByStarvation {
		return // both have explained themselves in e already
	}
	switch in.name {
	case ByProxy:
		e.Model, e.Reports = in.name+" "+w.curves.proxy.Name(), w.curves.proxy.Reports()
	case ByDemand:
		e.Inputs = append(e.Inputs, trimtab.Input{Name: in.name, Value: w.spec.Fallback.Demand.Amount, Source: "configuration"})
	}
	if w.spec.measured() && e.Hold == nil {
		e.Hold = &trimtab.Held{Code: codes.HeldAbsent, Text: "no performance", Input: "performance"}
	}
	if e.Hold != nil {
		hold := *e.Hold
		hold.Text += fmt.Sprintf("; the declared %s stands in, to raise it if need be", in.name)
		e.Hold = &hold
	}
}
