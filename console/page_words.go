package console

import (
	"fmt"
	"html/template"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// words are the functions of the templates.
func (s *site) words() template.FuncMap {
	return template.FuncMap{
		"asset":           s.assets.address,
		"term":            s.term,
		"number":          view.Number,
		"tailNow":         view.TailNow,
		"tailGrew":        view.TailGrew,
		"parts":           view.PartsOf,
		"optional":        view.Optional,
		"stale":           view.Stale,
		"percent":         percentOf,
		"amount":          view.Amount,
		"amountIn":        view.AmountIn,
		"performance":     view.Performance,
		"quantity":        view.Quantity,
		"latency":         view.Latency,
		"age":             view.Age,
		"unit":            view.Unit,
		"page":            func(workload string) string { return address("/workloads/", workload) },
		"iso":             func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"utc":             func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") },
		"ago":             func(t time.Time) string { return view.Age(trimtab.SecondsOf(time.Since(t))) },
		"utcDate":         func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"list":            func(v ...any) []any { return v },
		"band":            func(b *trimtab.Band, share bool) string { return between(b.Lower, b.Upper, share) },
		"effect":          effectWords,
		"expected":        view.Expected,
		"utilityBar":      utilityBar,
		"sloBar":          sloBar,
		"lag":             lag,
		"usedBar":         usedBar,
		"satisfactionBar": satisfactionBar,
		"sized":           sized,
		"jobAmounts":      jobAmounts,
		"jobsAt":          jobsAt,
		"batchAt":         batchAt,
		"count":           view.Count,
		"spread":          view.Spread,
		"first":           func(n int, of []view.Move) []view.Move { return of[:min(n, len(of))] },
		"knobHost":        func(k view.Knob) string { return addressOf(view.Host{Name: k.Host, Pool: k.Pool}) },
		"hostPage":        addressOf,
		"resourceBar":     resourceBar,
		"spark":           func(of []*float64) string { return spark(of, 1) },
		"capacity":        capacityOf,
		"free":            freeOf,
		"may":             mayHave,
		"has":             knobHas,
	}
}

// percentOf accepts the types in templates: float64 or *float64.
func percentOf(v any) string {
	switch v := v.(type) {
	case float64:
		return view.Percent(v)
	case *float64:
		if v != nil {
			return view.Percent(*v)
		}
	}
	return view.Missing
}

func between(lower, upper float64, share bool) string {
	return view.Performance(&lower, share) + " to " + view.Performance(&upper, share)
}

// sized formats an amount of a resource with its unit.
func sized(v float64, resource string) string {
	return view.Sized(v, resource)
}

// effectWords describes the effect of a decision.
func effectWords(e *view.Effect, share bool) string {
	switch e.Performance {
	case view.TooEarly:
		return "too early to tell"
	case view.NotMeasured:
		return "the effect was not measured"
	case view.Same:
		return fmt.Sprintf("performance stayed at %s", view.Performance(e.After, share))
	}
	return fmt.Sprintf("performance %s from %s to %s", e.Performance, view.Performance(e.Before, share), view.Performance(e.After, share))
}

// bar is a horizontal bar: how far it is filled, and marks on it. Positions are text, in percent
// of its length.
type bar struct {
	Fill, Class string
	Ticks       []barTick
}

type barTick struct{ At, Class, Title string }

// along is v on a bar of the given length, in percent.
func along(v, length float64) string {
	if !(length > 0) {
		return "0"
	}
	return fmt.Sprintf("%.1f", min(100, max(0, 100*v/length)))
}

func utilityBar(r view.Row) (b bar) {
	if r.Utility == nil {
		return b
	}
	b.Fill, b.Class = along(*r.Utility, 1), "ok"
	switch {
	case *r.Utility < 0.8:
		b.Class = "bad"
	case *r.Utility < 0.995:
		b.Class = "note"
	}
	return b
}

// sloBar is the performance against its SLO: as a share of requests, or with
// the SLO in the middle.
func sloBar(r view.Row) (b bar) {
	length := 1.0
	if !r.Share && r.SLOTarget != nil {
		length = 2 * *r.SLOTarget
	}
	if r.Performance != nil {
		b.Fill, b.Class = along(*r.Performance, length), "quiet"
	}
	if r.SLOTarget == nil {
		return b
	}
	if r.Performance != nil {
		b.Class = "ok"
		if *r.Performance < *r.SLOTarget {
			b.Class = "bad"
		}
	}
	b.Ticks = append(b.Ticks, barTick{along(*r.SLOTarget, length), "tick", "SLO " + view.Performance(r.SLOTarget, r.Share)})
	return b
}

// longest is the length of the bars of allocations on one page.
func longest(rows []view.Row) (out float64) {
	for i := range rows {
		if a := rows[i].Allocation; a != nil {
			out = max(out, a.Value)
		}
		for _, v := range []*float64{rows[i].Demand, rows[i].Target} {
			if v != nil {
				out = max(out, *v)
			}
		}
	}
	return out
}

// AllocationBar shows the workload's allocation, with marks at its demand and at the solver's
// target; all bars of a page have the same scale.
func (o *overview) AllocationBar(r view.Row) (b bar) {
	if a := r.Allocation; a != nil {
		b.Fill, b.Class = along(a.Value, o.longest), "fill"
		if a.Unlimited {
			b.Fill = "100"
		}
	}
	if r.Demand != nil {
		b.Ticks = append(b.Ticks, barTick{along(*r.Demand, o.longest), "need", "needs " + view.Number(*r.Demand) + " for its SLO"})
	}
	if r.Target != nil {
		b.Ticks = append(b.Ticks, barTick{along(*r.Target, o.longest), "tick", "solver's target " + view.Number(*r.Target)})
	}
	return b
}

func capacityBar(s *view.Status) bar {
	b := bar{Fill: along(s.Allocated.Value, s.Capacity), Class: "fill"}
	if s.Allocated.Value > s.Capacity*(1+1e-9) {
		b.Class = "bad"
	}
	return b
}
