package issue_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const lease, confirm = time.Minute, 5 * time.Second

// pool has 4 cores, of which a and b, on two hosts, have 2 each.
func pool(t *testing.T) *issue.Issuer {
	t.Helper()
	l := ledger.New(ledger.Config{Pool: "p", Lease: lease, Shared: true, Most: func(string, string) (float64, bool) { return 4, true }})
	i := issue.New(issue.Config{
		Pool: "p", Resources: []issue.Resource{{Name: "cpu", Capacity: 4, Unit: 0.1, Quantum: 0.001}}, Lease: lease, Confirm: confirm, Ledger: l,
		Writable:   func(string) bool { return true },
		Unreported: func(string, func(string) bool) float64 { return 0 },
	})
	i.Begin(1, began)
	for _, w := range []string{"a", "b"} {
		l.Hold(began, holding(w, 0, 2))
	}
	return i
}

func knob(w string) trimtab.KnobID {
	return trimtab.KnobID{Pool: "p", Host: "host of " + w, Workload: w, Resource: "cpu"}
}

// holding is what the host of a workload says, s seconds on.
func holding(w string, s int, now float64) *trimtab.Holding {
	return &trimtab.Holding{Pool: "p", Host: knob(w).Host, Epoch: 1, Time: began.Add(time.Duration(s) * time.Second),
		Targets: []trimtab.KnobState{{KnobID: knob(w), Now: trimtab.Units(now), Baseline: trimtab.Units(2), Max: 4}}}
}

func set(w string, from, to float64) []trimtab.Action {
	return []trimtab.Action{{KnobID: knob(w), Expect: trimtab.Units(from), Set: trimtab.Units(to), Mode: trimtab.Act}}
}

// done is the answer of the host of a workload to a plan: it has now.
func done(p *trimtab.Plan, w string, now float64) *trimtab.Outcome {
	return &trimtab.Outcome{Pool: "p", Host: knob(w).Host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time.Add(time.Second),
		Results: []trimtab.Result{{KnobID: knob(w), Status: trimtab.Written, Known: true, Found: trimtab.Units(now)}}}
}

func TestGrowsGoOutWhenEveryShrinkWasAnswered(t *testing.T) {
	i := pool(t)
	first := i.Issue(began, issue.Decision{Shrinks: set("a", 2, 1), Grows: set("b", 2, 3)})
	if len(first.Actions) != 1 || first.Last || !i.Waits() || i.Release(began) != nil {
		t.Fatalf("%+v: want the shrink, and to wait", first)
	}
	if !i.Answer(done(first, "a", 1)) || i.Answer(done(first, "a", 1)) {
		t.Error("an answer is news once")
	}
	second := i.Release(began)
	if second == nil || second.Step != 2 || !second.Last || len(second.Actions) != 1 || second.Actions[0].Set.Value != 3 || i.Waits() {
		t.Errorf("%+v: want b at 3", second)
	}
}

func TestWithoutAnAnswerGrowsGetWhatIsFree(t *testing.T) {
	i := pool(t)
	i.Issue(began, issue.Decision{Shrinks: set("a", 2, 1), Grows: set("b", 2, 3)})
	if i.Release(began.Add(confirm-time.Second)) != nil {
		t.Error("the wait was cut short")
	}
	if p := i.Release(began.Add(confirm)); p == nil || len(p.Actions) > 0 || i.Unanswered != 1 {
		t.Errorf("%+v: want no grow, since nothing is known to be free", p)
	}
}

// What an unanswered grow has reserved is its own, but only as long as it is there.
func TestARepeatedGrowWhoseRoomIsGoneIsDropped(t *testing.T) {
	i := pool(t)
	i.Ledger.Hold(began, holding("a", 1, 1))
	if p := i.Issue(began, issue.Decision{Grows: set("b", 2, 3)}); len(p.Actions) != 1 {
		t.Fatalf("%+v: want the grow, there is room", p)
	}
	if p := i.Issue(began, issue.Decision{Grows: set("b", 2, 3)}); len(p.Actions) != 1 {
		t.Fatalf("%+v: want it again, it was not answered", p)
	}
	i.Ledger.Hold(began, holding("a", 2, 2)) // its baseline came back
	if p := i.Issue(began, issue.Decision{Grows: set("b", 2, 3)}); len(p.Actions) != 0 || i.Dropped != 1 {
		t.Errorf("%+v: want none", p)
	}
}

// Whoever decides for a pool issues through one room: no two plans of a term have
// one number, and the room that one gives out the other does not have.
func TestTwoDecidersShareOneTermAndOneLedger(t *testing.T) {
	i := pool(t)
	i.Ledger.Hold(began, holding("a", 1, 1))
	one := i.Issue(began, issue.Decision{Grows: set("b", 2, 3)})
	other := i.Issue(began, issue.Decision{Grows: set("a", 1, 2)})
	if one.Sequence != 1 || other.Sequence != 2 || len(one.Actions) != 1 || len(other.Actions) != 0 {
		t.Errorf("%+v, then %+v: want one core given out once", one, other)
	}
}

func TestAPauseEndsThePlanUnderWay(t *testing.T) {
	i := pool(t)
	i.Issue(began, issue.Decision{Shrinks: set("a", 2, 1), Grows: set("b", 2, 3)})
	if heard, changed := i.Pause(began, began, true); !heard || !changed || i.Waits() || !i.Paused() {
		t.Error("want a pause, and nothing under way")
	}
	if heard, _ := i.Pause(began, began.Add(-time.Second), false); heard || !i.Paused() {
		t.Error("an older command was heard")
	}
}
