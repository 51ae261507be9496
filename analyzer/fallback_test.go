package analyzer_test

import (
	"math"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/quantity"
)

// recorded needs 0.1 of the resource for each request per second.
func recorded(t *testing.T) *declared.Profile {
	t.Helper()
	p, err := declared.ReadProfile(strings.NewReader("allocation_per_load,performance\n0.05,0.5\n0.1,0.9\n0.2,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// during gives seconds from to to, with performance where it is wanted.
func during(a *analyzer.Analyzer, from, to int, sketches bool, samples ...quantity.Quantity) []trimtab.Value {
	var out []trimtab.Value
	for n := from; n < to; n++ {
		at := sec(float64(n) + 1)
		if sketches {
			a.Step(at, sketch("w", n, 30, 20))
		}
		for _, q := range samples {
			value := map[quantity.Quantity]float64{quantity.Load: 30, quantity.Performance: 0.7, quantity.Proxy: 0.6}[q]
			a.Step(at, &trimtab.Sample{Workload: "w", Quantity: q, Source: "prometheus", Time: at, Value: value})
		}
		a.Step(at, holding(float64(n)+1, "w", 2, -60))
		if es := a.Step(at.Add(700e6), nil); len(es) > 0 {
			out = es
		}
	}
	return out
}

// withFallback has performance and load from Prometheus.
func withFallback(t *testing.T, f analyzer.Fallback) *analyzer.Analyzer {
	t.Helper()
	c := config("w")
	w := &c.Workloads[0]
	w.PerformanceFrom, w.LoadFrom, w.SLO = analyzer.FromPrometheus, analyzer.FromPrometheus, analyzer.SLO{}
	w.Fallback = f
	return make1(t, c)
}

func TestAFallbackStandsInWhenPerformanceIsStaleAndLeavesWhenItIsBack(t *testing.T) {
	for name, c := range map[string]struct {
		fallback analyzer.Fallback
		with     []quantity.Quantity // what goes on while performance is missing
		model    string
	}{
		"profile":                     {analyzer.Fallback{Profile: recorded(t), Demand: &declared.Demand{Amount: 3, Target: 0.9}}, []quantity.Quantity{quantity.Load}, "profile"},
		"demand":                      {analyzer.Fallback{Demand: &declared.Demand{Amount: 3, Target: 0.9}}, []quantity.Quantity{quantity.Load}, "demand"},
		"proxy":                       {analyzer.Fallback{Proxy: true, Profile: recorded(t)}, []quantity.Quantity{quantity.Load, quantity.Proxy}, "proxy gp"},
		"without load, the demand":    {analyzer.Fallback{Proxy: true, Profile: recorded(t), Demand: &declared.Demand{Amount: 3, Target: 0.9}}, nil, "demand"},
		"without the proxy, profiles": {analyzer.Fallback{Proxy: true, Profile: recorded(t)}, []quantity.Quantity{quantity.Load}, "profile"},
	} {
		t.Run(name, func(t *testing.T) {
			a := withFallback(t, c.fallback)
			both := []quantity.Quantity{quantity.Load, quantity.Performance, quantity.Proxy}
			e := estimates(t, during(a, 0, 10, false, both...))["w"]
			if e.Fallback != "" || e.Hold != nil || !strings.HasPrefix(e.Model, "gp") {
				t.Fatalf("with performance: %+v", e)
			}
			// A round is 4 s: not yet stale after two of them.
			if e = estimates(t, during(a, 10, 19, false, c.with...))["w"]; e.Fallback != "" || e.Hold == nil {
				t.Fatalf("after two rounds without performance: %q, hold %q", e.Fallback, e.Hold)
			}
			e = estimates(t, during(a, 19, 40, false, c.with...))["w"]
			if !strings.HasPrefix(e.Model, c.model) || !strings.HasPrefix(c.model, e.Fallback) || e.Curve == nil {
				t.Fatalf("after seven rounds without performance: model %q, fallback %q", e.Model, e.Fallback)
			}
			if !strings.HasPrefix(e.Hold.Text, "no ") || !strings.Contains(e.Hold.Text, "from prometheus") || !strings.Contains(e.Hold.Text, "the declared "+e.Fallback+" stands in") {
				t.Errorf("hold %q", e.Hold)
			}
			e = estimates(t, during(a, 40, 50, false, both...))["w"]
			if e.Fallback != "" || e.Hold != nil || !strings.HasPrefix(e.Model, "gp") {
				t.Errorf("when performance is back: model %q, fallback %q, hold %q", e.Model, e.Fallback, e.Hold)
			}
		})
	}
}

func TestTheProxyTeachesItsOwnCurveAlone(t *testing.T) {
	a := withFallback(t, analyzer.Fallback{Proxy: true})
	e := estimates(t, during(a, 0, 200, false, quantity.Load, quantity.Performance, quantity.Proxy))["w"]
	if p := e.Curve.Eval(2).Mean; math.Abs(p-0.7) > 0.05 {
		t.Errorf("the curve is at %v, the performance was 0.7", p)
	}
	e = estimates(t, during(a, 200, 240, false, quantity.Load, quantity.Proxy))["w"]
	if p := e.Curve.Eval(2).Mean; e.Fallback != "proxy" || math.Abs(p-0.6) > 0.05 || e.Reports < 200 {
		t.Errorf("the curve of the %s is at %v after %d reports, the proxy was 0.6", e.Fallback, p, e.Reports)
	}
}

func TestWithoutDeclaredFeedbackADemandIsAllThereIsAndNothingIsMissing(t *testing.T) {
	c := config("w")
	w := &c.Workloads[0]
	w.SLO, w.Target = analyzer.SLO{}, 1
	w.Fallback = analyzer.Fallback{Demand: &declared.Demand{Amount: 3, Target: 1}}
	a := make1(t, c)
	told := 0
	for n := range 40 {
		for _, e := range estimates(t, a.Step(sec(float64(n)), nil)) {
			told++
			if e.Fallback != "demand" || e.Model != "demand" || e.Hold != nil || math.Abs(e.Curve.Eval(1.5).Mean-0.5) > 1e-9 {
				t.Fatalf("%+v", e)
			}
		}
	}
	// A round is 4 s.
	if told < 9 || told > 11 {
		t.Errorf("%d estimates in 10 rounds", told)
	}
}

func TestAProfileWithoutALoadHoldsRatherThanGuess(t *testing.T) {
	c := config("w")
	w := &c.Workloads[0]
	w.SLO, w.Target = analyzer.SLO{}, 0.9
	w.Fallback = analyzer.Fallback{Profile: recorded(t), Demand: &declared.Demand{Amount: 0.3, Target: 0.9}}
	a := make1(t, c)
	e := estimates(t, during(a, 0, 10, true))["w"]
	if e.Fallback != "profile" || e.Hold != nil || e.Curve.Eval(e.Load.Upper*0.1).Mean < 0.89 {
		t.Fatalf("with load: %+v", e)
	}
	e = estimates(t, during(a, 10, 40, false))["w"]
	if e.Fallback != "demand" || e.Hold == nil {
		t.Errorf("without load the demand may raise, not lower: fallback %q, hold %q", e.Fallback, e.Hold)
	}
}

func TestTheProxysCurveOutlivesARestart(t *testing.T) {
	a := withFallback(t, analyzer.Fallback{Proxy: true})
	during(a, 0, 60, false, quantity.Load, quantity.Performance, quantity.Proxy)
	b := withFallback(t, analyzer.Fallback{Proxy: true})
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	e := estimates(t, during(b, 60, 90, false, quantity.Load, quantity.Proxy))["w"]
	if e.Fallback != "proxy" || e.Reports < 60 {
		t.Errorf("%q after %d reports", e.Fallback, e.Reports)
	}
}

func TestADemandWithoutSenseIsRefused(t *testing.T) {
	c := config("w")
	c.Workloads[0].Fallback.Demand = &declared.Demand{Amount: -1, Target: 1}
	if _, err := analyzer.New(c); err == nil {
		t.Error("a demand of -1 is taken")
	}
}
