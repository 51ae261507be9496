package planner_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// sharing is a planner of a pool whose workloads share by weight.
func sharing(t *testing.T, policy policy.Policy, has map[string]float64) *planner.Planner {
	t.Helper()
	cfg := pool(policy, trimtab.Act)
	cfg.Guard, cfg.Round, cfg.Urgent, cfg.Step = guard.Config{}, 10*time.Second, 2*time.Second, 80
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	p.Step(t0, shares(t0, 0, has))
	return p
}

// shares is a holding of shares by weight, as of a plan.
func shares(now time.Time, sequence uint64, has map[string]float64) *trimtab.Holding {
	h := holding(now, 1, sequence, has)
	for i := range h.Targets {
		h.Targets[i].Shared = true
	}
	return h
}

// A share below the need is no want: others leave idle what it lacks. Only a miss shows that
// they do not.
func TestWhereNeedsFitTheKernelSharesAndNobodyIsMoved(t *testing.T) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{}} {
		has := map[string]float64{"a": 2.6, "b": 2.7, "c": 2.7}
		p, last := sharing(t, policy, has), uint64(0)
		for round := 1; round < 60; round++ {
			now := t0.Add(time.Duration(round) * 11 * time.Second)
			p.Step(now, shares(now, last, has))
			for name, need := range map[string]float64{"a": 5, "b": 1, "c": 0.5} {
				for _, plan := range plansOf(p.Step(now, asks(now, name, need, 0, 1))) {
					if len(plan.Actions) > 0 {
						t.Fatalf("%s: %+v", policy.Name(), plan)
					}
				}
			}
			plan := one(t, p.Step(now, nil))
			if len(plan.Actions) > 0 || !strings.Contains(plan.Unmoved["a"].Text, "needs fit; the kernel shares") {
				t.Fatalf("%s: %+v", policy.Name(), plan)
			}
			last = plan.Sequence
		}
	}
}

func TestAMissThatAShareBelowTheNeedExplainsMovesIt(t *testing.T) {
	p := sharing(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 3, "c": 3})
	now := t0
	rises := 0.0
	for range 4 {
		now = now.Add(11 * time.Second)
		p.Step(now, asks(now, "b", 1, 0, 1))
		p.Step(now, asks(now, "c", 1, 0, 1))
		plans := append(plansOf(p.Step(now, asks(now, "a", 4, 1, 0.5))), plansOf(p.Step(now, nil))...)
		for _, plan := range plans {
			for _, a := range plan.Actions {
				rises += a.Set.Value - a.Expect.Value
				if a.Workload == "a" && a.Set.Less(a.Expect) {
					t.Errorf("%+v", a)
				}
			}
		}
	}
	if rises >= 0 { // step 1 has the falls; the rise waits for the host's answer
		t.Errorf("nobody made room: %v", rises)
	}
}

// playShares has a host carry out what a planner decides for some rounds: what it has then is in has
// and capped. It returns how many writes that took.
func playShares(t *testing.T, p *planner.Planner, has map[string]float64, capped map[string]bool, from, rounds int, need map[string]float64, performance float64) (writes int) {
	t.Helper()
	for round := from; round < from+rounds; round++ {
		now := t0.Add(time.Duration(round) * 11 * time.Second)
		for name, v := range need {
			e := asks(now, name, v, 0, performance)
			if performance < 0.5 && has[name] > 1.8 && has[name] != 8./3 {
				*e.Performance = 1 // it is served, and worked off what waited
			}
			*e.Cost = 0.018 // of 50 requests a second for each core that it needs: 90% of that
			p.Step(now, e)
		}
		plans := plansOf(p.Step(now, nil))
		for len(plans) > 0 {
			plan := plans[0]
			plans = plans[1:]
			o := &trimtab.Outcome{Pool: "p", Host: "h1", Epoch: 1, Sequence: plan.Sequence, Step: plan.Step, Time: now}
			for _, a := range plan.Actions {
				o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Before: a.Expect, Asked: a.Set, Found: a.Set, Known: true, Status: trimtab.Written})
				has[a.Workload], capped[a.Workload] = a.Set.Value, a.Capped
				writes++
			}
			plans = append(plans, plansOf(p.Step(now, o))...)
			h := shares(now, plan.Sequence, has)
			for i := range h.Targets {
				h.Targets[i].Capped = capped[h.Targets[i].Workload]
			}
			p.Step(now, h)
		}
	}
	return writes
}

