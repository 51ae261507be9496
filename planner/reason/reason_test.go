package reason_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/planner/reason"
)

// planned is a workload that has 2 cores and is to have aim units of 0.1.
func planned(aim int) *allocation.Allocation {
	id := trimtab.KnobID{Pool: "p", Host: "a", Workload: "shop", Resource: trimtab.CPU}
	c := &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{{}, {Allocation: 4, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
	s := &allocation.Allocation{
		Workload: &allocation.Workload{Config: allocation.Config{Name: "shop", SLO: 0.9, Mode: trimtab.Act, Utility: func(p float64) float64 { return p }}, Estimate: &trimtab.Estimate{Reports: 10, Curve: c}},
		State:    &allocation.State{}, Resource: &pool.Resource{Name: trimtab.CPU, Capacity: 8, Unit: 0.1, Step: 10}, Curve: c, Now: 2,
		Range: allocation.Range{Lo: 1, Hi: 80, Need: policy.Demand{Mean: 36}}, Status: allocation.Status{Free: true},
		Knobs: instances.All{{Knob: &ledger.Knob{KnobID: id, Held: trimtab.KnobState{KnobID: id, Now: trimtab.Units(2)}}, Found: trimtab.Units(2), Has: 2, High: 8, Share: 1}},
	}
	s.Aim.Units, s.Aim.Solved = aim, true
	return s
}

func TestAReasonSaysWhatIsDoneWhatTheObjectiveWantsAndWhatKeptItFromThat(t *testing.T) {
	r := reason.Round{Objective: "njc"}
	s := planned(36)
	s.Step.Grant = guard.Grant{Set: 3}
	why := r.Of(s)
	if want := "raised from 2 to 3: njc wants 3.6, and at 3 performance is expected to be 0.75"; !strings.HasPrefix(why.Summary, want) {
		t.Errorf("%q, want %q", why.Summary, want)
	}
	if why.Binding.Kind != codes.BindingStep || *why.Target != 3.6 || *why.Demand != 3.6 || *why.Utility != 0.75 {
		t.Errorf("%+v", why)
	}
	s.ReadOnly = "the cluster resizes no pods"
	if why = r.Of(s); !strings.HasPrefix(why.Summary, "would be raised") || !strings.HasSuffix(why.Summary, "; only recommended: the cluster resizes no pods") {
		t.Errorf("barred: %q", why.Summary)
	}
}

func TestWhoStaysIsToldWhatItHasAndWhatItIsWanted(t *testing.T) {
	r := reason.Round{Objective: "njc"}
	if got := r.Stays(planned(20)); got.Code != codes.StayThere || !strings.HasPrefix(got.Text, "it has 2 cores, which is what njc gives it") {
		t.Errorf("%+v", got)
	}
	s := planned(36)
	s.Step.Binding = trimtab.Binding{Kind: codes.BindingGuard, Detail: "no room"}
	if got := r.Stays(s); got.Code != codes.StayBound || !strings.HasPrefix(got.Text, "it has 2 cores, njc wants 3.6 cores") || !strings.Contains(got.Text, "no room") {
		t.Errorf("%+v", got)
	}
}

func TestAShortageNamesWhoHoldsMostAndSaysNothingWhereThereIsEnough(t *testing.T) {
	s := planned(36)
	s.Range.Lo = 10
	asked := []*allocation.Allocation{s}
	holders := []reason.Holder{{Name: "a", Has: 1}, {Name: "b", Has: 4, Open: true, Why: "no estimate"}, {Name: "c", Has: 2}, {Name: "d", Has: 0.5}}
	if got := reason.OfShortage(asked, s.Resource, 10, 8, holders); got != "" {
		t.Errorf("10 units are enough: %q", got)
	}
	want := "the pool has 8 cores, and those that are planned for have at least 1 cores together: b, which has no limit, counts as 4 cores (no estimate); c holds 2 cores; a holds 1 cores; 1 more hold the rest"
	if got := reason.OfShortage(asked, s.Resource, 5, 8, holders); got != want {
		t.Errorf("%q", got)
	}
}
