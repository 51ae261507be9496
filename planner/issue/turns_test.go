package issue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// paced is a pool of a cluster of n workloads with 2 cores each, of two pods, whose server
// takes a change a second.
func paced(t *testing.T, n int) *issue.Issuer {
	t.Helper()
	l := ledger.New(ledger.Config{Pool: "p", Lease: lease, Most: func(string, string) (float64, bool) { return 4, true }})
	i := issue.New(issue.Config{
		Pool: "p", Resources: []issue.Resource{{Name: "cpu", Capacity: 1000, Unit: 0.1, Quantum: 0.001}}, Lease: lease, Confirm: confirm, Ledger: l,
		Writable:   func(string) bool { return true },
		Unreported: func(string, func(string) bool) float64 { return 0 },
	})
	i.Begin(1, began)
	h := &trimtab.Holding{Pool: "p", Host: "h", Epoch: 1, Time: began, Pace: 1}
	for w := range n {
		for pod := range 2 {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: pods(w, pod), Now: trimtab.Units(1), Baseline: trimtab.Units(1), Max: 4})
		}
	}
	l.Hold(began, h)
	return i
}

func pods(w, pod int) trimtab.KnobID {
	return trimtab.KnobID{Pool: "p", Host: "h", Workload: fmt.Sprintf("w%02d", w), Instance: fmt.Sprint(pod), Resource: "cpu"}
}

// rise is that of both pods of a workload, which has 2 cores and needs demand.
func rise(w int, demand float64) []trimtab.Action {
	whole, target := &trimtab.Whole{Instances: 2, From: 2, To: demand}, demand
	all := make([]trimtab.Action, 2)
	for pod := range all {
		all[pod] = trimtab.Action{KnobID: pods(w, pod), Expect: trimtab.Units(1), Set: trimtab.Units(demand / 2), Mode: trimtab.Act, Of: whole,
			Why: trimtab.Reason{Summary: fmt.Sprintf("pod %d", pod)}}
	}
	all[0].Why.Target, all[0].Why.Demand = &target, &target
	return all
}

func TestAPlanHasNoMoreChangesThanItsHostMakesInASixthOfALeaseTheMostUrgentFirst(t *testing.T) {
	i := paced(t, 20)
	var grows []trimtab.Action
	for w := range 20 {
		grows = append(grows, rise(w, 2.2+float64(w)/10)...) // the last lacks most
	}
	plan := i.Issue(began, issue.Decision{Grows: grows, Plan: trimtab.Plan{Unmoved: map[string]trimtab.Held{"other": {Code: codes.StayIdle}}}})
	if most := int(lease / 6 / time.Second); len(plan.Actions) != most {
		t.Fatalf("%d actions, want %d", len(plan.Actions), most)
	}
	for n := range plan.Actions {
		if w := plan.Actions[n].Workload; w < "w15" {
			t.Errorf("%s is raised before one that lacks more", w)
		}
	}
	if why := plan.Unmoved["w00"]; why.Code != codes.StayTurn || plan.Unmoved["other"].Code != codes.StayIdle || len(plan.Unmoved) != 16 {
		t.Errorf("unmoved: %+v of %d, want 15 whose turn has not come, and the one of before", why, len(plan.Unmoved))
	}
	if i.Later != 30 {
		t.Errorf("%d counted as later, want 30", i.Later)
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsSaidWithTheFirstOfSeveralActionsIsSaidWithTheNextWhereThatOneWaits(t *testing.T) {
	i := paced(t, 11)
	var grows []trimtab.Action
	for w := range 9 {
		grows = append(grows, rise(w, 4)[0])
	}
	last := rise(10, 3)
	last[0].Set = trimtab.Units(1.01) // the least urgent of all
	grows = append(grows, last...)
	plan := i.Issue(began, issue.Decision{Grows: grows})
	for n := range plan.Actions {
		if a := plan.Actions[n]; a.Workload == "w10" && a.Instance == "1" {
			if a.Why.Target == nil || a.Why.Summary != "pod 1" {
				t.Errorf("%+v: want the reason of the workload, and the words of this pod", a.Why)
			}
			return
		}
	}
	t.Error("the pod did not come to its turn")
}

func TestWhatAPersonAppliesIsNotCutByTheIssuer(t *testing.T) {
	i := paced(t, 20)
	var grows []trimtab.Action
	for w := range 20 {
		grows = append(grows, rise(w, 3)...)
	}
	if plan := i.Issue(began, issue.Decision{Grows: grows, Plan: trimtab.Plan{Applies: "1.1"}}); len(plan.Actions) != 40 {
		t.Errorf("%d actions, want all 40", len(plan.Actions))
	}
}
