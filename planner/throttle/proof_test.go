package throttle

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// "In batch-only scenario, the throttle will be turned off" (3.3).
func TestInModeUPNothingIsThrottledAndAnomaliesStopNoStart(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.ticks(3)
	if len(h.throttled) == 0 {
		t.Fatal("in mode RP it is")
	}
	h.mode = UP
	h.offer("b", 1)
	if d := h.tick(); len(d.Throttled) != 0 || len(d.Start) != 1 {
		t.Errorf("%+v", d)
	}
}

// "… by temporarily blocking more tasks from being launched from the queue" (6.2).
func TestOnAnAnomalyNoTaskStartsUntilItIsCalmAgain(t *testing.T) {
	c := one()
	c.Quiet = 5 * time.Second
	h := newHost(t, c)
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.offer("b", 1)
	for i := range 20 {
		d := h.tick()
		if guilty := h.tasksOf(Guilty); len(guilty) == 0 {
			if len(d.Start) != 0 || d.Blocked != Anomalous {
				t.Fatalf("tick %d: %+v", i, d)
			}
		} else if len(d.Start) > 0 {
			if !slices.Equal(started(d), []string{"b"}) || i < 6 {
				t.Errorf("tick %d: %+v", i, d)
			}
			return
		}
	}
	t.Error("b did not start")
}

// "We prefer to first preempt speculative tasks pertaining to 1st class cores and
// having least execution progress" (6.2).
func TestSuspectsAreTriedFirstClassFirstThenTheLeastProgress(t *testing.T) {
	h := newHost(t, one())
	h.add("second, little", Second, 0.1)
	h.add("first, much", First, 0.9)
	h.add("second, much", Second, 0.8)
	h.add("first, little", First, 0.2)
	h.add("second, unknown", Second, math.NaN())
	h.base["shop"] = 2 // nobody's fault
	h.ticks(30)
	want := []string{"first, little", "first, much", "second, unknown", "second, little", "second, much"}
	if got := h.tasksOf(Accused)[:5]; !slices.Equal(got, want) {
		t.Errorf("accused %v, want %v", got, want)
	}
}

func TestOneWhoseActivityFollowsTheSignalIsTriedBeforeTheOrder(t *testing.T) {
	h := newHost(t, one())
	for i := range 6 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
		h.tasks[i].Activity = 1
	}
	for i := range 12 { // the last in the order does something every third tick
		h.tasks[5].Activity = float64(i % 3 / 2)
		h.base["shop"] = 1 + 0.1*float64(i%3/2)
		h.tick()
	}
	h.hurts("5", "shop", 1)
	h.tasks[5].Activity = 1
	h.ticks(5)
	if got := h.tasksOf(Accused); len(got) != 1 || got[0] != "5" {
		t.Errorf("accused %v", got)
	}
}

func TestWhenTheVictimRecoversTheAccusedIsGuiltyAndStaysThrottledWithALease(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0.1)
	h.add("b", First, 0.5)
	h.hurts("a", "shop", 1)
	began := h.now
	h.ticks(6)
	if got := h.tasksOf(Guilty); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("guilty %v", got)
	}
	th := h.throttled["a"]
	if !th.Guilty || th.Share != 0 || th.Victim != "shop" || th.Signal != "cpi" || !th.Until.After(began.Add(30*time.Second)) || len(h.throttled) != 1 {
		t.Errorf("%+v", h.throttled)
	}
	n := h.Counts()
	if n.Anomalies != 1 || n.Accusations != 1 || n.Proofs != 1 || n.FalseAccusations != 0 || n.Recoveries != 1 || n.Recovering <= 0 || n.Recovering > 5*time.Second {
		t.Errorf("%+v", n)
	}
}

func TestWhenItDoesNotTheAccusedIsReleasedAndTheNextIsTried(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0.1)
	h.add("b", First, 0.5)
	h.hurts("b", "shop", 1)
	h.ticks(10)
	if fmt.Sprint(h.tasksOf(Accused), h.tasksOf(Innocent), h.tasksOf(Guilty)) != "[a b] [a] [b]" {
		t.Errorf("%+v", h.events)
	}
	if _, is := h.throttled["a"]; is || h.Counts().FalseAccusations != 1 {
		t.Errorf("throttled %v, %+v", h.throttled, h.Counts())
	}
}

