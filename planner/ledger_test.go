package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// knob is a ledger with one knob, read back at 2 under plan 1-1, and a grow to
// 5 that step 2 of plan 1-2 released.
func knob(t *testing.T) (ledger, *entry) {
	t.Helper()
	l := newLedger("p", time.Minute)
	l.hold(began, said(1, 0, 2), func(*trimtab.KnobState) bool { return true })
	e := l.entry(trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"})
	e.grows = []grow{{id: stepID{1, 2, 2}, set: trimtab.Units(5), until: began.Add(time.Minute)}}
	return l, e
}

// said is the host's holding after it accepted a plan, s seconds on.
func said(sequence uint64, s int, now float64) *trimtab.Holding {
	return &trimtab.Holding{Host: "h", Epoch: 1, Sequence: sequence, Time: began.Add(time.Duration(s) * time.Second),
		Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Now: trimtab.Units(now), Max: 8}}}
}

// answered is the host's outcome of one step of plan 1-2, s seconds on.
func answered(step, s int, found float64) *trimtab.Outcome {
	return &trimtab.Outcome{Pool: "p", Host: "h", Epoch: 1, Sequence: 2, Step: step, Time: began.Add(time.Duration(s) * time.Second),
		Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Found: trimtab.Units(found), Known: true, Status: trimtab.Written}}}
}

func believes(t *testing.T, l *ledger, e *entry, want float64) {
	t.Helper()
	if got := l.believed(e, 8, began); got != want {
		t.Errorf("believes %v, want %v", got, want)
	}
}

func TestAnAnswerToAnEarlierStepKeepsTheGrowOfALaterOne(t *testing.T) {
	l, e := knob(t)
	l.read(answered(1, 1, 2))
	believes(t, &l, e, 5)
	l.read(answered(2, 2, 2))
	believes(t, &l, e, 2)
}

func TestARefusedRepetitionAnswersNoGrow(t *testing.T) {
	l, e := knob(t)
	refused := answered(2, 1, 2)
	refused.Refused = "stale: plan 1-2 step 2 was accepted"
	l.read(refused)
	believes(t, &l, e, 5)
}

func TestAnOlderHoldingDoesNotOverwriteAnOutcome(t *testing.T) {
	l, e := knob(t)
	l.read(answered(2, 3, 4))
	all := func(*trimtab.KnobState) bool { return true }
	for _, older := range []*trimtab.Holding{said(1, 4, 2), said(2, 2, 2)} {
		older.Targets[0].Problem = "foreign"
		if !l.hold(began, older, all) {
			t.Fatal("a holding newer than the last is news")
		}
		believes(t, &l, e, 4)
		if e.held.Problem != "foreign" {
			t.Error("only the value is older, the rest of the holding is news")
		}
	}
	l.hold(began, said(2, 5, 3), all)
	believes(t, &l, e, 3)
	l.read(answered(2, 4, 6))
	believes(t, &l, e, 3)
}

// A holding proves what became of plans before the one that its host accepted,
// and nothing of that one's own steps, which it may not have seen yet.
func TestAHoldingAnswersOnlyTheGrowsOfEarlierPlans(t *testing.T) {
	l, e := knob(t)
	all := func(*trimtab.KnobState) bool { return true }
	l.hold(began, said(2, 1, 2), all)
	believes(t, &l, e, 5)
	l.hold(began, said(3, 2, 2), all)
	believes(t, &l, e, 2)
}

// late is the outcome of a write to wanted that is not in force.
func late(s int, wanted, inForce float64) *trimtab.Outcome {
	o, effective := answered(2, s, wanted), trimtab.Units(inForce)
	o.Results[0].Status, o.Results[0].Effective = trimtab.Pending, &effective
	return o
}

func TestAPendingKnobCountsAsTheLargerOfWhatItIsSetToAndWhatIsInForce(t *testing.T) {
	l, e := knob(t)
	l.read(late(1, 1, 2)) // a fall: nothing is free yet
	believes(t, &l, e, 2)
	l.read(late(2, 5, 2)) // a rise: its room is taken
	believes(t, &l, e, 5)
	all := func(*trimtab.KnobState) bool { return true }
	l.hold(began, said(2, 1, 7), all)
	believes(t, &l, e, 5) // older than the outcome
	l.hold(began, said(2, 3, 4), all)
	believes(t, &l, e, 4) // in force
}

func TestAHostWithoutAKnobOfThePoolIsNotHeard(t *testing.T) {
	l := newLedger("p", time.Minute)
	ours := func(h *trimtab.KnobState) bool { return h.Workload == "w" }
	stranger := said(1, 0, 2)
	stranger.Host, stranger.Paused, stranger.Targets[0].Workload = "stranger", true, "other"
	if l.hold(began, stranger, ours) || l.paused() || len(l.hosts) > 0 || len(l.entries) > 0 {
		t.Errorf("heard: %+v", l.hosts)
	}
	known := said(1, 0, 2)
	known.Paused = true
	if !l.hold(began, known, ours) || !l.paused() {
		t.Error("a host of the pool says that it is paused, and is not heard")
	}
	// It is heard still when its last knob goes: that is news.
	known = said(2, 1, 2)
	known.Paused, known.Targets = true, nil
	if !l.hold(began, known, ours) || !l.entries[trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}].gone || l.paused() {
		t.Error("a host that lost its knob was not heard, or still pauses the pool")
	}
}

func TestInventedHostsAreBounded(t *testing.T) {
	l := newLedger("p", time.Minute)
	all := func(*trimtab.KnobState) bool { return true }
	for i := range maxHosts + 10 {
		h := said(1, 0, 2)
		h.Host, h.Targets[0].Host = fmt.Sprint("h", i), fmt.Sprint("h", i)
		if news := l.hold(began, h, all); news != (i < maxHosts) {
			t.Fatalf("host %d: news %v", i, news)
		}
	}
}
