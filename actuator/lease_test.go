package actuator_test

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

func TestTheLeaseEndsInTheBaselines(t *testing.T) {
	h := newHost(t, units(2), trimtab.Unlimited()).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, trimtab.Unlimited(), units(3))))
	if left := h.Holding().LeaseLeft; left != 30 {
		t.Errorf("lease left %v, want 30", left)
	}
	h.pass(30*time.Second - time.Millisecond)
	h.Tick(t.Context())
	h.want(units(1), units(3))
	h.pass(time.Millisecond)
	h.Tick(t.Context())
	h.want(units(2), trimtab.Unlimited())
	if left := h.Holding().LeaseLeft; left != 0 {
		t.Errorf("lease left %v, want 0", left)
	}
	// A plan starts anew from there.
	is(t, h.statuses(h.plan(1, 2, set(0, units(2), units(1)))), trimtab.Written)
}

func TestEveryAcceptedPlanRenewsTheLeaseAndNoRefusedOne(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(2, 1, set(0, units(2), units(1))))
	var last *trimtab.Plan
	for sequence := uint64(2); sequence < 6; sequence++ {
		h.pass(20 * time.Second)
		last = h.plan(2, sequence)
		h.statuses(last)
		h.Tick(t.Context())
		h.want(units(1))
	}
	h.pass(20 * time.Second)
	h.refused(h.plan(1, 9))
	h.statuses(last) // a repeated one is answered, and renews nothing
	h.pass(10 * time.Second)
	h.Tick(t.Context())
	h.want(units(2))
}

func TestStepsOfTheWallClockNeitherEndNorStretchALease(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, jump := range []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 10 * year, -10 * year} {
		h := newHost(t, units(2)).open()
		h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
		h.wall = h.wall.Add(jump)
		h.boot += 29 * time.Second
		h.Tick(t.Context())
		h.want(units(1))
		h.boot += time.Second
		h.Tick(t.Context())
		h.want(units(2))
	}
}

func TestAnActuatorThatWasStoppedInThePlanDoesNotFinishItLate(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.knobs[0].before = func(trimtab.Amount) error { h.pass(time.Minute); return nil }
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)))), trimtab.Written, trimtab.Refused)
	h.Tick(t.Context())
	h.want(units(2), units(2))
}

func TestALeaseOfAnotherBootIsOver(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash()
	h.bootID, h.boot = "boot-2", time.Minute
	h.open()
	h.want(units(2))
	if h.Holding().Epoch != 1 {
		t.Error("the epoch was forgotten")
	}
}

func TestALeaseLivesOnOverACrash(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash()
	h.pass(29 * time.Second)
	h.open()
	h.want(units(1))
	if b := h.Holding().Targets[0].Baseline; b != units(2) {
		t.Errorf("baseline %v, want 2", b)
	}
	h.crash()
	h.pass(time.Second)
	h.open()
	h.want(units(2))
}

func TestAnEndlessLeaseDoesNotOverflow(t *testing.T) {
	h := newHost(t, units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Lease = trimtab.Seconds(math.MaxFloat64)
	h.statuses(p)
	h.pass(time.Hour)
	h.Tick(t.Context())
	h.want(units(1))
}

func TestRestoringShrinksBeforeItGrows(t *testing.T) {
	h := newHost(t, units(1), units(3), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(1), units(3)), set(1, units(3), units(1)), set(2, units(2), units(1.5))))
	sum := 0.0
	for _, k := range h.knobs {
		k.before = func(trimtab.Amount) error {
			sum = 0
			for _, other := range h.knobs {
				v, _ := other.Read(t.Context())
				sum += v.Value
			}
			if sum > 6 {
				t.Errorf("in between the sum is %v", sum)
			}
			return nil
		}
	}
	h.pass(time.Minute)
	h.Tick(t.Context())
	h.want(units(1), units(3), units(2))
}

func TestAGrowWaitsForTheRoomOfAShrinkThatFailedButNotForEver(t *testing.T) {
	h := newHost(t, units(1), units(3), units(2)).open()
	h.statuses(h.plan(1, 1, set(1, units(3), units(1)), set(2, units(2), units(1)), set(0, units(1), units(3))))
	h.want(units(3), units(1), units(1))
	writable := false
	h.knobs[0].before = func(trimtab.Amount) error {
		if writable {
			return nil
		}
		return errors.New("the kernel says no")
	}
	h.pass(31 * time.Second)
	h.Tick(t.Context())
	// 3 cores that w0 does not give back would have been the room of w1 and w2.
	h.want(units(3), units(1), units(2))
	writable = true
	h.pass(time.Second)
	h.Tick(t.Context())
	h.want(units(1), units(3), units(2))

	h.statuses(h.plan(1, 2, set(1, units(3), units(1)), set(0, units(1), units(3))))
	writable = false
	h.pass(31 * time.Second)
	h.Tick(t.Context())
	h.want(units(3), units(1), units(2))
	h.pass(11 * time.Second)
	h.Tick(t.Context())
	h.want(units(3), units(3), units(2)) // others do not pay for it for longer
}

