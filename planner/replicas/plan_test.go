package replicas

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/behavior"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// shop is a workload of n instances of a size that all serve.
func shop(n int, size, need float64) *Workload {
	w := &Workload{Name: "shop", Need: Need{need, need}, Replicas: n,
		Size: Size{Min: 0.1, Max: 2, Step: 0.01}, Count: Count{Min: 1, Max: 20}}
	for range n {
		w.Instances = append(w.Instances, Instance{InForce: size, Asked: size, Ready: true})
	}
	return w
}

func endless() *Headroom { return &Headroom{Pool: math.Inf(1)} }

// decided is the decision of a workload that was never seen before.
func decided(t *testing.T, w *Workload, room *Headroom) Decision {
	t.Helper()
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	return w.Decide(noon(), &State{}, room)
}

func says(d Decision, code Code) bool {
	return slices.ContainsFunc(d.Held, func(h Held) bool { return h.Code == code })
}

func TestSizeInPlaceGoesFirst(t *testing.T) {
	d := decided(t, shop(4, 0.5, 6), endless())
	if d.Replicas != 4 || d.Size != 1.5 || d.Sizes[3] != 1.5 {
		t.Errorf("%+v, want 4 of 1.5", d)
	}
}

func TestMoreReplicasComeWhenSizeIsAtItsMaximum(t *testing.T) {
	d := decided(t, shop(4, 1.5, 9), endless())
	if d.Replicas != 5 || d.Size != 2 {
		t.Errorf("%+v, want 5, and 2 each meanwhile", d)
	}
}

func TestMoreReplicasComeWhenTheHostsOfItsInstancesAreFull(t *testing.T) {
	w := shop(4, 1, 6)
	for i := range w.Instances {
		w.Instances[i].Host = []string{"a", "b"}[i/2]
	}
	d := decided(t, w, &Headroom{Hosts: map[string]float64{"a": 8, "b": 0.4}, Pool: 100})
	if d.Replicas != 5 || d.Size != 1.2 {
		t.Errorf("%+v, want 5 of 1.2: host b has room for 0.2 each", d)
	}
}

func TestSparesAreThereWhenFewerLargerOnesWouldRiskTooMuchAtOnce(t *testing.T) {
	w := shop(2, 1, 3)
	w.Count.Spare = 1
	if d := decided(t, w, endless()); d.Replicas != 3 {
		t.Errorf("%+v, want 3: with one lost, two serve 3", d)
	}
}

func TestAStartIsAskedForAheadOfTheLoadThatItWillServe(t *testing.T) {
	w := shop(4, 1, 5)
	w.Need.Start = 9.5
	if d := decided(t, w, endless()); d.Replicas != 5 || d.Size != 1.25 {
		t.Errorf("%+v, want 5 of 1.25", d)
	}
}

func TestFewerReplicasComeOnlyAfterTheStabilisationWindowAndOnceOthersHaveGrown(t *testing.T) {
	w, s := shop(6, 0.5, 3), &State{}
	for at := 0; at <= 300; at += 15 {
		d := w.Decide(noon().Add(time.Duration(at)*time.Second), s, endless())
		switch {
		case at <= 300 && d.Replicas != 6:
			t.Fatalf("at %d s: %+v", at, d)
		case d.Size != 0.5:
			t.Fatalf("at %d s: %+v, want 0.5", at, d)
		}
	}
	d := w.Decide(noon().Add(315*time.Second), s, endless())
	if d.Replicas != 2 || d.Size != 1.5 || d.Sizes[0] != 1.5 {
		t.Errorf("%+v, want 2, and 1.5 each before others go", d)
	}
}

func TestAFallIsNotMadeWhereThereIsNoRoomForTheOthersToGrowBefore(t *testing.T) {
	w, s := shop(6, 0.5, 3), &State{Count: behavior.State{Seen: true}}
	d := w.Decide(noon(), s, &Headroom{Pool: 0.7})
	if d.Replicas != 5 || d.Size != 0.6 {
		t.Errorf("%+v, want 5: six of 0.6 fit into 3.7, six of 0.75 do not", d)
	}
}

