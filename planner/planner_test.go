package planner_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ramp is a curve whose mean meets 1 at the given allocation.
func ramp(full float64) *trimtab.Curve {
	return &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: full / 10, Band: trimtab.Band{Lower: 0.08, Mean: 0.1, Upper: 0.12}},
		{Allocation: full, Band: trimtab.Band{Lower: 0.98, Mean: 1, Upper: 1}},
		{Allocation: 2 * full, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}},
	}}
}

func estimate(name string, at time.Time, c *trimtab.Curve) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: name, Time: at, Curve: c, Model: "test/1", Reports: 9,
		Inputs: []trimtab.Input{{Name: "load", Value: 10, Age: 1}}}
}

func holding(at time.Time, epoch, sequence uint64, now map[string]float64) *trimtab.Holding {
	h := &trimtab.Holding{Host: "h1", Time: at, Epoch: epoch, Sequence: sequence}
	for _, name := range []string{"a", "b", "c", "d"} {
		if v, ok := now[name]; ok {
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name, Resource: "cpu"}, Knob: "test", Now: trimtab.Units(v), Baseline: trimtab.Unlimited(), Since: at, Min: 0.1, Max: 8})
		}
	}
	return h
}

func pool(policy policy.Policy, mode trimtab.Mode) planner.Config {
	c := planner.Config{Pool: "p", Resource: "cpu", Capacity: 8, Unit: 0.1, Round: time.Second, Policy: policy,
		Guard: guard.Config{Disabled: true}}
	for _, n := range []string{"c", "a", "b"} {
		c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: n, Mode: mode, SLO: 0.9, Min: 0.1, Max: 8})
	}
	return c
}

func plans(values []trimtab.Value) (out []*trimtab.Plan) {
	for _, v := range values {
		out = append(out, v.(*trimtab.Plan))
	}
	return out
}

func TestAPlanShrinksFirstAndGrowsWhatWasConfirmed(t *testing.T) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, fair.ResourceFair{}} {
		p, err := planner.New(pool(policy, trimtab.Act))
		if err != nil {
			t.Fatal(err)
		}
		p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 3})
		p.Step(t0, holding(t0, 3, 0, map[string]float64{"a": 4, "b": 2, "c": 2}))
		for n, full := range map[string]float64{"a": 1, "b": 3, "c": 4} {
			p.Step(t0, estimate(n, t0, ramp(full)))
		}
		first := plans(p.Step(t0, nil))
		if len(first) != 1 || first[0].Last || len(first[0].Actions) != 1 || first[0].Actions[0].Workload != "a" {
			t.Fatalf("%s: first step: %+v", policy.Name(), first)
		}
		if err := first[0].Validate(); err != nil {
			t.Fatal(err)
		}
		a := first[0].Actions[0]
		second := plans(p.Step(t0, &trimtab.Outcome{Pool: "p", Host: "h1", Epoch: 3, Sequence: 1, Step: 1, Time: t0.Add(time.Millisecond),
			Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "p", Host: "h1", Workload: "a", Resource: "cpu"}, Status: trimtab.Written, Before: a.Expect, Asked: a.Set, Found: trimtab.Units(3.5), Known: true}}}))
		if len(second) != 1 || !second[0].Last || second[0].Step != 2 || len(second[0].Actions) == 0 {
			t.Fatalf("%s: second step: %+v", policy.Name(), second)
		}
		sum := 3.5 + 2 + 2
		for _, a := range second[0].Actions {
			sum += a.Set.Value - a.Expect.Value
			t.Log(a.Why.Summary, "|", a.Why.Binding)
		}
		if sum > 8+1e-9 {
			t.Errorf("%s: the grows reach %v of 8", policy.Name(), sum)
		}
	}
}

func TestAHoldingOfAnotherPoolOnTheSameHostSaysNothingOfThisOne(t *testing.T) {
	p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	ours := holding(t0, 1, 0, equal)
	ours.Pool = "p"
	p.Step(t0, ours)
	told(p, t0, skewed)
	other := holding(t0.Add(time.Millisecond), 7, 9, nil)
	other.Pool, other.Paused = "q", true
	p.Step(t0, other)
	if plan := one(t, p.Step(t0, nil)); len(plan.Actions) == 0 || len(plan.Held) > 0 {
		t.Errorf("held %v: its knobs are gone, or it is paused, by what another pool says", plan.Held)
	}
}

// What agents tell people of their best-effort jobs is nothing that a planner acts on,
// even where it says the planner's own pool.
func TestHowJobsStandIsNothingToAPlanner(t *testing.T) {
	var seen [2]string
	for i := range seen {
		p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
		if err != nil {
			t.Fatal(err)
		}
		tell := func() {
			c := &colocation.Colocation{Pool: "p", Host: "h1", Time: t0.Add(time.Hour), Paused: true, Capacity: map[string]float64{"cpu": 0}, Jobs: []colocation.Job{{ID: "a"}}}
			if i == 1 && p.Step(t0, c) != nil {
				t.Error("it answered")
			}
		}
		p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
		tell()
		ours := holding(t0, 1, 0, equal)
		ours.Pool = "p"
		p.Step(t0, ours)
		tell()
		told(p, t0, skewed)
		tell()
		b, err := json.Marshal(one(t, p.Step(t0, nil)))
		if err != nil {
			t.Fatal(err)
		}
		seen[i] = string(b)
	}
	if seen[0] != seen[1] {
		t.Errorf("%s\n%s", seen[0], seen[1])
	}
}

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
