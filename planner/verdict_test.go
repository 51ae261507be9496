package planner_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
	"github.com/trimtab/trimtab/planner/fair"
)

// oneMove plays one fall of b, from 4 cores to what its curve says is enough,
// because a needs more. What b then reports is drawn with the given probability.
// It returns whether b was lowered, and whether it was raised again in the round
// after its first report.
func oneMove(t *testing.T, rng *rand.Rand, p float64, requests int) (moved, back bool, why string) {
	pl := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 4, "c": 1.5})
	now := t0.Add(11 * time.Second)
	h := &host{name: "h1", epoch: 1, names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{"a": trimtab.Units(2), "b": trimtab.Units(4), "c": trimtab.Units(1.5)}}
	fine := func(string) (bool, bool) { return false, true }
	var act func(values []trimtab.Value)
	act = func(values []trimtab.Value) {
		for _, plan := range plansOf(values) {
			for _, a := range plan.Actions {
				if a.Workload == "b" && strings.Contains(a.Why.Summary, "taken back") {
					why = a.Why.Summary
				}
			}
			act(pl.Step(now, h.carryOut(plan, now, fine)))
		}
	}
	act(pl.Step(now, asks(now, "c", 1, 0, 1)))
	act(pl.Step(now, asks(now, "b", 1.6, 0, 1)))
	act(pl.Step(now, asks(now, "a", 3, 0, 0.5)))
	low := h.now["b"].Value
	if moved = low < 4-1e-9; !moved {
		return false, false, ""
	}
	now = now.Add(4 * time.Second)
	in := 0.0
	for range requests {
		if rng.Float64() < p {
			in++
		}
	}
	e := asks(now, "b", 1.6, 0, in/float64(requests))
	e.Requests = float64(requests)
	act(pl.Step(now, e))
	now = now.Add(8 * time.Second)
	again := asks(now, "b", 1.6, 0, in/float64(requests))
	again.Requests, again.Inputs[0].Age = float64(requests), 8
	act(pl.Step(now, asks(now, "c", 1, 0, 1)))
	act(pl.Step(now, asks(now, "a", 3, 0, 1)))
	act(pl.Step(now, again))
	act(pl.Step(now, nil))
	return true, h.now["b"].Value > low+1e-9, why
}

// R27: of 10^4 moves a tenth is harmful: each of those is taken back in the next
// round, and at most 2% of the good ones are.
func TestAMoveThatHarmedIsTakenBackInTheNextRoundAndGoodOnesStay(t *testing.T) {
	tr := trial.Start(t, 10_000)
	rng := tr.Rand
	harmful, taken, good, wrongly := 0, 0, 0, 0
	for i := range tr.N {
		tr.Case()
		p := 0.97 // as good as the curve says, at least
		if i%10 == 0 {
			p = 0.3 + 0.3*rng.Float64() // no report of 100 requests takes that for the SLO by chance
		}
		moved, back, why := oneMove(t, rng, p, 100)
		switch {
		case !moved:
			t.Fatal("b was not lowered")
		case i%10 == 0:
			if harmful++; back && why != "" {
				taken++
			}
		default:
			if good++; back {
				wrongly++
			}
		}
	}
	t.Logf("%d harmful moves, %d taken back; %d good moves, %d taken back", harmful, taken, good, wrongly)
	if taken < harmful || float64(wrongly) > 0.02*float64(good) {
		t.Errorf("%d of %d harmful moves taken back, %d of %d good ones", taken, harmful, wrongly, good)
	}
}