func TestThatWhichCannotBeVerticalOnlyUsesTheOtherKnob(t *testing.T) {
	w := shop(4, 0.5, 3)
	w.Size.Fixed = true
	if d := decided(t, w, endless()); d.Replicas != 6 || d.Size != 0.5 {
		t.Errorf("%+v, want 6 of 0.5", d)
	}
	w.Size.Fixed, w.Size.ReadOnly = false, "VPA shop/shop"
	if d := decided(t, w, endless()); d.Replicas != 6 || d.Size != 0.5 || !says(d, Owned) {
		t.Errorf("%+v, want 6 of 0.5, and who owns the size", d)
	}
}

func TestThatWhichCannotBeHorizontalOnlyUsesTheOtherKnob(t *testing.T) {
	w := shop(2, 0.5, 9)
	w.Count.Fixed = true
	if d := decided(t, w, endless()); d.Replicas != 2 || d.Size != 2 {
		t.Errorf("%+v, want 2 of 2", d)
	}
	w.Count.Fixed, w.Count.ReadOnly = false, "HPA shop/shop"
	d := decided(t, w, endless())
	if d.Replicas != 2 || d.Size != 2 || d.Advised.Replicas != 5 || !says(d, Owned) {
		t.Errorf("%+v, want 2 of 2, and 5 advised", d)
	}
}

func TestABlockOfTheUserLimitsTheNumber(t *testing.T) {
	w := shop(4, 2, 30)
	w.Count.Behavior = &behavior.Behavior{Up: &behavior.Rules{Policies: []behavior.Policy{{Type: behavior.Pods, Value: 2, PeriodSeconds: 60}}}}
	if d := decided(t, w, endless()); d.Replicas != 6 || !says(d, Behaves) {
		t.Errorf("%+v, want 6", d)
	}
}

func TestABlockOfTheUserLimitsTheSizeInPercent(t *testing.T) {
	w := shop(4, 1, 7)
	w.Size.Behavior = &behavior.Behavior{Up: &behavior.Rules{Policies: []behavior.Policy{{Type: behavior.Percent, Value: 20, PeriodSeconds: 60}}}}
	d := decided(t, w, endless())
	if math.Abs(d.Size-1.2) > 1e-9 || !says(d, Behaves) {
		t.Errorf("%+v, want 1.2", d)
	}
	w.Size.Behavior.Up.Policies[0].Type = behavior.Pods
	if err := w.Validate(); err == nil || !strings.Contains(err.Error(), "limits replicas") {
		t.Errorf("error %v", err)
	}
}

func TestAStepTakesNoMoreThanDisruptionBudgetsAllow(t *testing.T) {
	none, two := 0, 2
	for _, c := range []struct {
		may  *int
		want int
	}{{nil, 2}, {&two, 8}, {&none, 10}} {
		w := shop(10, 0.5, 3)
		w.Limits.Disruptable = c.may
		d := w.Decide(noon(), &State{Count: behavior.State{Seen: true}}, endless())
		if d.Replicas != c.want {
			t.Errorf("%+v, want %d", d, c.want)
		}
	}
}

func TestAQuotaIsClampedToAndNamed(t *testing.T) {
	w, one := shop(4, 2, 30), 1
	w.Limits.Pods = &one
	if d := decided(t, w, endless()); d.Replicas != 5 || !says(d, Quota) {
		t.Errorf("pods: %+v, want 5", d)
	}
	w, room := shop(4, 1, 30), 2.0
	w.Limits.Amount = &room
	if d := decided(t, w, endless()); d.Replicas != 4 || d.Size != 1.5 || !says(d, NoHeadroom) {
		t.Errorf("amount: %+v, want 4 of 1.5", d)
	}
}

func TestWhileARolloutRunsNothingFallsAndRisesGoThrough(t *testing.T) {
	w := shop(6, 1, 3)
	w.Rollout = true
	d := w.Decide(noon(), &State{Count: behavior.State{Seen: true}}, endless())
	if d.Replicas != 6 || d.Sizes[0] != 1 || !says(d, RolledOut) {
		t.Errorf("fall: %+v", d)
	}
	w = shop(4, 1, 20)
	w.Rollout = true
	if d := decided(t, w, endless()); d.Replicas != 8 || d.Sizes[0] != 2 { // twice as many without a block
		t.Errorf("rise: %+v, want 8 of 2", d)
	}
}

