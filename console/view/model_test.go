package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func testView() *Model {
	v := New(Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Objective: "njc", Round: time.Second, Workloads: []Workload{
		{Name: "shop", Mode: trimtab.Act, SLO: "95% under 200ms", Target: .95, Share: true, Utility: func(p float64) float64 { return min(1, p/.95) }},
		{Name: "batch", Mode: trimtab.Off},
	}})
	bad, good := 0.4, 0.95
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon, Performance: &bad, Model: "bintree/1", Reports: 9,
		Curve: &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}, Inputs: []trimtab.Input{{Name: "load", Value: 4, Age: 2}}})
	v.Observe(&trimtab.Estimate{Workload: "<script>found</script>", Time: noon, Performance: &good})
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, LeaseLeft: 10, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"}, Knob: "cgroup v2 shop", Now: trimtab.Units(1), Max: 4}}})
	return v
}

func plan(sequence uint64, set float64) *trimtab.Plan {
	target := 3.0
	return &trimtab.Plan{Pool: "cpu", Epoch: 2, Sequence: sequence, Step: 1, Time: noon.Add(time.Duration(sequence) * time.Second), Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}, Capacity: 8,
		Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(set), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: "raise shop to meet its SLO", Target: &target, Binding: trimtab.Binding{Kind: "step"}, Bounds: &trimtab.Band{Lower: .5, Mean: .7, Upper: .9},
				Inputs: []trimtab.Input{{Name: "load", Value: 5, Age: 1}}, Alternatives: []trimtab.Alternative{{Set: 1, Objective: .4, Why: "stay"}}}}}}
}

func TestExplainTellsTheDecisionItsReasonAndWhatCameOfIt(t *testing.T) {
	v := testView()
	v.Observe(plan(1, 1.5))
	v.Observe(plan(2, 2))
	v.Observe(&trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: 2, Sequence: 2, Step: 1, Time: noon, Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: "cpu"}, Status: trimtab.Written, Found: trimtab.Units(2), Known: true}}})
	e, ok := v.Explain("shop", 5, noon)
	if !ok || e.Plan != "2-2" || e.Decision != "raise shop to meet its SLO" || e.Binding.Kind != "step" || len(e.Bounds) != 2 || e.Bounds[1] != .9 {
		t.Fatalf("%+v", e)
	}
	if e.Result == nil || e.Result.Status != trimtab.Written || len(e.History) != 1 || e.History[0].Plan != "2-1" || e.History[0].Result != nil {
		t.Errorf("result %+v, history %+v", e.Result, e.History)
	}
	if e.Inputs[0].Value != 5 || e.Inputs[0].Age != 1 || len(e.Alternatives) != 1 {
		t.Errorf("inputs %v, alternatives %v", e.Inputs, e.Alternatives)
	}
}

func TestWhatIsPendingIsToldBesideWhatIsInForce(t *testing.T) {
	v := testView()
	in := trimtab.Units(1)
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, LeaseLeft: 10, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"},
		Knob: "cgroup v2 shop", Now: trimtab.Units(3), Effective: &in, Since: noon, Max: 4}}})
	e, _ := v.Explain("shop", 0, noon)
	if e.Allocation == nil || *e.Allocation != in || e.Pending == nil || *e.Pending != trimtab.Units(3) {
		t.Errorf("has %v, pending %v", e.Allocation, e.Pending)
	}
	if got := Has(&Row{Allocation: e.Allocation, Pending: e.Pending}); got != "1 (3 pending)" {
		t.Errorf("told as %q", got)
	}
	if Has(&Row{}) != Missing || Has(&Row{Allocation: &in}) != "1" {
		t.Error("without anything pending")
	}
}

func TestAWorkloadWithoutADecisionIsExplainedToo(t *testing.T) {
	v := testView()
	for name, want := range map[string]string{"batch": "mode is off", "<script>found</script>": "not in the configuration"} {
		e, ok := v.Explain(name, 0, noon)
		if !ok || !strings.Contains(e.Decision, want) {
			t.Errorf("%s: %q, want %q", name, e.Decision, want)
		}
	}
	if _, ok := v.Explain("nobody", 0, noon); ok {
		t.Error("explained a workload that nobody named")
	}
	p := plan(1, 2)
	p.Actions, p.Held = nil, map[string]trimtab.Held{"shop": {Code: codes.HeldMissing, Text: "no spans for 3 rounds"}}
	v.Observe(p)
	if e, _ := v.Explain("shop", 0, noon); !strings.Contains(e.Decision, "no spans for 3 rounds") {
		t.Errorf("held: %q", e.Decision)
	}
}

func TestStatusPutsTheWorstWorkloadFirstAndUnknownLast(t *testing.T) {
	s := testView().Status(noon)
	if s.Workloads[0].Name != "shop" || s.Workloads[0].Utility == nil || s.Workloads[1].Utility != nil {
		t.Errorf("%+v", s.Workloads)
	}
	if s.Allocated != trimtab.Units(1) || s.LeaseLeft != 10 {
		t.Errorf("allocated %v, lease %v", s.Allocated, s.LeaseLeft)
	}
}

func TestThePoolHasNoMoreThanThePlanSays(t *testing.T) {
	for capacity, want := range map[float64]float64{5.5: 5.5, 12: 8, 0: 8} {
		v, p := testView(), plan(1, 2)
		p.Capacity = capacity
		v.Observe(p)
		if got := v.Status(noon).Capacity; got != want {
			t.Errorf("a plan of %v in a pool of 8: shown are %v, want %v", capacity, got, want)
		}
	}
}

func TestAnOldPlanDoesNotReplaceANewerOne(t *testing.T) {
	v := testView()
	v.Observe(plan(2, 2))
	v.Observe(plan(1, 1.5))
	if v.LastPlan().Sequence != 2 {
		t.Error(v.LastPlan().Sequence)
	}
}