// What each objective makes of an overload, and that all is as before when it is over.
func TestWhereNeedsDoNotFitTheObjectiveDecidesWhoHasWhatShareAndAfterwardsAllAreAsBefore(t *testing.T) {
	even := 8. / 3
	for _, c := range []struct {
		policy policy.Policy
		has    []float64 // what the least has, and so on
	}{
		{fair.NJCPolicy{}, []float64{even, even, even}},
		{fair.ResourceFair{}, []float64{even, even, even}},
		// One after the other: the first has more than it needs, the second most of what is
		// left, and of what the first leaves; the third a crumb.
		{welfare.Social{}, []float64{0.1, 2, 5.8}},
	} {
		has := map[string]float64{"a": even, "b": even, "c": even}
		p := sharing(t, c.policy, has)
		over := map[string]float64{"a": 3.6, "b": 3.6, "c": 3.6}
		capped := map[string]bool{}
		writes := playShares(t, p, has, capped, 1, 12, over, 0.3)
		got := slices.Sorted(maps.Values(has))
		for i, want := range c.has {
			if math.Abs(got[i]-want) > 0.11 || (writes == 0) != (c.has[0] == even) {
				t.Errorf("%s: %v after %d writes", c.policy.Name(), has, writes)
			}
		}
		if more := playShares(t, p, has, capped, 13, 20, over, 0.3); more > 0 {
			t.Errorf("%s: who is served changes: %d writes", c.policy.Name(), more)
		}
		playShares(t, p, has, capped, 33, 12, map[string]float64{"a": 1, "b": 1, "c": 1}, 1)
		for name, v := range has {
			if math.Abs(v-even) > 0.1 {
				t.Errorf("%s: %s has %v when all is over", c.policy.Name(), name, v)
			}
		}
	}
}

// Where the first in turn serves nobody in time, those who are not served are capped; where it
// does not then either, another is served in its place for a while.
// Where none can use it, all have what they are entitled to.
func TestWhoCannotUseItsTurnMakesRoomForAnother(t *testing.T) {
	even := 8. / 3
	for _, c := range []struct {
		useless string // a letter for each that serves nobody in time, whatever it has
		served  string
	}{{"", "a"}, {"a", "b"}, {"ab", "c"}, {"abc", ""}} {
		has := map[string]float64{"a": even, "b": even, "c": even}
		p, capped := sharing(t, welfare.Social{}, has), 0
		for round := 1; round < 40; round++ {
			now := t0.Add(time.Duration(round) * 11 * time.Second)
			var plans []*trimtab.Plan
			for _, name := range []string{"a", "b", "c"} {
				e := asks(now, name, 6, 0, 0.1)
				*e.Cost = 0.018
				if has[name] > 5 && !strings.Contains(c.useless, name) {
					*e.Performance = 1
				}
				plans = append(plans, plansOf(p.Step(now, e))...)
			}
			for plans = append(plans, plansOf(p.Step(now, nil))...); len(plans) > 0; plans = plans[1:] {
				for _, a := range plans[0].Actions {
					if has[a.Workload] = a.Set.Value; a.Capped {
						capped++
					}
				}
				plans = append(plans, plansOf(p.Step(now, done(plans[0], now)))...)
				p.Step(now, shares(now, plans[0].Sequence, has))
			}
		}
		if (capped > 0) != (c.useless != "") {
			t.Errorf("where %q cannot be served, a share was capped %d times", c.useless, capped)
		}
		for name, v := range has {
			if c.served == "" && math.Abs(v-even) > 0.2 || c.served != "" && (v > 5) != (name == c.served) {
				t.Errorf("where %q cannot be served: %v, want %q to be", c.useless, has, c.served)
				break
			}
		}
	}
}

// A workload that an overload capped, and of which nothing is known any more, is not kept down:
// its limit is lifted, and the plan says why.
func TestACapIsLiftedWhenNothingIsKnownOfWhoHasIt(t *testing.T) {
	p := sharing(t, welfare.Social{}, map[string]float64{"a": 3, "b": 3, "c": 2})
	now := t0.Add(11 * time.Second)
	h := shares(now, 0, map[string]float64{"a": 3, "b": 3, "c": 2})
	for i := range h.Targets {
		h.Targets[i].Capped = h.Targets[i].Workload == "c"
	}
	p.Step(now, h)
	p.Step(now, asks(now, "a", 1, 0, 1))
	p.Step(now, asks(now, "b", 1, 0, 1))
	plans := plansOf(p.Step(now, nil))
	for len(plans) > 0 {
		plan := plans[0]
		plans = append(plans[1:], plansOf(p.Step(now, done(plan, now)))...)
		for _, a := range plan.Actions {
			if a.Workload == "c" && a.Set == a.Expect && !a.Capped && strings.Contains(a.Why.Summary, "the limit that an overload put on it is lifted") {
				return
			}
			t.Logf("%+v", a)
		}
	}
	t.Error("the limit stays, or is lifted without a word")
}
