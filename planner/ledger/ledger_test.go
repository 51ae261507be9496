package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// knob is a ledger with one knob, read back at 2 under plan 1-1, and a grow to
// 5 that step 2 of plan 1-2 released.
func knob(t *testing.T) (*Ledger, *Knob) {
	t.Helper()
	l := New(config)
	l.Hold(began, said(1, 0, 2))
	k := l.Knob(trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"})
	k.Release(StepID{1, 2, 2}, trimtab.Units(5), began.Add(time.Minute))
	return l, k
}

// config is of a pool whose only workload is w.
var config = Config{Pool: "p", Lease: time.Minute, Most: func(workload, _ string) (float64, bool) { return 8, workload == "w" }}

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

func believes(t *testing.T, l *Ledger, e *Knob, want float64) {
	t.Helper()
	if got := l.Believed(e, began); got != want {
		t.Errorf("believes %v, want %v", got, want)
	}
}

func TestAnAnswerToAnEarlierStepKeepsTheGrowOfALaterOne(t *testing.T) {
	l, e := knob(t)
	l.Read(answered(1, 1, 2))
	believes(t, l, e, 5)
	l.Read(answered(2, 2, 2))
	believes(t, l, e, 2)
}

func TestARefusedRepetitionAnswersNoGrow(t *testing.T) {
	l, e := knob(t)
	refused := answered(2, 1, 2)
	refused.Refused = "stale: plan 1-2 step 2 was accepted"
	l.Read(refused)
	believes(t, l, e, 5)
}

func TestAnOlderHoldingDoesNotOverwriteAnOutcome(t *testing.T) {
	l, e := knob(t)
	l.Read(answered(2, 3, 4))
	for _, older := range []*trimtab.Holding{said(1, 4, 2), said(2, 2, 2)} {
		older.Targets[0].Problem = "foreign"
		if !l.Hold(began, older) {
			t.Fatal("a holding newer than the last is news")
		}
		believes(t, l, e, 4)
		if e.Held.Problem != "foreign" {
			t.Error("only the value is older, the rest of the holding is news")
		}
	}
	l.Hold(began, said(2, 5, 3))
	believes(t, l, e, 3)
	l.Read(answered(2, 4, 6))
	believes(t, l, e, 3)
}

// A holding proves what became of plans before the one that its host accepted,
// and nothing of that one's own steps, which it may not have seen yet.
func TestAHoldingAnswersOnlyTheGrowsOfEarlierPlans(t *testing.T) {
	l, e := knob(t)
	l.Hold(began, said(2, 1, 2))
	believes(t, l, e, 5)
	l.Hold(began, said(3, 2, 2))
	believes(t, l, e, 2)
}

// late is the outcome of a write to wanted that is not in force.
func late(s int, wanted, inForce float64) *trimtab.Outcome {
	o, effective := answered(2, s, wanted), trimtab.Units(inForce)
	o.Results[0].Status, o.Results[0].Effective = trimtab.Pending, &effective
	return o
}

func TestAPendingKnobCountsAsTheLargerOfWhatItIsSetToAndWhatIsInForce(t *testing.T) {
	l, e := knob(t)
	l.Read(late(1, 1, 2)) // a fall: nothing is free yet
	believes(t, l, e, 2)
	l.Read(late(2, 5, 2)) // a rise: its room is taken
	believes(t, l, e, 5)
	l.Hold(began, said(2, 1, 7))
	believes(t, l, e, 5) // older than the outcome
	l.Hold(began, said(2, 3, 4))
	believes(t, l, e, 4) // in force
}

func TestAHostWithoutAKnobOfThePoolIsNotHeard(t *testing.T) {
	l := New(config)
	stranger := said(1, 0, 2)
	stranger.Host, stranger.Paused, stranger.Targets[0].Workload = "stranger", true, "other"
	if l.Hold(began, stranger) || l.Paused() || len(l.hosts) > 0 || len(l.knobs) > 0 {
		t.Errorf("heard: %+v", l.hosts)
	}
	known := said(1, 0, 2)
	known.Paused = true
	if !l.Hold(began, known) || !l.Paused() {
		t.Error("a host of the pool says that it is paused, and is not heard")
	}
	// It is heard still when its last knob goes: that is news.
	known = said(2, 1, 2)
	known.Paused, known.Targets = true, nil
	if !l.Hold(began, known) || !l.knobs[trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}].gone || l.Paused() {
		t.Error("a host that lost its knob was not heard, or still pauses the pool")
	}
}

