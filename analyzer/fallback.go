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

// stand puts the fallback's curve into e.
func (w *workload) stand(e *trimtab.Estimate, in standIn) {
	e.Fallback, e.Curve, e.Model, e.Reports = in.name, in.curve, in.name, 0
	if in.name == ByIdleness || in.name == ByStarvation {
		return // which says itself what it knows, and of what
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