func TestWhatSomebodyElseChangedIsLeftAloneAndReported(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1))))
	h.put(h.knobs[0], units(7))
	h.Tick(t.Context())
	if !strings.Contains(h.problem(0), "somebody else") || h.problem(1) != "" {
		t.Errorf("problems %q, %q", h.problem(0), h.problem(1))
	}
	is(t, h.statuses(h.plan(1, 2, set(0, units(7), units(3)))), trimtab.Refused)
	h.pass(time.Minute)
	h.Tick(t.Context())
	h.want(units(7), units(2))
}

// systemd sets its units' groups again at daemon-reload.
func TestABaselineThatSomebodyElsePutsBackIsReportedUntilResume(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1))))
	h.statuses(h.plan(1, 2, set(0, units(1), units(3))))
	h.put(h.knobs[0], units(2))
	for range 2 {
		h.Tick(t.Context())
		if p := h.problem(0); !strings.Contains(p, "put back by somebody else to its baseline 2, trimtab wrote 3") || !strings.Contains(p, "daemon-reload") || h.problem(1) != "" {
			t.Errorf("problems %q, %q", p, h.problem(1))
		}
	}
	is(t, h.statuses(h.plan(1, 3, set(0, units(2), units(3)))), trimtab.Refused)
	h.command(trimtab.Resume, "")
	is(t, h.statuses(h.plan(1, 4, set(0, units(2), units(3)))), trimtab.Written)
	h.pass(time.Minute)
	h.Tick(t.Context())
	h.want(units(2), units(2))
	if h.problem(0) != "" {
		t.Errorf("problem %q after the lease", h.problem(0))
	}
}

func TestATargetThatIsMadeAnewAtItsBaselineIsTurnedAgain(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	anew := *h.knobs[0]
	anew.Path += ".new"
	h.put(&anew, units(2))
	if err := os.Rename(anew.Path, h.knobs[0].Path); err != nil {
		t.Fatal(err)
	}
	h.Tick(t.Context())
	if h.problem(0) != "" {
		t.Errorf("problem %q", h.problem(0))
	}
	is(t, h.statuses(h.plan(1, 2, set(0, units(2), units(1)))), trimtab.Written)
}

func TestResumeTakesOverWhatSomebodyElseChanged(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.put(h.knobs[0], units(7))
	h.Tick(t.Context())
	h.command(trimtab.Resume, "")
	is(t, h.statuses(h.plan(1, 2, set(0, units(7), units(3)))), trimtab.Written)
	h.pass(time.Minute)
	h.Tick(t.Context())
	h.want(units(7))
}

func TestAChangeBackIsNoLongerForeign(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.put(h.knobs[0], units(7))
	h.Tick(t.Context())
	h.put(h.knobs[0], units(1))
	h.Tick(t.Context())
	if h.problem(0) != "" {
		t.Errorf("problem %q", h.problem(0))
	}
}

// command hands a verb over, now.
func (h *host) command(verb trimtab.Verb, workload string) {
	h.t.Helper()
	if err := h.Command(h.t.Context(), &trimtab.Command{Pool: "p", Verb: verb, Time: h.wall, Workload: workload}); err != nil {
		h.t.Fatal(err)
	}
}

func TestAPauseWritesNothingAndKeepsTheLeaseAlive(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.command(trimtab.Pause, "")
	for range 10 {
		h.pass(14 * time.Second)
		h.Tick(t.Context())
	}
	is(t, h.statuses(h.plan(1, 2, set(0, units(1), units(3)))), trimtab.Refused)
	h.want(units(1))
	if !h.Holding().Paused {
		t.Error("not paused")
	}
	// Over a crash, too.
	h.crash().open()
	if !h.Holding().Paused {
		t.Error("the pause was forgotten")
	}
	h.pass(time.Second)
	h.command(trimtab.Resume, "")
	h.pass(29 * time.Second)
	h.Tick(t.Context())
	h.want(units(1))
	h.pass(time.Second)
	h.Tick(t.Context())
	h.want(units(2))
}