func TestItGoesToZeroOnlyWhereThatIsAllowedAndNothingIsNeeded(t *testing.T) {
	w, s := shop(2, 0.1, 0), &State{}
	if d := w.Decide(noon().Add(time.Hour), s, endless()); d.Replicas < 1 {
		t.Errorf("not allowed: %+v", d)
	}
	w.Count.AllowZero, w.Count.Min, s, w.Need.Start = true, 0, &State{}, 0.1
	if d := w.Decide(noon(), s, endless()); d.Replicas < 1 {
		t.Errorf("needed: %+v", d)
	}
	w.Need.Start = 0
	if d := w.Decide(noon().Add(300*time.Second), s, endless()); d.Replicas != 0 {
		t.Errorf("%+v, want 0", d)
	}
	back := shop(0, 0, 3)
	back.Count = w.Count
	if d := back.Decide(noon().Add(400*time.Second), s, endless()); d.Replicas != 2 || d.Size != 1.5 {
		t.Errorf("back: %+v, want 2 of 1.5 at once", d)
	}
}

func TestZeroThatSomebodySetStays(t *testing.T) {
	if d := decided(t, shop(0, 0, 3), endless()); d.Replicas != 0 || !says(d, Owned) {
		t.Errorf("%+v, want 0", d)
	}
}

func TestWhatDoesNotStartIsGivenBackAndNotAskedForAgainForAWhile(t *testing.T) {
	w, s := shop(4, 2, 12), &State{Startup: Startup{Declared: 10 * time.Second}, Count: behavior.State{Seen: true}}
	for i := 2; i < 4; i++ {
		w.Instances[i].Ready, w.Instances[i].Age = false, 71*time.Second
	}
	if d := w.Decide(noon(), s, endless()); d.Replicas != 2 || !says(d, Stuck) {
		t.Fatalf("%+v, want 2", d)
	}
	w = shop(2, 2, 12)
	if d := w.Decide(noon().Add(time.Minute), s, endless()); d.Replicas != 2 || !says(d, Stuck) {
		t.Errorf("%+v, want 2 for five minutes", d)
	}
	if d := w.Decide(noon().Add(5*time.Minute), s, endless()); d.Replicas != 4 {
		t.Errorf("%+v, want 4", d)
	}
}

func TestTheNeedIsReadOffTheCurveAtTheLoadsUpperBounds(t *testing.T) {
	c := &trimtab.Curve{Load: 100, Level: 0.95, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Lower: 0.4, Mean: 0.5, Upper: 0.6}}, {Allocation: 3, Band: trimtab.Band{Lower: 0.8, Mean: 0.9, Upper: 1}}}}
	n, ok := NeedOf(c, 0.6, 100, 150)
	if !ok || math.Abs(n.Round-2) > 1e-9 || math.Abs(n.Start-3) > 1e-9 {
		t.Errorf("%+v, %v, want 2 and 3", n, ok)
	}
	if n, ok := NeedOf(c, 0.6, 100, 0); !ok || n.Start != n.Round {
		t.Errorf("no bound over the start: %+v, %v", n, ok)
	}
	for _, load := range []float64{math.NaN(), math.Inf(1), -1} {
		if _, ok := NeedOf(c, 0.6, load, 0); ok {
			t.Errorf("load %v gives a need", load)
		}
	}
	if _, ok := NeedOf(c, 0.9, 100, 0); ok {
		t.Error("an SLO that is never met gives a need")
	}
	if _, ok := NeedOf(nil, 0.5, 100, 0); ok {
		t.Error("no curve gives a need")
	}
}

