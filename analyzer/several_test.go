package analyzer_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/quantity"
)

const gib = 1 << 30

// hungry needs 3 cores and 2 GiB to meet its SLO of 0.9: what is short decides.
func hungry(cores, memory float64) float64 {
	return 0.99 * math.Min(1, math.Min(cores/3, memory/(2*gib)))
}

// feed gives the analyzer seconds [from, to) with one allocation, and returns
// the last estimate.
func feed(t *testing.T, a *analyzer.Analyzer, r *rand.Rand, from, to int, cores, memory float64) *trimtab.Estimate {
	t.Helper()
	var last *trimtab.Estimate
	for n := from; n < to; n++ {
		under := 0.0
		for range 100 {
			if r.Float64() < hungry(cores, memory) {
				under++
			}
		}
		now := float64(n) + 1.6
		a.Step(sec(now), sketch("w", n, 100, under))
		h := holding(now, "w", cores, float64(from))
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: "w", Resource: "memory"}, Now: trimtab.Units(memory), Since: sec(float64(from)), Max: 8 * gib})
		a.Step(sec(now), h)
		if e := estimates(t, a.Step(sec(now+0.1), nil))["w"]; e != nil {
			last = e
		}
	}
	if last == nil {
		t.Fatal("no estimate")
	}
	return last
}

func withMemory() analyzer.Config {
	c := config("w")
	c.Workloads[0].Others = []analyzer.Axis{{Resource: "memory", Min: gib / 8, Max: 8 * gib, Stock: true}}
	return c
}

func TestEveryResourceGetsACurveFromTheSameReports(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(1, 2))
	e := feed(t, a, r, 0, 30, 4, 4*gib)
	c := e.Curves["memory"]
	if e.Curve == nil || c == nil || len(e.Curves) != 1 || e.Allocations["memory"] != 4*gib {
		t.Fatalf("curve %v, curves %v, allocations %v", e.Curve, e.Curves, e.Allocations)
	}
	if first, last := c.Knots[0].Allocation, c.Knots[len(c.Knots)-1].Allocation; math.Abs(first-gib/8) > 1 || last != 8*gib {
		t.Errorf("it is over %v to %v, want the bounds", first, last)
	}
	if b := c.Eval(4.5 * gib); b.Lower < 0.9 {
		t.Errorf("at what it has memory is known to be enough for %+v only", b)
	}
	if b := c.Eval(gib); b.Upper < 0.98 {
		t.Errorf("nothing is known of less memory, and the bound is %+v", b)
	}
	if c.Load != e.Curve.Load {
		t.Errorf("load %v and %v", c.Load, e.Curve.Load)
	}
}

// Both were ample; then the cores are taken away, and the memory is not blamed.
func TestAShortageOfOneResourceDoesNotCountAgainstTheOther(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(3, 4))
	feed(t, a, r, 0, 40, 4, 4*gib)
	e := feed(t, a, r, 40, 100, 1.5, 4*gib)
	if b := e.Curves["memory"].Eval(4.5 * gib); b.Lower < 0.85 {
		t.Errorf("memory is enough for %+v at what was proven to be enough", b)
	}
	if b := e.Curve.Eval(1.5); b.Upper > 0.7 {
		t.Errorf("cores: %+v at half of the need", b)
	}
	if n := count(a, "trimtab_learn_reports_total", "other_short"); n < 50 {
		t.Errorf("%v reports counted as another's shortage", n)
	}
	// And the other way round.
	e = feed(t, a, r, 100, 160, 4, gib)
	if b := e.Curve.Eval(4.5); b.Lower < 0.85 {
		t.Errorf("cores are enough for %+v at what was proven to be enough", b)
	}
	if b := e.Curves["memory"].Eval(gib); b.Upper > 0.7 {
		t.Errorf("memory: %+v at half of the need", b)
	}
}

// The service has changed and no amount of cores helps: in the end the memory
// is blamed for what it is to blame for.
func TestAShortfallThatMoreOfTheOtherDoesNotHelpIsLearnt(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(5, 6))
	feed(t, a, r, 0, 40, 3.5, 4*gib)
	n := 40
	var e *trimtab.Estimate
	// What it needs of memory doubles and more: as if it had 1.5 of 2 GiB.
	for _, cores := range []float64{3.5, 5, 6.5, 8, 8, 8} {
		var last *trimtab.Estimate
		for range 20 {
			under := math.Round(100 * (0.74 + 0.02*r.Float64()))
			now := float64(n) + 1.6
			a.Step(sec(now), sketch("w", n, 100, under))
			h := holding(now, "w", cores, float64(n-n%20))
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: "w", Resource: "memory"}, Now: trimtab.Units(4 * gib), Since: sec(0), Max: 8 * gib})
			a.Step(sec(now), h)
			if v := estimates(t, a.Step(sec(now+0.1), nil))["w"]; v != nil {
				last = v
			}
			n++
		}
		e = last
	}
	if b := e.Curves["memory"].Eval(4 * gib); b.Mean > 0.85 {
		t.Errorf("memory is still thought to be enough for %+v", b)
	}
}