func TestInventedHostsAreBounded(t *testing.T) {
	l := New(config)
	for i := range maxHosts + 10 {
		h := said(1, 0, 2)
		h.Host, h.Targets[0].Host = fmt.Sprint("h", i), fmt.Sprint("h", i)
		if news := l.Hold(began, h); news != (i < maxHosts) {
			t.Fatalf("host %d: news %v", i, news)
		}
	}
}

func TestThePlanIsForTheHostsThatHaveKnobs(t *testing.T) {
	l := New(config)
	for _, name := range []string{"h2", "h1", "h3"} {
		h := said(1, 0, 2)
		h.Host, h.Targets[0].Host = name, name
		l.Hold(began, h)
	}
	gone := said(2, 1, 2)
	gone.Host, gone.Targets = "h3", nil
	l.Hold(began, gone)
	if got := fmt.Sprint(l.Hosts()); got != "[h1 h2]" {
		t.Errorf("hosts %s, want h1 and h2: h3 has no knob any more", got)
	}
}

// two returns a ledger of a shared pool with two hosts, each of which gives 2 of a
// baseline of 4 on a lease of which left is left.
func two(left time.Duration) *Ledger {
	c := config
	c.Shared = true
	l := New(c)
	l.Begin(1, began)
	l.Issue(1, began)
	for _, name := range []string{"a", "b"} {
		h := said(1, 1, 2)
		h.Epoch, h.Sequence, h.LeaseLeft = 1, 1, trimtab.SecondsOf(left)
		h.Host, h.Targets[0].Host, h.Targets[0].Baseline = name, name, trimtab.Units(4)
		l.Hold(began, h)
	}
	return l
}

// Where no host is heard a grow may yet reach one whose lease has ended.
func TestAGrowFindsTheBaselineOfEveryHostThatMayHaveLostItsLease(t *testing.T) {
	l := two(config.Lease)
	if now := began.Add(config.Lease / 4); l.Reserve(l.Knobs()[0], now) != 2 {
		t.Error("a host that holds its lease counts as it says")
	}
	now := began.Add(config.Lease * 3 / 4)
	for _, k := range l.Knobs() {
		if l.Lost(k, now) || l.Believed(k, now) != 2 || l.Reserve(k, now) != 4 {
			t.Errorf("%s: lost %v, believed %v, reserved %v: want that nothing is taken back, and nothing is given either", k.Host, l.Lost(k, now), l.Believed(k, now), l.Reserve(k, now))
		}
	}
}

// The lease that a former leader gave ends when it ends, whatever the new one knows.
func TestALeaseOfAFormerLeaderIsOverWhenItsHostSaid(t *testing.T) {
	l := two(config.Lease / 2)
	l.Begin(2, began)
	if l.Lost(l.Knobs()[0], began) {
		t.Error("its lease holds")
	}
	if now := began.Add(config.Lease * 2 / 5); !l.Lost(l.Knobs()[0], now) {
		t.Error("its lease ends, and it has accepted no plan of this term")
	}
	home := two(0)
	home.Begin(2, began)
	if home.Lost(home.Knobs()[0], began.Add(config.Lease/10)) {
		t.Error("a host at its baselines has nothing that could end")
	}
}

// A holding and an answer may bear the same time: the answer was read last.
func TestAHoldingOfTheSameInstantDoesNotOverwriteAnOutcome(t *testing.T) {
	l, e := knob(t)
	l.Read(answered(2, 3, 5))
	l.Hold(began, said(2, 3, 2))
	believes(t, l, e, 5)
}

func TestAnAnswerByAClockThatWasSetBackLeavesWhatItRaisedCounted(t *testing.T) {
	l, e := knob(t)
	l.Hold(began, said(2, 60, 2))
	l.Read(answered(2, 1, 5)) // after it, by a clock that is a minute behind by now
	believes(t, l, e, 5)
	l.Hold(began, said(3, 2, 5)) // the next plan that it accepts
	believes(t, l, e, 5)
	if got := e.Now(); got != 5 {
		t.Errorf("it is known to be at %v, want 5", got)
	}
}