func TestAnInnocentTaskIsReleasedWithinTheStatedNumberOfSamples(t *testing.T) {
	c := one()
	c.Proof.Watch, c.Proof.MissedGuilt = 4, 1e-9 // the samples, not the evidence, end it
	h := newHost(t, c)
	h.add("a", First, 0)
	h.add("b", First, 1)
	h.base["shop"] = 2
	for range 30 {
		h.tick()
		for _, e := range h.events {
			if e.Kind == Innocent && e.Samples > 5 { // two come with each tick
				t.Fatalf("%+v", e)
			}
		}
	}
	if len(h.tasksOf(Innocent)) < 2 {
		t.Errorf("%+v", h.events)
	}
}

func TestGuiltIsRememberedByJob(t *testing.T) {
	h := newHost(t, one())
	for i := range 8 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
	}
	h.hurts("7", "shop", 1)
	h.ticks(40)
	if h.tasksOf(Guilty)[0] != "7" {
		t.Fatalf("%+v", h.events)
	}
	first := h.throttled["7"].Until
	if h.offer("another", 1); h.Policy.queue[0].Job != "job of another" {
		t.Fatal()
	}
	h.Offer(h.now, Request{ID: "of 7", Job: "job of 7", Wants: []float64{1, 1}, Priority: 9, Expires: h.now.Add(time.Hour)})
	if d := h.tick(); !slices.Equal(started(d), []string{"another"}) { // that of the job that is held waits
		t.Errorf("started %v", started(d))
	}
	h.Cancel("of 7")
	h.events = nil
	for len(h.tasksOf(Guilty)) == 0 && h.now.Before(first.Add(time.Minute)) {
		h.tick()
	}
	// Next time it is the first to be accused, and its job is held twice as long.
	if got := h.tasksOf(Accused); len(got) != 1 || got[0] != "7" {
		t.Errorf("accused %v", got)
	}
	if left := h.throttled["7"].Until.Sub(h.now); left != time.Minute {
		t.Errorf("held for %v", left)
	}
}

func TestAGuiltyTaskIsReleasedWhenItsLeaseEnds(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.ticks(6)
	delete(h.hurt, "a") // it changed
	h.ticks(40)
	if len(h.throttled) != 0 || !slices.Equal(h.tasksOf(Released), []string{"a"}) {
		t.Errorf("%+v", h.events)
	}
	h.ticks(60)
	if n := h.Counts(); n.Anomalies != 1 || n.Accusations != 1 {
		t.Errorf("%+v", n)
	}
	if j := h.jobs["job of a"]; j.guilty != 1 || j.innocent != 1 { // it did no harm on parole
		t.Errorf("%+v", j)
	}
}

func TestNoTaskStaysThrottledForLongerThanAllowedTheTrialIncluded(t *testing.T) {
	c := one()
	c.Proof.Hold, c.Proof.MaxHold = 8*time.Second, 8*time.Second
	h := newHost(t, c)
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	run, longest := 0, 0
	for range 60 {
		if len(h.tick().Throttled) == 0 {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	if longest != 8 || len(h.tasksOf(ThrottleCapped)) == 0 {
		t.Errorf("throttled for %d s in a row: %+v", longest, h.events)
	}
}

func TestSeveralVictimsWatchTheSameTrial(t *testing.T) {
	h := newHost(t, one())
	h.lras = []string{"shop", "search", "mail"}
	for i := range 5 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
	}
	h.hurts("2", "shop", 1)
	h.hurts("2", "mail", 1)
	h.hurts("4", "search", 1)
	h.ticks(30)
	if got := h.tasksOf(Guilty); !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("guilty %v: %+v", got, h.events)
	}
	// Each innocent one was tried once, for all of them.
	if n := h.Counts(); n.Anomalies != 3 || n.Recoveries != 3 || n.FalseAccusations != 3 {
		t.Errorf("%+v", n)
	}
}

func TestAVictimThatRecoversWhileNothingWasThrottledIsNoise(t *testing.T) {
	c := one()
	c.Proof.Confirm = 4
	h := newHost(t, c)
	h.add("a", First, 0)
	h.ticks(3)
	h.base["shop"] = 2
	h.tick()
	h.base["shop"] = 1
	h.ticks(5)
	if n := h.Counts(); n.Anomalies != 1 || n.Noise != 1 || n.Accusations != 0 || n.Recoveries != 0 {
		t.Errorf("%+v", n)
	}
}

func TestTwoThatHurtOnlyTogetherAreFoundTogether(t *testing.T) {
	h := newHost(t, one())
	for i := range 8 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
	}
	h.hurts("1", "shop", 0.5) // each alone is enough to hurt
	h.hurts("6", "shop", 0.5)
	h.ticks(80)
	if got := h.tasksOf(Jointly); !slices.Contains(got, "1") || !slices.Contains(got, "6") {
		t.Errorf("jointly %v: %+v", got, h.events)
	}
}

