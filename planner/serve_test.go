package planner_test

import (
	"math"
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

// served is a planner under the guard of production, with rounds of 10 s and
// urgent ones at most every 2 s.
func served(t *testing.T, policy policy.Policy, has map[string]float64) *planner.Planner {
	t.Helper()
	cfg := pool(policy, trimtab.Act)
	cfg.Guard, cfg.Round, cfg.Urgent, cfg.Step = guard.Config{}, 10*time.Second, 2*time.Second, 80
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	p.Step(t0, holding(t0, 1, 0, has))
	return p
}

// asks is an estimate of a workload that needs so much, with so much waiting.
func asks(now time.Time, name string, need, backlog, performance float64) *trimtab.Estimate {
	cost := 0.01
	load := &trimtab.LoadForecast{Now: need * 50, Mean: need * 50, Upper: need * 50, Level: 0.9, Model: "test"}
	c := &trimtab.Curve{Load: load.Upper, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: need * 0.5, Band: trimtab.Band{}},
		{Allocation: need, Band: trimtab.Band{Lower: 0.88, Mean: 0.9, Upper: 0.92}},
		{Allocation: need * 1.2, Band: trimtab.Band{Lower: 0.97, Mean: 0.99, Upper: 1}}}}
	return &trimtab.Estimate{Workload: name, Time: now, Curve: c, Load: load, Performance: &performance, Requests: 100, Cost: &cost, Backlog: &backlog,
		Model: "test/1", Reports: 100, Inputs: []trimtab.Input{{Name: "performance", Value: performance}}}
}

// plansOf are the plans among values.
func plansOf(values []trimtab.Value) (out []*trimtab.Plan) {
	for _, v := range values {
		if p, ok := v.(*trimtab.Plan); ok {
			out = append(out, p)
		}
	}
	return out
}

// fallsOf returns what a plan lowers, by name.
func fallsOf(plans []*trimtab.Plan) map[string]float64 {
	out := map[string]float64{}
	for _, p := range plans {
		for _, a := range p.Actions {
			if a.Set.Less(a.Expect) {
				out[a.Workload] = a.Set.Value
			}
		}
	}
	return out
}

func TestWhileEverybodyHasWhatItNeedsNobodyIsMovedAndThePlanSaysSo(t *testing.T) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{}} {
		p := served(t, policy, map[string]float64{"a": 4, "b": 2, "c": 2})
		now := t0.Add(11 * time.Second)
		for name, need := range map[string]float64{"a": 1, "b": 1.5, "c": 1} {
			p.Step(now, asks(now, name, need, 0, 1))
		}
		plan := one(t, p.Step(now, nil))
		if len(plan.Actions) > 0 || !strings.Contains(plan.Unmoved["a"].Text, "everybody has what it needs") {
			t.Errorf("%s: %+v", policy.Name(), plan)
		}
	}
}

func TestSomebodyWithLessThanItNeedsStartsARoundAtOnceButNotTooOften(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 3, "c": 3})
	now := t0.Add(11 * time.Second)
	for name, need := range map[string]float64{"b": 1, "c": 1, "a": 1} {
		p.Step(now, asks(now, name, need, 0, 1))
	}
	p.Step(now, nil)
	now = now.Add(3 * time.Second)
	plans := plansOf(p.Step(now, asks(now, "a", 3, 0, 0.2)))
	if len(plans) != 1 || plans[0].Cause.String() != "need of a" || len(fallsOf(plans)) == 0 {
		t.Fatalf("plans: %+v", plans)
	}
	p.Step(now, &trimtab.Outcome{Pool: "p", Host: "h1", Epoch: 1, Sequence: plans[0].Sequence, Step: 1, Time: now})
	now = now.Add(time.Second)
	for _, plan := range plansOf(p.Step(now, asks(now, "a", 3, 0, 0.2))) {
		if plan.Cause.Kind == trimtab.CauseNeed && plan.Step == 1 {
			t.Errorf("a second round after a second: %+v", plan)
		}
	}
}

func TestAWorkloadOnWhichAnAlertFiresIsNotLowered(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 4, "b": 2, "c": 2})
	now := t0.Add(11 * time.Second)
	p.Step(now, asks(now, "b", 3, 0, 0.1))
	p.Step(now, asks(now, "c", 1, 0, 1))
	p.Step(now, asks(now, "a", 1, 0, 1))
	plans := plansOf(p.Step(now, &trimtab.Alert{Workload: "a", Name: "Slow", Group: "g", Fingerprint: "f", Firing: true, Time: now}))
	plans = append(plans, plansOf(p.Step(now, nil))...)
	if v, ok := fallsOf(plans)["a"]; ok {
		t.Errorf("a is lowered to %v while an alert on it fires", v)
	}
}

func TestWhatAnAlertProtectsIsNotPlannedForOthers(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 4, "b": 2, "c": 2})
	now := t0.Add(11 * time.Second)
	p.Step(now, &trimtab.Alert{Workload: "a", Name: "Slow", Group: "g", Fingerprint: "f", Firing: true, Time: now})
	p.Step(now, asks(now, "c", 0.9, 0, 1))
	p.Step(now, asks(now, "a", 1, 0, 1))
	now = now.Add(3 * time.Second)
	plans := plansOf(p.Step(now, asks(now, "b", 2.7, 0, 0.1)))
	// Of the 4 that a leaves, needs of 2.7 and 0.9 share all.
	if v := fallsOf(plans)["c"]; math.Abs(v-1) > 0.11 {
		t.Errorf("c is lowered to %v, want 1: a may not give, plans %+v", v, plans)
	}
}