// drawn is any workload, in any state.
func drawn(t *rapid.T) *Workload {
	amount := func(label string) float64 { return float64(rapid.IntRange(0, 400).Draw(t, label)) / 100 }
	w := &Workload{Name: "any", Need: Need{amount("round") * 4, amount("start") * 4}, Replicas: rapid.IntRange(0, 12).Draw(t, "replicas"),
		Size:  Size{Min: 0.1, Max: 0.1 + amount("max"), Step: 0.01, Fixed: rapid.IntRange(0, 5).Draw(t, "fixed") == 0},
		Count: Count{Min: rapid.IntRange(1, 3).Draw(t, "min"), Max: rapid.IntRange(3, 15).Draw(t, "most"), Spare: rapid.IntRange(0, 2).Draw(t, "spare")}}
	for range max(0, w.Replicas+rapid.IntRange(-1, 2).Draw(t, "others")) {
		w.Instances = append(w.Instances, Instance{Host: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host"), InForce: 0.1 + amount("in force"), Asked: 0.1 + amount("asked"),
			Ready: rapid.IntRange(0, 3).Draw(t, "ready") > 0, Age: time.Duration(rapid.IntRange(0, 300).Draw(t, "age")) * time.Second, Terminating: rapid.IntRange(0, 6).Draw(t, "going") == 0})
	}
	if rapid.Bool().Draw(t, "budget") {
		may := rapid.IntRange(0, 4).Draw(t, "allowed")
		w.Limits.Disruptable = &may
	}
	w.Rollout = rapid.IntRange(0, 6).Draw(t, "rollout") == 0
	if rapid.Bool().Draw(t, "fallback") {
		w.Fallback = &Fallback{1, rapid.IntRange(0, 20).Draw(t, "fallback replicas"), CurrentReplicasIfHigher}
	}
	return w
}

func TestInputThatIsMissingLowersNothingAndRaisesToADeclaredFallbackOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t), &State{}
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			w.Missing = "Prometheus is down"
		case 1:
			w.Need.Round = math.NaN()
		case 2:
			w.Need.Start = math.Inf(1)
		default:
			w.Need.Round = -1
		}
		for i := range 5 {
			d := w.Decide(noon().Add(time.Duration(i)*time.Minute), s, &Headroom{Pool: 3})
			if d.Replicas < w.Replicas || d.Replicas > w.Replicas && (w.Fallback == nil || i < 1 || d.Replicas > w.Fallback.Replicas) {
				t.Fatalf("%d after %d: %+v", w.Replicas, i, d)
			}
			for j := range w.Instances {
				if d.Sizes[j] != w.Instances[j].Asked {
					t.Fatalf("instance %d: %v asked, %v set", j, w.Instances[j].Asked, d.Sizes[j])
				}
			}
		}
	})
}

func TestNoDecisionExceedsItsRoomOrTakesMoreThanBudgetsAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawn(t), &State{Count: behavior.State{Seen: rapid.Bool().Draw(t, "seen")}}
		free := float64(rapid.IntRange(0, 300).Draw(t, "pool")) / 100
		hosts := map[string]float64{"a": float64(rapid.IntRange(0, 200).Draw(t, "a")) / 100}
		var held float64
		on, least := map[string]float64{}, map[string]float64{}
		serving := 0
		for i := range w.Instances {
			in := &w.Instances[i]
			held += in.held()
			on[in.Host] += in.held()
			if !in.Terminating {
				serving++
				least[in.Host] += w.Size.Min
			} else {
				least[in.Host] += in.held()
			}
		}
		room := &Headroom{Hosts: map[string]float64{"a": hosts["a"]}, Pool: free}
		d := w.Decide(noon(), s, room)
		if d.Replicas < w.Replicas {
			gone := w.Replicas - d.Replicas
			if may := w.Limits.Disruptable; may != nil && gone > *may {
				t.Fatalf("%d -> %+v, %d may go", w.Replicas, d, *may)
			}
			if w.Rollout {
				t.Fatalf("%d -> %+v in a rollout", w.Replicas, d)
			}
		}
		if d.Replicas > w.Replicas && d.Replicas > w.Count.Max {
			t.Fatalf("%d -> %+v, over the maximum", w.Replicas, d)
		}
		var sum float64
		after := map[string]float64{}
		for i := range w.Instances {
			v := math.Max(d.Sizes[i], w.Instances[i].held())
			sum += v
			after[w.Instances[i].Host] += v
			if !w.Size.Fixed && d.Sizes[i] > math.Max(w.Size.Max, w.Instances[i].Asked)+1e-9 {
				t.Fatalf("instance %d: %v", i, d.Sizes[i])
			}
		}
		if grown := sum - held; grown > free+1e-6 {
			t.Fatalf("grows by %v, %v is free: %+v", grown, free, d)
		}
		for host, v := range after {
			if v > on[host]+hosts[host]+1e-6 {
				t.Fatalf("host %s: %v, %v held and %v free", host, v, on[host], hosts[host])
			}
		}
	})
}