// judged plays one fall of b as oneMove does, and then reports of a window, every
// so often, of 20 requests a second that are in time with the given probability
// since the fall, and all before it. It returns after how long the fall was taken
// back, 0: never, and the verdict.
func judged(t *testing.T, window, every time.Duration, p float64) (back time.Duration, verdict trimtab.Verdict) {
	pl := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 4, "c": 1.5})
	now := t0.Add(11 * time.Second)
	h := &host{name: "h1", epoch: 1, names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{"a": trimtab.Units(2), "b": trimtab.Units(4), "c": trimtab.Units(1.5)}}
	fine := func(string) (bool, bool) { return false, true }
	var fell time.Time
	var act func(values []trimtab.Value)
	act = func(values []trimtab.Value) {
		for _, plan := range plansOf(values) {
			for _, v := range plan.Verdicts {
				if v.Workload == "b" && verdict.Workload == "" {
					verdict = v
				}
			}
			for _, a := range plan.Actions {
				if a.Workload == "b" && strings.Contains(a.Why.Summary, "taken back") && back == 0 {
					back = now.Sub(fell)
				}
			}
			act(pl.Step(now, h.carryOut(plan, now, fine)))
		}
	}
	act(pl.Step(now, asks(now, "c", 1, 0, 1)))
	act(pl.Step(now, asks(now, "b", 1.6, 0, 1)))
	act(pl.Step(now, asks(now, "a", 3, 0, 0.5)))
	if fell = now; !(h.now["b"].Value < 4-1e-9) {
		t.Fatal("b was not lowered")
	}
	for now.Sub(fell) < 45*time.Second && back == 0 {
		now = now.Add(every)
		has := map[string]float64{}
		for name, amount := range h.now {
			has[name] = amount.Value
		}
		act(pl.Step(now, holding(now, 1, 0, has)))
		after := min(1, now.Sub(fell).Seconds()/window.Seconds())
		e := asks(now, "b", 1.6, 0, 1-after*(1-p))
		e.Window, e.Requests = trimtab.SecondsOf(window), 20*window.Seconds()
		act(pl.Step(now, e))
		act(pl.Step(now, asks(now, "c", 1, 0, 1)))
		act(pl.Step(now, asks(now, "a", 3, 0, 1)))
		act(pl.Step(now, nil))
	}
	return back, verdict
}

func TestAHarmfulMoveIsTakenBackOnceAWholeWindowLiesBehindIt(t *testing.T) {
	back, verdict := judged(t, 20*time.Second, 5*time.Second, 0.6)
	if back < 20*time.Second || back > 30*time.Second {
		t.Errorf("taken back after %v", back)
	}
	if verdict.Verdict != "worse" || verdict.Requests != 400 || verdict.Performance == nil || *verdict.Performance > 0.61 {
		t.Errorf("%+v: want 400 requests, none from before the move", verdict)
	}
}

func TestRequestsOfOverlappingWindowsJudgeAMoveOnce(t *testing.T) {
	back, verdict := judged(t, 4*time.Second, time.Second, 0.98)
	// 20 a second for the round of 10 s.
	if back != 0 || verdict.Verdict != "as expected" || verdict.Requests < 195 || verdict.Requests > 205 {
		t.Errorf("taken back after %v, %+v: want 200 requests", back, verdict)
	}
}

// The performance that is reported is that of all instances, and so is the move.
func TestAMoveOfSeveralInstancesThatHarmedIsTakenBackAsAWhole(t *testing.T) {
	one, two := at("h1", "b", "0"), at("h2", "b", "0")
	f := newFleet(map[trimtab.KnobID]trimtab.Amount{at("h1", "a", ""): trimtab.Units(2), one: trimtab.Units(2), two: trimtab.Units(2), at("h2", "c", ""): trimtab.Units(1.5)}, nil)
	pl := served(t, fair.NJCPolicy{}, nil)
	now := t0.Add(11 * time.Second)
	f.tell(pl, now)
	why := ""
	var act func(values []trimtab.Value)
	act = func(values []trimtab.Value) {
		for _, plan := range plansOf(values) {
			for _, a := range plan.Actions {
				if a.Workload == "b" && strings.Contains(a.Why.Summary, "taken back") {
					why = a.Why.Summary
				}
			}
			for _, h := range f.hosts() {
				act(pl.Step(now, f.carryOut(plan, h, now)))
			}
		}
	}
	act(pl.Step(now, asks(now, "c", 1, 0, 1)))
	act(pl.Step(now, asks(now, "b", 1.6, 0, 1)))
	act(pl.Step(now, asks(now, "a", 3, 0, 0.5)))
	low := f.now[one].Value
	if low >= 2 || f.now[two].Value >= 2 {
		t.Fatalf("b has %v and %v, which was not lowered", f.now[one], f.now[two])
	}
	for range 2 {
		now = now.Add(6 * time.Second)
		f.tell(pl, now)
		act(pl.Step(now, asks(now, "c", 1, 0, 1)))
		act(pl.Step(now, asks(now, "a", 3, 0, 1)))
		act(pl.Step(now, asks(now, "b", 1.6, 0, 0.4)))
		act(pl.Step(now, nil))
	}
	if f.now[one].Value <= low || f.now[two].Value <= low || why == "" {
		t.Errorf("b has %v and %v after it was lowered to %v each, and 40%% of its requests were in time: %q", f.now[one], f.now[two], low, why)
	}
}
