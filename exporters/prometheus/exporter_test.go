package prometheus

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/metric"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAValueThatGoesMissingIsRemovedNotZeroed(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	p := 0.9
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Performance: &p, Load: &trimtab.LoadForecast{Now: 3, Upper: 4}})
	if err := testutil.GatherAndCompare(set, strings.NewReader(`
# HELP trimtab_workload_performance Performance in the unit of its SLO, newest report
# TYPE trimtab_workload_performance gauge
trimtab_workload_performance{workload="w"} 0.9
`), "trimtab_workload_performance"); err != nil {
		t.Error(err)
	}
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Hold: &trimtab.Held{Code: codes.HeldMissing, Text: "no spans"}})
	for name, want := range map[string]int{"trimtab_workload_performance": 0, "trimtab_workload_load": 0, "trimtab_workload_held": 1} {
		if n, err := testutil.GatherAndCount(set, name); err != nil || n != want {
			t.Errorf("%s: %d series, want %d (%v)", name, n, want, err)
		}
	}
}

func TestALoadThatNobodyMeasuresAnyMoreHasNoSeries(t *testing.T) {
	series := func(set *metric.Set) (n int) {
		for _, name := range []string{"trimtab_workload_load", "trimtab_workload_load_upper"} {
			of, err := testutil.GatherAndCount(set, name)
			if err != nil {
				t.Fatal(err)
			}
			n += of
		}
		return n
	}
	load := &trimtab.LoadForecast{Now: 32.7, Upper: 40}
	for name, gone := range map[string]*trimtab.Estimate{
		"the input is missing": {Workload: "w", Time: noon, Load: load, Inputs: []trimtab.Input{{Name: "load", Source: "spans", Missing: "no spans for 1h"}}},
		"it holds for it":      {Workload: "w", Time: noon, Load: load, Hold: &trimtab.Held{Code: codes.HeldMissing, Input: "load", Text: "no spans"}},
	} {
		set := metric.NewSet()
		e := New(set)
		e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Load: load, Inputs: []trimtab.Input{{Name: "load", Value: 32.7, Source: "spans"}}})
		if n := series(set); n != 2 {
			t.Errorf("%d series of a load that is measured", n)
		}
		if e.Observe(gone); series(set) != 0 {
			t.Errorf("%s: the old load is exported", name)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the analyzer is silent
		set := metric.NewSet()
		e := New(set)
		e.SetPatience(20 * time.Second)
		e.Observe(&trimtab.Estimate{Workload: "w", Time: time.Now(), Load: load, Latency: map[string]trimtab.Seconds{"p95": 1}})
		if n := series(set); n != 2 {
			t.Errorf("%d series of a load that is measured", n)
		}
		time.Sleep(21 * time.Second)
		if n := series(set); n != 0 {
			t.Error("the load of a silent analyzer is exported")
		}
		e.Observe(&trimtab.Estimate{Workload: "w", Time: time.Now(), Load: load})
		if n := series(set); n != 2 {
			t.Errorf("%d series once it is measured again", n)
		}
	})
}

func TestAnUnlimitedKnobHasNoAllocationSeries(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	h := &trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Now: trimtab.Units(1)}}}
	e.Observe(h)
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_allocation"); n != 1 {
		t.Fatal(n)
	}
	e.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Now: trimtab.Unlimited()}}})
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_allocation"); n != 0 {
		t.Error(n)
	}
}

func TestTheAllocationIsWhatIsInForce(t *testing.T) {
	set := metric.NewSet()
	e, in := New(set), trimtab.Units(1)
	e.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Now: trimtab.Units(3), Effective: &in}}})
	e.catchUp()
	if v := testutil.ToFloat64(set.Gauge("trimtab_workload_allocation", "w", "h", "cpu")); v != 1 {
		t.Errorf("%v, though 3 are pending", v)
	}
}

func TestOutcomesAreCountedByStatus(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	o := &trimtab.Outcome{Pool: "p", Time: noon, Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Status: trimtab.Written}, {KnobID: trimtab.KnobID{Pool: "p", Workload: "v", Resource: "cpu"}, Status: trimtab.Refused}}}
	e.Observe(o)
	e.Observe(o)
	if v := testutil.ToFloat64(set.Counter("trimtab_actions_total", "cpu", "written")); v != 2 {
		t.Error(v)
	}
}