func TestKnobsThatAHostInventsAreBoundedAndCounted(t *testing.T) {
	c := config
	c.Shared = true
	l := New(c)
	other := said(1, 0, 2)
	other.Host, other.Targets[0].Host = "other", "other"
	l.Hold(began, other)
	for s := range 5 { // others every second
		h := said(1, s, 2)
		h.Targets = slices.Repeat(h.Targets, maxKnobs)
		for i := range h.Targets {
			h.Targets[i].Instance = fmt.Sprint(s, "-", i)
		}
		l.Hold(began.Add(time.Duration(s)*time.Second), h)
	}
	if len(l.knobs) != maxKnobs+1 || l.Excess != 4*maxKnobs {
		t.Errorf("%d knobs are known, %d were too many, want %d and %d", len(l.knobs), l.Excess, maxKnobs+1, 4*maxKnobs)
	}
	l.Prune(began.Add(c.Lease+10*time.Second), c.Lease)
	if len(l.knobs) != 1 {
		t.Errorf("%d knobs are known after those that are gone were forgotten, want that of the other host", len(l.knobs))
	}
}

// What a host has beyond what it says it has takes nothing from the others.
func TestAHostThatGivesMoreThanItHasTakesNothingFromOthers(t *testing.T) {
	l := two(config.Lease)
	for _, name := range []string{"a", "b"} {
		h := said(1, 2, map[string]float64{"a": 1e18, "b": 3}[name])
		h.Host, h.Targets[0].Host, h.Capacity = name, name, map[string]float64{"cpu": 4}
		l.Hold(began, h)
	}
	counted := func(k *Knob) float64 { return l.Believed(k, began) }
	c := l.Count("cpu", counted)
	if left := c.Left(8); left != 1 {
		t.Errorf("%v of 8 is left, want 1: a gives the 4 that it has, b 3", left)
	}
	if room := c.Headroom(); room[l.host("b").at] != 1 || room[l.host("a").at] > -1e17 {
		t.Errorf("left on the hosts: %v", room)
	}
}

// A pool whose only host has other pools, too, has what these leave.
func TestAHostThatIsDividedBoundsAPoolWithNoOther(t *testing.T) {
	for divided, want := range map[bool]float64{false: 8, true: 3} {
		l := New(config)
		h := said(1, 1, 2)
		h.Capacity, h.Divided = map[string]float64{"cpu": 3}, divided
		l.Hold(began, h)
		c := l.Count("cpu", func(k *Knob) float64 { return l.Believed(k, began) })
		if got, left := l.Capacity("cpu", 8), c.Left(l.Capacity("cpu", 8)); got != want || left != want-2 {
			t.Errorf("divided %v: capacity %v with %v left, want %v", divided, got, left, want)
		}
	}
}

// lives plays holdings of host h from these lives, a second apart, and reports
// whether two agents were seen.
func lives(ids ...uint64) (*Ledger, bool) {
	l := New(config)
	seen := false
	for s, id := range ids {
		h := said(1, s, 2)
		h.Life = id
		l.Hold(began.Add(time.Duration(s)*time.Second), h)
		seen = seen || l.Duplicate(l.Knobs()[0], began.Add(time.Duration(s)*time.Second))
	}
	return l, seen
}

func TestTwoAgentsOfOneNameAreSeenWithinSecondsAndCounted(t *testing.T) {
	for _, ids := range [][]uint64{{1, 2, 1, 2, 1}, {2, 1, 1, 2, 2, 1, 2}, {1, 2, 3, 1, 2, 3}} {
		if l, seen := lives(ids...); !seen || l.Returns == 0 {
			t.Errorf("%v: seen %v, counted %d", ids, seen, l.Returns)
		}
	}
	l, _ := lives(1, 2, 1, 2, 1)
	if l.Duplicate(l.Knobs()[0], began.Add(config.Lease+10*time.Second)) {
		t.Error("one of them fell silent a lease ago")
	}
	// The clock of one is behind, so that all it says looks late.
	l = New(config)
	for s := range 8 {
		h := said(1, s-600*(s%2), 2)
		h.Life = uint64(1 + s%2)
		l.Hold(began.Add(time.Duration(s)*time.Second), h)
	}
	if !l.Duplicate(l.Knobs()[0], began.Add(8*time.Second)) {
		t.Error("two agents were not seen where one has a clock that is ten minutes behind")
	}
}

func TestAnAgentThatStartsAgainIsNoSecondOne(t *testing.T) {
	for _, ids := range [][]uint64{{0, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8}, {5, 1, 1, 1, 1}, {1, 1, 2, 1, 2, 2, 2}, {0, 1, 0, 1, 0, 1}} {
		if l, seen := lives(ids...); seen || l.Returns > 0 {
			t.Errorf("%v: taken for two agents", ids)
		}
	}
}