func TestAPauseByAClockThatWasAheadCanBeEnded(t *testing.T) {
	h := newHost(t, units(2)).open()
	if err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: h.wall.AddDate(10, 0, 0)}); err != nil || !h.Holding().Paused {
		t.Fatalf("paused %v, %v", h.Holding().Paused, err)
	}
	h.pass(time.Second)
	h.command(trimtab.Resume, "")
	if h.Holding().Paused {
		t.Error("still paused")
	}
}

func TestAnOldResumeDoesNotEndALaterPause(t *testing.T) {
	h := newHost(t, units(2)).open()
	old := &trimtab.Command{Pool: "p", Verb: trimtab.Resume, Time: h.wall}
	h.pass(time.Second)
	h.command(trimtab.Pause, "")
	if err := h.Command(t.Context(), old); err != nil || !h.Holding().Paused {
		t.Errorf("paused %v, %v", h.Holding().Paused, err)
	}
}

func TestAPauseHoldsEvenWhenItCannotBeStored(t *testing.T) {
	h := newHost(t, units(2))
	h.config.JournalSize = 10
	h.open()
	err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: h.wall})
	if !errors.Is(err, trimtab.ErrRefused) || !h.Holding().Paused {
		t.Errorf("paused %v, %v", h.Holding().Paused, err)
	}
}

func TestReleaseRestoresAWorkloadAndLetsGoOfIt(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1))))
	h.command(trimtab.Release, "w0")
	h.want(units(2), units(1))
	is(t, h.statuses(h.plan(1, 2, set(0, units(2), units(1)))), trimtab.Refused)
	h.crash().open()
	is(t, h.statuses(h.plan(1, 3, set(0, units(2), units(1)))), trimtab.Refused)
	h.command(trimtab.Resume, "")
	is(t, h.statuses(h.plan(1, 4, set(0, units(2), units(1)))), trimtab.Written)
}

func TestARemovedWorkloadIsRestoredAtTheStart(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1)), set(2, units(2), units(1))))
	h.crash()
	h.config.Targets = h.config.Targets[1:]
	h.config.Targets[1].Mode = trimtab.Recommend
	h.open()
	h.want(units(2), units(1), units(2))
}

func TestCloseRestoresUnlessToldToKeep(t *testing.T) {
	for keep, want := range map[bool]trimtab.Amount{false: units(2), true: units(1)} {
		h := newHost(t, units(2))
		h.config.KeepOnStop = keep
		h.open().statuses(h.plan(1, 1, set(0, units(2), units(1))))
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		h.want(want)
		h.refused(h.plan(1, 2))
	}
}

// w0 is kept, w1 is gone from the file; the lease goes on, and so does the order of plans.
func TestAnActuatorHandsOverWhatTheNextOneTurnsAndPutsBackTheRest(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.plan(1, 5, set(0, units(2), units(1)), set(1, units(2), units(1))))
	left := h.Holding().LeaseLeft
	if err := h.HandOver(t.Context(), func(id trimtab.KnobID) bool { return id.Workload == "w0" }, false); err != nil {
		t.Fatal(err)
	}
	h.want(units(1), units(2))
	h.pass(time.Second)
	h.config.Targets = h.config.Targets[:1]
	h.open()
	h.want(units(1), units(2))
	if now := h.Holding(); now.LeaseLeft != left-1 || now.Targets[0].Baseline != units(2) || now.Targets[0].Problem != "" {
		t.Errorf("holding %+v, want a lease of %v left and the baseline 2", now, left-1)
	}
	if h.refused(h.plan(1, 4)) == "" {
		t.Error("an older plan was taken after the hand-over")
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(units(2), units(2))
}

func TestWhatWasTakenForAPlanThatNeverGoesOnIsGivenBack(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Last = false
	h.statuses(p)
	h.pass(4 * time.Second)
	h.Tick(t.Context())
	h.want(units(1), units(2))
	h.pass(time.Second)
	h.Tick(t.Context())
	h.want(units(2), units(2))
	// A step that comes too late finds its shrink undone and does not fit.
	p = h.plan(1, 1, set(1, units(2), units(3)))
	p.Step, p.Capacity = 2, 4
	is(t, h.statuses(p), trimtab.Refused)
}

func TestWhatWasTakenWhereOtherHostsShareThePoolStaysTakenUntilTheLeaseEnds(t *testing.T) {
	h := newHost(t, units(2), units(2))
	h.config.Shared = true
	h.open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Last = false
	h.statuses(p)
	h.pass(29 * time.Second)
	h.Tick(t.Context())
	h.want(units(1), units(2))
	h.pass(time.Second)
	h.Tick(t.Context())
	h.want(units(2), units(2))
}