func TestUtilityIsTheWorkloadsOwnAndOnlyOfWhatWasMeasured(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	e.Configure([]Workload{{Name: "w", SLO: 0.8, Utility: func(p float64) float64 { return min(1, p/0.8) }}})
	p := 0.4
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Performance: &p})
	e.Observe(&trimtab.Estimate{Workload: "undeclared", Time: noon, Performance: &p})
	if err := testutil.GatherAndCompare(set, strings.NewReader(`
# HELP trimtab_workload_slo_performance Performance that its SLO asks for; absent without an SLO
# TYPE trimtab_workload_slo_performance gauge
trimtab_workload_slo_performance{workload="w"} 0.8
# HELP trimtab_workload_utility Utility of the newest performance by the workload's own function, in [0, 1]
# TYPE trimtab_workload_utility gauge
trimtab_workload_utility{workload="w"} 0.5
`), "trimtab_workload_utility", "trimtab_workload_slo_performance"); err != nil {
		t.Error(err)
	}
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon})
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_utility"); n != 0 {
		t.Errorf("%d series of utility without a performance", n)
	}
	e.Configure(nil)
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_slo_performance"); n != 0 {
		t.Errorf("%d series of an SLO that nobody declares any more", n)
	}
}

// line is a curve from (1, 0.2) to (5, 1) whose bounds are 0.1 to either side.
func line() *trimtab.Curve {
	return &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}},
		{Allocation: 5, Band: trimtab.Band{Lower: 0.9, Mean: 1, Upper: 1.1}},
	}}
}

func TestTheExpectedBandIsThatOfTheCurveAtAllocationAndTarget(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	at, target := 2.0, 3.0
	e.Observe(&trimtab.Plan{Pool: "p", Time: noon, Actions: []trimtab.Action{
		{KnobID: trimtab.KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Mode: trimtab.Act, Expect: trimtab.Units(2), Set: trimtab.Units(3), Why: trimtab.Reason{Target: &target}}}})
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Curve: line(), Allocation: &at})
	e.catchUp()
	for labels, want := range map[[3]string]float64{
		{"w", "allocation", "lower"}: 0.3, {"w", "allocation", "mean"}: 0.4, {"w", "allocation", "upper"}: 0.5, {"w", "target", "mean"}: 0.6,
	} {
		if v := testutil.ToFloat64(set.Gauge("trimtab_workload_expected_performance", labels[:]...)); math.Abs(v-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", labels, v, want)
		}
	}
	if v := testutil.ToFloat64(set.Counter("trimtab_workload_decisions_total", "w", "act", "raise")); v != 1 {
		t.Errorf("%v raises counted, want 1", v)
	}
	e.Observe(&trimtab.Plan{Pool: "p", Time: noon, Cause: trimtab.Cause{Kind: codes.CauseRefused, Ref: "1-1"}, Held: map[string]trimtab.Held{"w": {Code: codes.HeldChanged, Text: "found 3"}}})
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_target"); n != 1 {
		t.Errorf("%d targets after a refused apply, which holds nobody", n)
	}
	e.Observe(&trimtab.Plan{Pool: "p", Time: noon, Held: map[string]trimtab.Held{"w": {Code: codes.HeldNoEstimate, Text: "no estimate"}}})
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Hold: &trimtab.Held{Code: codes.HeldMissing, Text: "no spans"}})
	for _, name := range []string{"trimtab_workload_expected_performance", "trimtab_workload_curve_performance", "trimtab_workload_target"} {
		if n, _ := testutil.GatherAndCount(set, name); n != 0 {
			t.Errorf("%s: %d series of a workload that is held and has no curve", name, n)
		}
	}
}

func TestACurveIsNineSeriesWhateverItsBoundsBecome(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for i := range 5 {
		c := line()
		c.Knots[1].Allocation += float64(i)
		e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Curve: c})
		if n, _ := testutil.GatherAndCount(set, "trimtab_workload_curve_performance"); n != rungs {
			t.Fatalf("%d series, want %d", n, rungs)
		}
	}
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Curve: line()})
	e.catchUp()
	if v := testutil.ToFloat64(set.Gauge("trimtab_workload_curve_performance", "w", "3.000")); math.Abs(v-0.6) > 1e-9 {
		t.Errorf("at 3: %v, want 0.6", v)
	}
}

func TestOnlySoManyCurvesAreExported(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for i := range maxCurves + 10 {
		e.Observe(&trimtab.Estimate{Workload: fmt.Sprint("w", i), Time: noon, Curve: line()})
	}
	if n, _ := testutil.GatherAndCount(set, "trimtab_workload_curve_performance"); n != maxCurves*rungs {
		t.Errorf("%d series, want %d", n, maxCurves*rungs)
	}
}

func TestTheNamesOfRungsSortAsTheirNumbers(t *testing.T) {
	for _, most := range []float64{0.9, 9.99, 12, 640, 123456} {
		before := ""
		for i := range rungs {
			name := rungName(most*float64(i)/(rungs-1), most)
			if name <= before || len(before) > 0 && len(name) != len(before) {
				t.Errorf("up to %v: %q after %q", most, name, before)
			}
			before = name
		}
	}
}

