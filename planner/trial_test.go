package planner_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/welfare"
)

// unsure is a curve whose SLO is met for sure from 4 on, and perhaps from 1 on.
func unsure() *trimtab.Curve {
	return &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.5, Band: trimtab.Band{Lower: 0, Mean: 0.1, Upper: 0.2}},
		{Allocation: 1, Band: trimtab.Band{Lower: 0.5, Mean: 0.8, Upper: 1}},
		{Allocation: 3.9, Band: trimtab.Band{Lower: 0.88, Mean: 0.895, Upper: 1}},
		{Allocation: 4, Band: trimtab.Band{Lower: 0.95, Mean: 0.96, Upper: 1}},
	}}
}

// lowered runs rounds in which every workload holds what it has and performs as
// told, and returns the first plan that lowers one.
func lowered(t *testing.T, cfg planner.Config, now map[string]float64, performance float64) *trimtab.Plan {
	t.Helper()
	p := started(t, cfg, now)
	at := t0
	for range 12 {
		at = at.Add(time.Second)
		for _, w := range slices.Sorted(maps.Keys(now)) {
			e := estimate(w, at, unsure())
			e.Performance = &performance
			p.Step(at, e)
		}
		p.Step(at, holding(at, 1, 0, now))
		for _, v := range p.Step(at, nil) {
			for _, a := range v.(*trimtab.Plan).Actions {
				if a.Set.Less(a.Expect) {
					return v.(*trimtab.Plan)
				}
			}
		}
	}
	return nil
}

func TestATrialIsPaidByTheErrorBudgetAndByIdleCapacity(t *testing.T) {
	with := func(mode trimtab.Mode, exploration float64) planner.Config {
		c := pool(welfare.Egalitarian{Optimism: -1}, mode)
		c.Exploration, c.Step, c.Capacity = exploration, 40, 16
		return c
	}
	idle := map[string]float64{"a": 4, "b": 4, "c": 4}
	plan := lowered(t, with(trimtab.Act, 0.5), idle, 0.95)
	if plan == nil {
		t.Fatal("nothing was tried")
	}
	if len(plan.Actions) != 1 {
		t.Fatalf("%d trials in a round", len(plan.Actions))
	}
	a := plan.Actions[0]
	if freed := a.Expect.Value - a.Set.Value; freed > 4+1e-9 || !strings.HasPrefix(a.Why.Binding.String(), "trial") || !strings.Contains(a.Why.Summary, "on trial, to learn what it needs") {
		t.Errorf("%v freed: %s, %s", freed, a.Why.Binding, a.Why.Summary)
	}
	for name, c := range map[string]struct {
		cfg         planner.Config
		now         map[string]float64
		performance float64
	}{
		"exploration is off": {with(trimtab.Act, 0), idle, 0.95},
		"nothing is written": {with(trimtab.Recommend, 0.5), idle, 0.95},
		"no idle capacity":   {with(trimtab.Act, 0.5), map[string]float64{"a": 5.3, "b": 5.3, "c": 5.4}, 0.95},
		"the SLO is not met": {with(trimtab.Act, 0.5), idle, 0.85},
		"hardly any budget":  {with(trimtab.Act, 0.01), idle, 0.95},
	} {
		if plan := lowered(t, c.cfg, c.now, c.performance); plan != nil {
			t.Errorf("%s, and yet %s", name, plan.Actions[0].Why.Summary)
		}
	}
}

func TestWhatTrialsUsedOutlivesTheProcess(t *testing.T) {
	c := pool(welfare.Egalitarian{}, trimtab.Act)
	p := started(t, c, map[string]float64{"a": 4})
	for name, state := range map[string]string{
		"negative": `{"a":{"unit":0.1,"move":{"direction":0},"account":{"missed":-1}}}`,
		"infinite": `{"a":{"unit":0.1,"move":{"direction":0},"account":{"missed":1e999}}}`,
	} {
		if err := p.Restore("planner", []byte(state)); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	good := []byte(`{"a":{"unit":0.1,"move":{"direction":0},"account":{"missed":1.5,"tried":0.5,"met":7}}}`)
	if err := p.Restore("planner", good); err != nil {
		t.Fatal(err)
	}
	if got := string(p.Snapshot()["planner"]); !strings.Contains(got, `"account":{"missed":1.5,"tried":0.5,"met":7}`) {
		t.Errorf("the account is lost: %s", got)
	}
}

// perhaps is a curve that is not known to reach the SLO of 0.9 anywhere, and may
// from 6 on.
func perhaps() *trimtab.Curve {
	return &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.5, Band: trimtab.Band{Lower: 0, Mean: 0.1, Upper: 0.2}},
		{Allocation: 4, Band: trimtab.Band{Lower: 0.65, Mean: 0.7, Upper: 0.75}},
		{Allocation: 6, Band: trimtab.Band{Lower: 0.65, Mean: 0.7, Upper: 1}},
	}}
}