func TestAnAnomalyThatTasksDoNotCauseEndsInABackOff(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0)
	h.add("b", First, 0.5)
	h.base["shop"] = 2
	h.ticks(300)
	n := h.Counts()
	if n.NotOurs < 2 || n.NotOurs > 5 || len(h.tasksOf(Guilty)) != 0 { // after 30 s, 60 s, 120 s
		t.Errorf("%+v", n)
	}
	if n.Trials != 3+n.NotOurs-1 { // each alone and both; from the second time on both at once
		t.Errorf("%+v", n)
	}
	if n.Accusations != n.FalseAccusations+n.Undecided {
		t.Errorf("%+v", n)
	}
	if h.blocked(h.observe(), true) != Anomalous {
		t.Error("nothing starts beside it")
	}
}

func TestAnLRAOfWhichNothingIsHeardStopsStartsAndEndsTheTrial(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.ticks(2)
	if len(h.throttled) != 1 {
		t.Fatalf("%+v", h.events)
	}
	h.offer("b", 1)
	var d Decision
	for range 40 {
		o := h.observe()
		o.LRAs[0].Samples = nil
		d = h.Decide(o)
	}
	if len(d.Throttled) != 0 || len(d.Start) != 0 || d.Blocked != Unwatched || h.Counts().Undecided != 1 {
		t.Errorf("%+v %+v", d, h.Counts())
	}
}

func TestTheFirstProofAgainstAJobIsControlled(t *testing.T) {
	c := one()
	c.Proof.NoControl = false
	h := newHost(t, c)
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	var throttled []bool
	for len(h.tasksOf(Guilty)) == 0 && len(throttled) < 20 {
		throttled = append(throttled, len(h.tick().Throttled) > 0)
	}
	// Throttled, let go, throttled again.
	if got := slices.Compact(throttled); !slices.Equal(got, []bool{true, false, true}) || h.Counts().Accusations != 1 {
		t.Errorf("throttled %v, %+v", got, h.events)
	}
	until := h.throttled["a"].Until
	for h.now.Before(until) {
		h.tick()
	}
	h.events, throttled = nil, nil // the second time it is known
	for len(h.tasksOf(Guilty)) == 0 && len(throttled) < 20 {
		throttled = append(throttled, len(h.tick().Throttled) > 0)
	}
	if got := slices.Compact(throttled); !slices.Equal(got, []bool{false, true}) && !slices.Equal(got, []bool{true}) {
		t.Errorf("throttled %v, %+v", got, h.events)
	}
}

func TestATaskOnTrialWhileAnAnomalyEndsIsClearedByTheControl(t *testing.T) {
	c := one()
	c.Proof.NoControl = false
	h := newHost(t, c)
	h.add("a", First, 0)
	h.base["shop"] = 2
	h.tick()
	h.base["shop"] = 1
	h.ticks(10)
	if n := h.Counts(); n.Proofs != 0 || n.FalseAccusations != 1 || len(h.throttled) != 0 {
		t.Errorf("%+v %+v", n, h.events)
	}
}

func TestATaskOnTrialThatEndsLeavesNobodyGuilty(t *testing.T) {
	h := newHost(t, one())
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.ticks(2)
	h.tasks = nil
	h.ticks(5)
	if n := h.Counts(); n.Accusations != 1 || n.Undecided != 1 || n.Proofs != 0 {
		t.Errorf("%+v", n)
	}
}

func TestATimeThatGoesBackReleasesAllAndOneThatStandsStillDoesSoon(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -time.Hour, "still": 0} {
		h := newHost(t, one())
		h.add("a", First, 0)
		h.hurts("a", "shop", 1)
		h.ticks(10)
		if len(h.throttled) != 1 {
			t.Fatalf("%+v", h.events)
		}
		o := h.observe()
		o.Time = o.Time.Add(-time.Second + step)
		for i := range mostStuck + 2 {
			d := h.Decide(o)
			if released := len(d.Throttled) == 0; released != (step < 0 || i > mostStuck-1) {
				t.Errorf("%s, tick %d: %+v", name, i, d.Throttled)
			}
			if step < 0 {
				break
			}
		}
	}
}

func TestACutTaskKeepsItsShare(t *testing.T) {
	c := one()
	c.Proof.Cut = 0.2
	h := newHost(t, c)
	h.add("a", First, 0)
	h.hurts("a", "shop", 1)
	h.ticks(2)
	if h.throttled["a"].Share != 0.2 {
		t.Errorf("%+v", h.throttled)
	}
}