func TestAnAuditIsExportedAndWhoLeavesItIsForgotten(t *testing.T) {
	s := metric.NewSet()
	e := New(s)
	half, target := 0.5, 4.0
	p := &trimtab.Plan{Pool: "p", Time: noon, Resource: "cpu", Capacity: 8, Capacities: map[string]float64{"cpu": 8, "memory": 64},
		Audit: &trimtab.Audit{Now: trimtab.Fairness{Envy: 0.25, Shortfall: 0.125}, Target: &trimtab.Fairness{},
			Resources: []trimtab.AuditedResource{{Resource: "cpu", Capacity: 8, Used: 6, Demanded: 16, Binds: 2}, {Resource: "memory", Capacity: 64, Used: 16, Demanded: 16}},
			Workloads: []trimtab.AuditedWorkload{{Workload: "v", Entitlement: 0.5, Share: 0.75, Satisfaction: &half, Envy: 0.25}, {Workload: "w", Entitlement: 0.5, Share: 0.1}}},
		Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Workload: "v", Resource: "memory"}, Mode: trimtab.Act, Set: trimtab.Units(32), Why: trimtab.Reason{Target: &target}}}}
	e.Observe(p)
	text := exposition(t, s)
	for _, want := range []string{
		`trimtab_pool_envy_ratio{of="now",pool="p"} 0.25`, `trimtab_pool_envy_ratio{of="target",pool="p"} 0`, `trimtab_pool_shortfall_ratio{of="now",pool="p"} 0.125`,
		`trimtab_pool_used_ratio{pool="p",resource="cpu"} 0.75`, `trimtab_pool_demanded_ratio{pool="p",resource="cpu"} 2`, `trimtab_pool_bound_workloads{pool="p",resource="cpu"} 2`,
		`trimtab_pool_further_capacity{pool="p",resource="memory"} 64`, `trimtab_workload_dominant_share_ratio{workload="v"} 0.75`,
		`trimtab_workload_satisfaction_ratio{workload="v"} 0.5`, `trimtab_workload_envy_ratio{workload="v"} 0.25`, `trimtab_workload_entitlement_ratio{workload="w"} 0.5`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, not := range []string{`trimtab_workload_satisfaction_ratio{workload="w"}`, `trimtab_workload_target`, `trimtab_pool_further_capacity{pool="p",resource="cpu"}`} {
		if strings.Contains(text, not) {
			t.Errorf("%s: unknown, or of another resource than the first", not)
		}
	}
	p.Audit.Workloads = p.Audit.Workloads[1:]
	e.Observe(p)
	if text := exposition(t, s); strings.Contains(text, `_ratio{workload="v"}`) {
		t.Error("v left the audit and keeps its figures")
	}
}

func TestAuditsOfTwoPoolsForgetOnlyTheirOwn(t *testing.T) {
	s := metric.NewSet()
	e := New(s)
	audit := func(pool string, workloads ...string) {
		p := &trimtab.Plan{Pool: pool, Time: noon, Resource: "cpu", Capacity: 8, Audit: &trimtab.Audit{}}
		for _, name := range workloads {
			p.Audit.Workloads = append(p.Audit.Workloads, trimtab.AuditedWorkload{Workload: name, Entitlement: 0.5})
		}
		e.Observe(p)
	}
	audit("a", "of-a", "gone")
	audit("b", "of-b")
	audit("a", "of-a")
	text := exposition(t, s)
	for name, there := range map[string]bool{"of-a": true, "of-b": true, "gone": false} {
		if strings.Contains(text, `trimtab_workload_entitlement_ratio{workload="`+name+`"}`) != there {
			t.Errorf("%s is there: %v, want %v", name, !there, there)
		}
	}
	audit("b")
	if text := exposition(t, s); strings.Contains(text, `{workload="of-b"}`) || !strings.Contains(text, `{workload="of-a"}`) {
		t.Errorf("of-b left the audit of its pool alone:\n%s", text)
	}
}

// exposition is what a scrape sees.
func exposition(t *testing.T, s *metric.Set) string {
	t.Helper()
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestWhatComesLateChangesNoGauge(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	e.SetPatience(time.Hour)
	now := time.Now()
	for i, v := range []float64{3, 1} { // the second is older
		at := now.Add(-time.Duration(i) * time.Second)
		e.Observe(&trimtab.Estimate{Workload: "w", Time: at, Performance: &v})
		e.Observe(&trimtab.Plan{Pool: "p", Epoch: 1, Sequence: uint64(9 - i), Time: at, Capacity: v, Actions: []trimtab.Action{
			{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Why: trimtab.Reason{Target: &v}}}})
		wants(t, set, `trimtab_workload_performance{workload="w"} 3`, `trimtab_workload_target{workload="w"} 3`, `trimtab_pool_capacity{pool="p"} 3`)
	}
}