// upwards runs rounds in which a has the given curve and performance, and b and
// c meet their SLO or not; it returns the plans that move anybody.
func upwards(t *testing.T, cfg planner.Config, now map[string]float64, others float64, rounds int) []*trimtab.Plan {
	t.Helper()
	p := started(t, cfg, now)
	at, out := t0, []*trimtab.Plan(nil)
	short := 0.7
	for range rounds {
		at = at.Add(time.Second)
		for _, w := range slices.Sorted(maps.Keys(now)) {
			e := estimate(w, at, unsure())
			e.Performance = &others
			if w == "a" {
				e.Curve, e.Performance = perhaps(), &short
			}
			p.Step(at, e)
		}
		p.Step(at, holding(at, 1, uint64(len(out)), now))
		for _, v := range p.Step(at, nil) {
			plan := v.(*trimtab.Plan)
			if len(plan.Actions) == 0 {
				continue
			}
			out = append(out, plan)
			for _, a := range plan.Actions {
				now[a.Workload] = a.Set.Value
			}
			p.Step(at, done(plan, at))
		}
	}
	return out
}

func TestWhoIsShortIsRaisedOnTrialFromWhatIsIdle(t *testing.T) {
	with := func(exploration float64) planner.Config {
		c := pool(welfare.Egalitarian{Optimism: -1}, trimtab.Act)
		c.Exploration, c.Step, c.Capacity = exploration, 40, 16
		return c
	}
	has := func(a float64) map[string]float64 { return map[string]float64{"a": a, "b": 4, "c": 4} }
	plans := upwards(t, with(0.5), has(4), 0.95, 1)
	if len(plans) != 1 || len(plans[0].Actions) != 1 {
		t.Fatalf("%d plans: one trial is wanted", len(plans))
	}
	a := plans[0].Actions[0]
	if a.Workload != "a" || !a.Expect.Less(a.Set) || a.Set.Value > 8 || !strings.HasPrefix(a.Why.Binding.String(), "trial: what is idle") || !strings.Contains(a.Why.Summary, "nobody is lowered for it") {
		t.Errorf("%s from %v to %v: %s; %s", a.Workload, a.Expect, a.Set, a.Why.Binding, a.Why.Summary)
	}
	for name, c := range map[string]struct {
		cfg    planner.Config
		now    map[string]float64
		others float64
	}{
		"exploration is off":      {with(0), has(4), 0.95},
		"nothing is idle":         {with(0.5), has(8), 0.95},
		"others' budgets burn":    {with(0.5), has(4), 0.85},
		"its risk is over budget": {with(0.01), has(4), 0.95},
	} {
		for _, plan := range upwards(t, c.cfg, c.now, c.others, 1) {
			t.Errorf("%s, and yet %s", name, plan.Actions[0].Why.Summary)
		}
	}
}

func TestWhatATrialUpwardsDidNotNeedIsGivenBack(t *testing.T) {
	c := pool(welfare.Egalitarian{Optimism: -1}, trimtab.Act)
	c.Exploration, c.Step, c.Capacity, c.Guard.Disabled = 0.2, 40, 16, true
	now := map[string]float64{"a": 4, "b": 4, "c": 4}
	up, down := 0, 0
	for _, plan := range upwards(t, c, now, 0.95, 8) {
		for _, a := range plan.Actions {
			switch {
			case a.Workload != "a":
			case a.Expect.Less(a.Set):
				up++
			default:
				down++
				if a.Set.Value != 4 || a.Why.Binding.String() != "trial: over" || !strings.Contains(a.Why.Summary, "did not help") {
					t.Errorf("to %v: %s; %s", a.Set, a.Why.Binding, a.Why.Summary)
				}
			}
		}
	}
	if up == 0 || down == 0 {
		t.Errorf("raised %d times, given back %d times", up, down)
	}
}