func TestAPlanThatGoesOnIsNotUndone(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Last = false
	h.statuses(p)
	p = h.plan(1, 1, set(1, units(2), units(3)))
	p.Step, p.Capacity = 2, 4
	is(t, h.statuses(p), trimtab.Written)
	h.pass(10 * time.Second)
	h.Tick(t.Context())
	h.want(units(1), units(3))
}

// Whatever happens in whatever order, knobs end at their baselines once the
// lease is over, but for those that somebody else has turned.
func TestAnyHistoryEndsInTheBaselines(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		baselines := []trimtab.Amount{units(2), trimtab.Unlimited(), units(5)}
		h := newHost(t, baselines...).open()
		want := append([]trimtab.Amount{}, baselines...)
		foreign := map[int]bool{}
		sequence := uint64(0)
		for range rapid.IntRange(1, 12).Draw(r, "events") {
			switch rapid.SampledFrom([]string{"plan", "plan", "crash", "tick", "fail", "foreign"}).Draw(r, "event") {
			case "plan":
				sequence++
				p := h.plan(1, sequence)
				for i, k := range h.knobs {
					v, _ := k.Read(t.Context())
					p.Actions = append(p.Actions, set(i, v, units(float64(rapid.IntRange(1, 8).Draw(r, "set")))))
				}
				h.statuses(p)
			case "crash":
				h.crash().open()
			case "tick":
				h.pass(time.Duration(rapid.IntRange(0, 20).Draw(r, "seconds")) * time.Second)
				h.Tick(t.Context())
			case "fail":
				i := rapid.IntRange(0, 2).Draw(r, "which")
				h.knobs[i].before = func(trimtab.Amount) error { return errors.New("no") }
			case "foreign":
				i := rapid.IntRange(0, 2).Draw(r, "which")
				foreign[i] = true
				want[i] = units(20 + float64(i)) // out of the bounds: never trimtab's
				h.put(h.knobs[i], want[i])
			}
		}
		for _, k := range h.knobs {
			k.before = nil
		}
		h.pass(time.Hour)
		h.Tick(t.Context())
		for i, k := range h.knobs {
			if v, _ := k.Read(t.Context()); v != want[i] {
				// A foreign value before the first write of its knob is the
				// baseline of that write, and the same thing.
				r.Errorf("w%d ends at %v, want %v (foreign %v)", i, v, want[i], foreign[i])
			}
		}
		h.crash()
	})
}

func TestTheHoldingSaysAllThereIs(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(3, 4, set(0, units(2), units(1))))
	got := h.Holding()
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	want := &trimtab.Holding{
		Pool: "p", Host: "h", Life: uint64(h.wall.UnixMicro()), Time: h.wall, Epoch: 3, Sequence: 4, LeaseLeft: 30, Targets: []trimtab.KnobState{{
			KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w0", Resource: "cpu"}, Knob: "file w0", Now: units(1), Since: h.wall, Baseline: units(2), Min: 0.1, Max: 8,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASecondActuatorOnTheSameDirectoryIsRefused(t *testing.T) {
	h := newHost(t, units(2)).open()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := actuator.Open(ctx, h.config); err == nil {
		t.Error("it was opened")
	}
}

// COMMANDS keeps an hour: whoever starts for the first time gets all of it.
func TestOldCommandsInTheirOrderLeaveWhatTheLastOneSaid(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	start := h.wall.Add(-time.Hour)
	for i, c := range []trimtab.Command{
		{Verb: trimtab.Pause}, {Verb: trimtab.Release, Workload: "w0"}, {Verb: trimtab.Resume},
		{Verb: trimtab.Apply, Plan: "1-1"}, {Verb: trimtab.Round}, {Verb: trimtab.Release, Workload: "w1"},
	} {
		c.Pool, c.Time = "p", start.Add(time.Duration(i)*time.Minute)
		if err := h.Command(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	h.want(units(2), units(2))
	got := h.Holding()
	if got.Paused || got.Targets[0].Problem != "" || got.Targets[1].Problem == "" {
		t.Errorf("want w1 released, and nothing else: %+v", got)
	}
}

func TestAGrantToAJobEndsAtItsRestAndNotAtWhatWasFound(t *testing.T) {
	h := newHost(t, trimtab.Unlimited(), units(0.5), units(4))
	rest := units(1)
	for i := range 2 {
		h.config.Targets[i].Rest = &rest
	}
	h.open()
	h.statuses(h.plan(1, 1, set(0, trimtab.Unlimited(), units(2)), set(1, units(0.5), units(3)), set(2, units(4), units(1))))
	h.want(units(2), units(3), units(1))
	h.pass(time.Hour)
	h.Tick(t.Context())
	// The second had less than its rest, and the third has none.
	h.want(units(1), units(0.5), units(4))
}
