package analyzer

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// hold returns why the workload must not be lowered, or nil. samples.go says when an input is late
// or stale.
func (w *workload) hold(now time.Time) *trimtab.Held {
	if w.spec.knowsEnough() {
		return nil
	}
	if w.spec.MemoryAlone {
		return w.memories.hold(now)
	}
	r := &w.last
	if w.samples.from(quantity.Load) == FromSpans {
		if why := w.samples.arrival.missingInput(); why != nil {
			return why
		}
	}
	for _, q := range []quantity.Quantity{quantity.Load, quantity.Performance} {
		if q == quantity.Performance && (w.curves.learner == nil || r.Performance == nil && w.idle(now)) {
			continue
		}
		if why := w.missingInput(now, q); why != nil {
			return why
		}
	}
	return nil
}

// missingInput returns what is wrong with the load or the performance, or nil.
func (w *workload) missingInput(now time.Time, q quantity.Quantity) *trimtab.Held {
	from, v, at := w.spec.LoadFrom, w.last.Load, w.last.LoadAt
	if q == quantity.Performance {
		from, v, at = w.spec.PerformanceFrom, w.last.Performance, w.last.PerfAt
	}
	if v == nil {
		at = time.Time{}
	}
	return w.samples.missingInput(now, q, from, at)
}

// alike reports whether two reasons are of the same kind and differ only in their texts.
func alike(a, b *trimtab.Held) bool {
	return a == b || a != nil && b != nil && a.Code == b.Code && a.Input == b.Input
}

// estimate returns the estimate at now. in is the fallback in use.
func (w *workload) estimate(now time.Time, hold *trimtab.Held, in standIn) *trimtab.Estimate {
	r := &w.last
	e := &trimtab.Estimate{
		Workload:    w.spec.Name,
		Time:        now,
		Performance: r.Performance,
		Requests:    r.Requests,
		Refused:     r.Refused,
		Window:      trimtab.SecondsOf(r.Window),
		Allocation:  r.Allocation,
		Latency:     r.Latency,
		Observed:    w.observed.result(),
		Model:       "none",
		Hold:        hold,
		Load:        w.forecastLoad(),
		Inputs:      w.inputs(now),
		Counters:    w.counters.of(now, w.config.Round),
		Memory:      w.memories.needs(now),
		Exemplars:   r.Slowest,
		Shares:      w.held.loads.Shares(),
	}
	if w.spec.bySpans() {
		e.Notes = w.samples.arrival.notes()
	}
	if w.spec.PerformanceFrom == FromSpans && w.app == nil && w.spec.SLO.Latency > 0 {
		e.Newer = w.samples.arrival.newer(now)
	}
	if w.curves.learner != nil {
		e.Model, e.Reports = w.curves.learner.Name(), w.curves.learner.Reports()
		if e.Load != nil && e.Load.Upper > 0 {
			e.Curve = learn.CurveOf(w.curves.learner, e.Load.Upper+w.queueing.headroom(), w.spec.Min, w.upTo(e.Load), w.config.Level)
			if e.Curve != nil {
				e.Curve.Load, e.Curve.Headroom = e.Load.Upper, w.queueing.headroom()
			}
		}
		e.Fixed = w.curves.fixed.at(r, w.queueing.headroom())
		w.inform(e)
		w.curves.estimate(e, w.held.loads)
	}
	if in.name != "" {
		w.stand(e, in)
	}
	if w.curves.learner != nil {
		w.starves(e, now)
	}
	w.noteWaits(e)
	if text := w.remarks.note(now); text != "" && len(e.Notes) < trimtab.MaxNotes {
		e.Notes = append(e.Notes, text)
	}
	for _, text := range memoryNotes(e.Memory) {
		if len(e.Notes) < trimtab.MaxNotes {
			e.Notes = append(e.Notes, text)
		}
	}
	if err := e.Validate(); err != nil {
		// A learner or forecaster broke its contract.
		return invalid(e, err)
	}
	return e
}

// invalid returns a held estimate in place of one that is not valid.
func invalid(e *trimtab.Estimate, err error) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: e.Workload, Time: e.Time, Model: e.Model,
		Hold: &trimtab.Held{Code: codes.HeldInvalid, Text: "the estimate was not valid: " + err.Error()}}
}

// upTo returns up to which allocation a curve at the upper bound of the load must go to still cover
// the workload's maximum when it is scaled to the mean load. The latest measured load is not used:
// while it is next to nothing, the knots would be spread over a thousand times the maximum, with
// none where they are needed.
func (w *workload) upTo(l *trimtab.LoadForecast) float64 {
	headroom := w.queueing.headroom()
	return w.held.most() * (l.Upper + headroom) / math.Max(l.Mean+headroom, 1e-3*l.Upper)
}

// forecastLoad returns the forecast of the coming round, or nil while no load was observed.
func (w *workload) forecastLoad() *trimtab.LoadForecast {
	return w.expected.forecast(&w.last, &w.queueing, w.samples.underWay(quantity.Load))
}

// loadToCome returns the upper bound of the forecast; 0: no load was observed.
func (w *workload) loadToCome() float64 {
	if l := w.forecastLoad(); l != nil {
		return l.Upper
	}
	return 0
}

// inputs lists the inputs of the estimate, in a fixed order.
func (w *workload) inputs(now time.Time) []trimtab.Input {
	if w.spec.MemoryAlone {
		return w.memories.inputs(now)
	}
	r := &w.last
	in := append(make([]trimtab.Input, 0, 8),
		w.samples.input(now, "load", r.Load, r.LoadAt, r.LoadFrom, w.spec.LoadFrom),
		w.samples.input(now, "performance", r.Performance, r.PerfAt, r.PerfFrom, w.spec.PerformanceFrom),
	)
	if w.curves.learner != nil {
		a := w.samples.input(now, "allocation", r.Allocation, r.AllocAt, r.AllocFrom, "actuator")
		if r.Allocation == nil && r.NoAlloc != "" {
			a.Missing = r.NoAlloc
		}
		in = append(in, a)
	}
	in = append(in, w.samples.further(now)...)
	if w.held.loads == nil && w.samples.join.Missing() != "" {
		in = append(in, trimtab.Input{Name: "shares", Source: FromSpans, Age: age(now, r.At), Missing: w.samples.join.Missing()})
	}
	if r.Aside != "" && w.curves.learner != nil {
		in = append(in, trimtab.Input{Name: "report", Age: age(now, r.At), Missing: "not learnt from: " + r.Aside})
	}
	return in
}