func TestAChangeOfAnyResourceSetsTheReportAside(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(7, 8))
	feed(t, a, r, 0, 10, 4, 4*gib)
	before := count(a, "trimtab_learn_reports_total", "transient")
	feed(t, a, r, 10, 12, 4, 2*gib)
	if got := count(a, "trimtab_learn_reports_total", "transient"); got <= before {
		t.Errorf("%v set aside before the memory changed, %v after", before, got)
	}
}

func TestCurvesOfAllResourcesOutliveARestart(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(9, 10))
	feed(t, a, r, 0, 30, 4, 4*gib)
	again := make1(t, withMemory())
	for name, state := range a.Snapshot() {
		if err := again.Restore(name, state); err != nil {
			t.Fatal(err)
		}
		if got := again.Snapshot()[name]; !bytes.Equal(got, state) {
			t.Errorf("restored %.200s, want %.200s", got, state)
		}
	}
	e := feed(t, again, r, 30, 32, 4, 4*gib)
	if b := e.Curves["memory"].Eval(4.5 * gib); b.Lower < 0.9 {
		t.Errorf("after the restart memory is known to be enough for %+v", b)
	}
}

func TestFurtherResourcesAreChecked(t *testing.T) {
	for name, axes := range map[string][]analyzer.Axis{
		"no name": {{Max: 1}}, "twice": {{Resource: "m", Max: 1}, {Resource: "m", Max: 2}}, "first": {{Resource: "cpu", Max: 1}},
		"empty": {{Resource: "m", Min: 1, Max: 1}}, "NaN": {{Resource: "m", Max: math.NaN()}}, "vast": {{Resource: "m", Max: 1e300}},
	} {
		c := config("w")
		c.Workloads[0].Others = axes
		if _, err := analyzer.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// From nothing: the service misses its target, and of its memory half is used.
// The shortfall is the cores' alone.
func TestWhatIsMeasuredToBeIdleIsNotBlamed(t *testing.T) {
	for name, floor := range map[string]float64{"half is used": 2 * gib, "all is used": 4 * gib, "not measured": 0} {
		a, r := make1(t, withMemory()), rand.New(rand.NewPCG(11, 12))
		var e *trimtab.Estimate
		for n := range 40 {
			now := float64(n) + 1.6
			a.Step(sec(now), sketch("w", n, 100, math.Round(60+3*r.NormFloat64())))
			h := holding(now, "w", 2, 0)
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: "w", Resource: "memory"}, Now: trimtab.Units(4 * gib), Since: sec(0), Floor: floor, Max: 8 * gib})
			a.Step(sec(now), h)
			if v := estimates(t, a.Step(sec(now+0.1), nil))["w"]; v != nil {
				e = v
			}
		}
		b := e.Curves["memory"].Eval(4.5 * gib)
		if idle := floor == 2*gib; idle != (b.Lower >= 0.9) {
			t.Errorf("%s: memory is known to be enough for %+v", name, b)
		}
		if b := e.Curve.Eval(1.99); b.Upper > 0.8 {
			t.Errorf("%s: cores %+v, want that they are blamed", name, b)
		}
	}
}

// And where the cores are idle, the memory.
func TestIdleCoresAreNotBlamed(t *testing.T) {
	a, r := make1(t, withMemory()), rand.New(rand.NewPCG(13, 14))
	var e *trimtab.Estimate
	for n := range 40 {
		now := float64(n) + 1.6
		a.Step(sec(now), sketch("w", n, 100, math.Round(60+3*r.NormFloat64())))
		for q, v := range map[quantity.Quantity]float64{quantity.Usage: 1, quantity.Throttled: 0.01} {
			a.Step(sec(now), &trimtab.Sample{Workload: "w", Quantity: q, Source: "cgroup", Time: sec(now), Value: v})
		}
		h := holding(now, "w", 2, 0)
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: "w", Resource: "memory"}, Now: trimtab.Units(gib), Since: sec(0), Floor: gib, Max: 8 * gib})
		a.Step(sec(now), h)
		if v := estimates(t, a.Step(sec(now+0.1), nil))["w"]; v != nil {
			e = v
		}
	}
	if b := e.Curve.Eval(2.2); b.Lower < 0.9 {
		t.Errorf("cores are known to be enough for %+v", b)
	}
	if b := e.Curves["memory"].Eval(gib); b.Mean > 0.7 {
		t.Errorf("memory %+v, want that it is blamed", b)
	}
}
