package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// unasked is an estimate of a workload whose load is measured as 0: its minimum is enough.
func unasked(name string, now time.Time) *trimtab.Estimate {
	e := estimate(name, now, ramp(0.05))
	e.Model, e.Fallback, e.Reports, e.Curve.Load = codes.ByIdleness, codes.ByIdleness, 0, 0
	e.Load = &trimtab.LoadForecast{Level: 0.9, Model: "test"}
	e.Inputs = []trimtab.Input{{Name: "load", Source: "prometheus"}, {Name: "performance", Missing: "not in the latest report"}}
	return e
}

// each plays seconds in which the planner is told what the estimate of "a" says.
func (d *deployment) each(p *planner.Planner, from time.Time, seconds int, of func(now time.Time) *trimtab.Estimate) (all []*trimtab.Plan) {
	for i := range seconds {
		now := from.Add(time.Duration(i) * time.Second)
		d.run(now)
		out := plans(p.Step(now, d.holding(now)))
		out = append(out, plans(p.Step(now, of(now)))...)
		out = append(out, plans(p.Step(now, nil))...)
		for len(out) > 0 {
			all = append(all, out[0])
			out = append(out[1:], plans(p.Step(now, d.carryOut(out[0], now)))...)
		}
	}
	return all
}

func TestWithoutLoadTheNumberOfPodsFallsToItsMinimumAndComesBackWithTheLoad(t *testing.T) {
	p, d := counted(t, 16, func(w *planner.WorkloadConfig) { w.Count.Min = 2 }), deployed(6, 0.5)
	d.play(p, t0, 120, steady(5))
	before := d.replicas
	if before < 3 {
		t.Fatalf("it begins with %d pods", before)
	}
	missing := func(now time.Time) *trimtab.Estimate { return answered(now, -1) }
	d.each(p, t0.Add(2*time.Minute), 600, missing)
	if d.replicas != before {
		t.Fatalf("with its load missing it went from %d to %d", before, d.replicas)
	}
	all := d.each(p, t0.Add(12*time.Minute), 900, func(now time.Time) *trimtab.Estimate { return unasked("a", now) })
	if d.replicas != 2 {
		t.Errorf("%d pods without load, want 2:\n%s", d.replicas, saysOf(all))
	}
	d.play(p, t0.Add(30*time.Minute), 120, steady(5))
	if d.replicas < 3 {
		t.Errorf("%d pods with the load that came back", d.replicas)
	}
}

func TestWithoutLoadRequestsFallToTheirBoundInOneStepAndComeBackWithTheLoadOrWithoutKnowledge(t *testing.T) {
	a, b := at("h", "a", ""), at("h", "b", "")
	now := map[trimtab.KnobID]trimtab.Amount{a: trimtab.Units(1), b: trimtab.Units(1)}
	cfg := guarded(fair.NJCPolicy{})
	cfg.Workloads[1].Min = 0.2 // of a
	f, p, steps := reserving(now, nil), leads(t, cfg), 0
	play := func(from, seconds int, of func(t time.Time) *trimtab.Estimate) (last *trimtab.Plan) {
		for i := range seconds {
			now := t0.Add(time.Duration(from+i) * time.Second)
			f.tell(p, now)
			p.Step(now, estimate("b", now, ramp(0.8)))
			out := append(plans(p.Step(now, of(now))), plans(p.Step(now, nil))...)
			for len(out) > 0 {
				last = out[0]
				for _, action := range last.Actions {
					if action.Workload == "a" && action.Mode == trimtab.Act {
						steps++
					}
				}
				out = append(out[1:], plans(p.Step(now, f.carryOut(last, "h", now)))...)
			}
		}
		return last
	}
	loaded := func(now time.Time) *trimtab.Estimate { return estimate("a", now, ramp(0.8)) }
	lost := func(now time.Time) *trimtab.Estimate { return answered(now, -1) }
	idle := func(now time.Time) *trimtab.Estimate { return unasked("a", now) }
	play(0, 20, loaded)
	if play(20, 60, lost); f.now[a] != trimtab.Units(1) {
		t.Fatalf("with its load missing it has %v", f.now[a])
	}
	last := play(80, 40, idle)
	if f.now[a] != trimtab.Units(0.2) || f.now[b] != trimtab.Units(1) || steps != 1 {
		t.Errorf("without load a has %v after %d steps, b %v: want the bound of 0.2 in one, and 1", f.now[a], steps, f.now[b])
	}
	if why := last.Unmoved["a"].Text; !strings.Contains(why, "it has no load") {
		t.Errorf("it says %q", why)
	}
	if play(120, 10, loaded); f.now[a] != trimtab.Units(1) {
		t.Errorf("with the load that came back it has %v", f.now[a])
	}
	play(130, 40, idle)
	if play(170, 2, lost); f.now[a] != trimtab.Units(0.2) {
		t.Errorf("two seconds without knowledge gave it %v", f.now[a])
	}
	said := ""
	for i := range 40 {
		for _, action := range play(172+i, 1, lost).Actions {
			said = action.Why.Summary
		}
	}
	if !strings.Contains(said, "nothing is known of it") {
		t.Errorf("it says %q", said)
	}
	if f.now[a] != trimtab.Units(1) {
		t.Errorf("with a load that is no longer known it has %v, want the 1 that the site set", f.now[a])
	}
}