func TestTheRestOfThePoolIsSharedInProportionToTheNeeds(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 1, "b": 3.5, "c": 3.5})
	now := t0.Add(11 * time.Second)
	p.Step(now, asks(now, "b", 1, 0, 1))
	p.Step(now, asks(now, "c", 1, 0, 1))
	low := fallsOf(plansOf(p.Step(now, asks(now, "a", 2, 0, 1))))
	for _, name := range []string{"b", "c"} {
		if math.Abs(low[name]-2) > 0.11 {
			t.Errorf("%s is lowered to %v, want 2: needs of 2, 1 and 1 share 8", name, low[name])
		}
	}
}

func TestABacklogIsDrainedFromWhatTheOthersDoNotNeed(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2.4, "b": 2.8, "c": 2.8})
	now := t0.Add(11 * time.Second)
	p.Step(now, asks(now, "b", 1.8, 0, 1))
	p.Step(now, asks(now, "c", 1.8, 0, 1))
	low := fallsOf(plansOf(p.Step(now, asks(now, "a", 2, 20, 0.1)))) // 2 cores for 10 s
	if len(low) != 2 || low["b"] < 1.8-1e-9 || low["c"] < 1.8-1e-9 {
		t.Errorf("lowered to %v: want both, and neither below the 1.8 that it needs", low)
	}
}

// TestWhoWasStoppedForSecondsIsGuessedToNeedMoreThanItHad where nobody tells what
// waits: a tenth of what it had for each second, half of it at most.
func TestWhoWasStoppedForSecondsIsGuessedToNeedMoreThanItHad(t *testing.T) {
	for stopped, want := range map[trimtab.Seconds]float64{0: 0, 3: 0.72, 20: 1.2} {
		p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2.4, "b": 2.8, "c": 2.8})
		now := t0.Add(11 * time.Second)
		p.Step(now, asks(now, "b", 1.2, 0, 1))
		p.Step(now, asks(now, "c", 1.2, 0, 1))
		e := asks(now, "a", 2, 0, 0.1)
		has := 2.4
		e.Backlog, e.Stopped, e.Allocation = nil, stopped, &has
		freed := 0.0
		for _, to := range fallsOf(plansOf(p.Step(now, e))) {
			freed += 2.8 - to
		}
		if enough := 2.1 + want - has; stopped == 0 && freed > 0 || stopped > 0 && freed < enough {
			t.Errorf("stopped for %v s: the others give %v, want at least %v", stopped, freed, enough)
		}
	}
}

func TestWhereTheNeedsDoNotFitThePolicyDecides(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 3, "c": 3})
	now := t0.Add(11 * time.Second)
	p.Step(now, asks(now, "b", 5, 0, 0.1))
	p.Step(now, asks(now, "c", 5, 0, 0.1))
	var actions []trimtab.Action
	p.Step(now, asks(now, "a", 5, 0, 0.1))
	for _, plan := range plansOf(p.Step(now.Add(10*time.Second), nil)) {
		actions = append(actions, plan.Actions...)
	}
	if len(actions) == 0 {
		t.Fatal("nobody was moved")
	}
	for _, a := range actions {
		if math.Abs(*a.Why.Target-8.0/3) > 0.11 {
			t.Errorf("%s: target %v, want its entitlement", a.Workload, *a.Why.Target)
		}
	}
}

// TestAMissThatHasOnlyComeInPartStartsARoundAndThePlanSaysSo: the report is of seconds ago,
// and was met; of the requests since, those that have come were late.
func TestAMissThatHasOnlyComeInPartStartsARoundAndThePlanSaysSo(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := served(t, fair.NJCPolicy{}, map[string]float64{"a": 2, "b": 3, "c": 3})
		now := t0.Add(11 * time.Second)
		for name, need := range map[string]float64{"b": 1, "c": 1, "a": 1} {
			p.Step(now, asks(now, name, need, 0, 1))
		}
		p.Step(now, nil)
		var plans []*trimtab.Plan
		for range 3 {
			now = now.Add(time.Second)
			e := asks(now, "a", 2.1, 0, 1)
			e.Backlog = nil // a need within its noise moves nobody while it is met
			if e.Newer = (&trimtab.Part{Requests: 30, Under: 30}); late {
				e.Newer.Under = 3
			}
			for _, plan := range plansOf(p.Step(now, e)) {
				plans = append(plans, plan)
				plans = append(plans, plansOf(p.Step(now, done(plan, now)))...)
			}
		}
		said := ""
		for _, plan := range plans {
			for _, a := range plan.Actions {
				if a.Workload == "a" {
					said += a.Why.Summary
				}
			}
		}
		if told := strings.Contains(said, "acts on what has come since the last report: 3 of 30 requests in time"); told != late || (len(fallsOf(plans)) > 0) != late {
			t.Errorf("late %v: %d plans, which say %q", late, len(plans), said)
		}
	}
}
