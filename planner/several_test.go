package planner_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
)

// several is a pool of 8 cores and 16 GiB that a and b share by dominant
// resource fairness.
func several(mode trimtab.Mode) planner.Config {
	c := planner.Config{Pool: "p", Resource: "cpu", Capacity: 8, Unit: 0.1, Round: time.Second, Policy: dominant.Policy{},
		Others: []planner.Resource{{Name: "memory", Capacity: 16 * gib, Unit: gib / 64, Step: 64}}, Guard: guard.Config{Disabled: true}, Beta: 1}
	for _, n := range []string{"a", "b"} {
		c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: n, Mode: mode, SLO: 0.9, Min: 0.1,
			Others: map[string]planner.Bounds{"memory": {Min: gib / 8}}})
	}
	return c
}

// both is an estimate over cpu and memory.
func both(name string, at time.Time, cpu, memory float64) *trimtab.Estimate {
	e := estimate(name, at, ramp(cpu))
	e.Curves = map[string]*trimtab.Curve{"memory": ramp(memory)}
	return e
}

// play runs rounds of a second in a world without faults, and returns the
// plans; before sees every plan before it is carried out.
func play(t *testing.T, p *planner.Planner, h *host, rounds int, tell func(now time.Time), before func(*trimtab.Plan)) (all []*trimtab.Plan) {
	t.Helper()
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	now := t0
	for range rounds {
		now = now.Add(time.Second)
		p.Step(now, h.holding(now))
		tell(now)
		queue := p.Step(now, nil)
		for len(queue) > 0 {
			plan := queue[0].(*trimtab.Plan)
			if err := plan.Validate(); err != nil {
				t.Fatal(err)
			}
			all = append(all, plan)
			before(plan)
			queue = append(queue[1:], p.Step(now, h.carryOut(plan, now, func(string) (bool, bool) { return false, true }))...)
		}
	}
	return all
}

// a needs much cpu and little memory, b the opposite: what each of them gives
// up the other gets, and of neither resource more is ever given than there is.
func TestAPlanMovesTwoResourcesAtOnce(t *testing.T) {
	p, err := planner.New(several(trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{name: "h1", names: []string{"a", "b"}, more: []string{"a", "b"}, now: map[string]trimtab.Amount{
		"a": trimtab.Units(4), "b": trimtab.Units(4), "a memory": trimtab.Units(8 * gib), "b memory": trimtab.Units(8 * gib)}}
	sums := func() (cpu, memory float64) {
		return h.now["a"].Value + h.now["b"].Value, h.now["a memory"].Value + h.now["b memory"].Value
	}
	plans := play(t, p, h, 30, func(now time.Time) {
		p.Step(now, both("a", now, 6, 2*gib))
		p.Step(now, both("b", now, 1, 12*gib))
	}, func(plan *trimtab.Plan) {
		cpu, memory := sums()
		if cpu > 8+1e-9 || memory > 16*gib+1 {
			t.Fatalf("%v cores and %v bytes are given", cpu, memory)
		}
		if plan.CapacityOf("cpu") != 8 || plan.CapacityOf("memory") != 16*gib || plan.Objective != "drf" {
			t.Fatalf("capacities %v, objective %s", plan.Capacities, plan.Objective)
		}
		shrinks := map[string]bool{}
		for _, a := range plan.Actions {
			shrinks[a.Resource] = shrinks[a.Resource] || a.Set.Less(a.Expect)
			if !a.Set.Less(a.Expect) && plan.Step == 1 && !plan.Last {
				t.Fatalf("a grow in a first step: %+v", a)
			}
		}
	})
	for key, least := range map[string]float64{"a": 5.3, "b": 0.9, "a memory": 1.7 * gib, "b memory": 10.7 * gib} {
		if h.now[key].Value < least {
			t.Errorf("%s has %v, demands at least %v, and all demands fit", key, h.now[key], least)
		}
	}
	moved := map[string]bool{}
	var audits []*trimtab.Audit
	for _, plan := range plans {
		for _, a := range plan.Actions {
			moved[a.Workload+" "+a.Resource] = true
			if !strings.Contains(a.Why.Summary, a.Resource) || a.Why.Demand == nil {
				t.Errorf("summary %q does not say what moves, or why", a.Why.Summary)
			}
		}
		if plan.Step == 1 {
			audits = append(audits, plan.Audit)
		}
	}
	if len(moved) != 4 {
		t.Errorf("moved %v, want both resources of both", moved)
	}
	first, last := audits[0], audits[len(audits)-1]
	if first == nil || last == nil {
		t.Fatal("a round without an audit")
	}
	if first.Now.Least > 0.8 || last.Now.Least < 0.99 || last.Now.Envy > 0.01 || last.Now.Shortfall > 0.01 {
		t.Errorf("at first %+v, at last %+v: want that it is seen to become fair", first.Now, last.Now)
	}
	if first.Target == nil || first.Target.Least < 0.99 {
		t.Errorf("target %+v", first.Target)
	}
}

// What is known of one resource only moves none.
func TestAWorkloadWithOneCurveMissingHoldsWithBoth(t *testing.T) {
	p, err := planner.New(several(trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{name: "h1", names: []string{"a", "b"}, more: []string{"a", "b"}, now: map[string]trimtab.Amount{
		"a": trimtab.Units(4), "b": trimtab.Units(2), "a memory": trimtab.Units(8 * gib), "b memory": trimtab.Units(4 * gib)}}
	plans := play(t, p, h, 5, func(now time.Time) {
		p.Step(now, estimate("a", now, ramp(1)))
		p.Step(now, both("b", now, 1, gib))
	}, func(*trimtab.Plan) {})
	for _, plan := range plans {
		if why := plan.Held["a"].Text; !strings.Contains(why, "memory") {
			t.Errorf("a is held for %q, want that memory is named", why)
		}
		for _, a := range plan.Actions {
			if a.Workload == "a" {
				t.Errorf("%s", a.Why.Summary)
			}
		}
	}
}

// The host says that 6 GiB are in use: no plan asks for less.
func TestNoPlanGoesBelowWhatAHostSaysIsInUse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cfg := several(trimtab.Act)
		p, err := planner.New(cfg)
		if err != nil {
			r.Fatal(err)
		}
		use := rapid.Float64Range(gib/4, 7*gib).Draw(r, "in use")
		p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
		now, has := t0, 8.*gib
		for range 12 {
			now = now.Add(time.Second)
			in := &trimtab.Holding{Host: "h1", Time: now, Epoch: 1, Sequence: uint64(now.Sub(t0) / time.Second)}
			for _, n := range []string{"a", "b"} {
				in.Targets = append(in.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: in.Pool, Host: in.Host, Workload: n, Resource: "cpu"}, Now: trimtab.Units(1), Min: 0.1, Max: 8},
					trimtab.KnobState{KnobID: trimtab.KnobID{Pool: in.Pool, Host: in.Host, Workload: n, Resource: "memory"}, Now: trimtab.Units(has), Min: use, Max: 16 * gib})
			}
			p.Step(now, in)
			for _, n := range []string{"a", "b"} {
				p.Step(now, both(n, now, rapid.Float64Range(0.5, 8).Draw(r, "cpu"), rapid.Float64Range(gib/4, 16*gib).Draw(r, "memory")))
			}
			for _, v := range p.Step(now, nil) {
				for _, a := range v.(*trimtab.Plan).Actions {
					if a.Resource == "memory" && a.Set.Value < math.Min(use, has)-1 {
						r.Fatalf("memory set to %v, in use %v: %s", a.Set, use, a.Why.Summary)
					}
				}
			}
		}
	})
}

func TestSeveralResourcesNeedAPolicyThatSharesThem(t *testing.T) {
	for name, spoil := range map[string]func(*planner.Config){
		"policy":   func(c *planner.Config) { c.Policy = fair.NJCPolicy{} },
		"twice":    func(c *planner.Config) { c.Others = append(c.Others, c.Others[0]) },
		"first":    func(c *planner.Config) { c.Others[0].Name = "cpu" },
		"unit":     func(c *planner.Config) { c.Others[0].Unit = 1 },
		"capacity": func(c *planner.Config) { c.Others[0].Capacity = math.NaN() },
		"unknown":  func(c *planner.Config) { c.Workloads[0].Others = map[string]planner.Bounds{"llc": {}} },
		"min":      func(c *planner.Config) { c.Workloads[0].Others = map[string]planner.Bounds{"memory": {Min: 17 * gib}} },
		"negative": func(c *planner.Config) { c.Workloads[0].Others = map[string]planner.Bounds{"memory": {Default: -1}} },
	} {
		cfg := several(trimtab.Act)
		spoil(&cfg)
		if _, err := planner.New(cfg); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// A restarted planner is as patient as the old one, for every resource.
func TestDemandsOfAllResourcesOutliveARestart(t *testing.T) {
	p, err := planner.New(several(trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{name: "h1", names: []string{"a", "b"}, more: []string{"a", "b"}, now: map[string]trimtab.Amount{
		"a": trimtab.Units(4), "b": trimtab.Units(4), "a memory": trimtab.Units(8 * gib), "b memory": trimtab.Units(8 * gib)}}
	tell := func(p *planner.Planner) func(now time.Time) {
		return func(now time.Time) { p.Step(now, both("a", now, 6, 2*gib)); p.Step(now, both("b", now, 1, 12*gib)) }
	}
	play(t, p, h, 3, tell(p), func(*trimtab.Plan) {})
	again, err := planner.New(several(trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range p.Snapshot() {
		if err := again.Restore(name, state); err != nil {
			t.Fatal(err)
		}
		if got := again.Snapshot()[name]; string(got) != string(state) {
			t.Errorf("restored %s, want %s", got, state)
		}
		if !strings.Contains(string(state), `"memory":{"demand":`) {
			t.Errorf("state %s", state)
		}
	}
}

// One that is solved for one of its resources and not for the other would be held and planned for at
// once.
func TestAWorkloadThatIsUnsolvedForOneResourceIsHeldWithAll(t *testing.T) {
	c := several(trimtab.Act)
	c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: "full", Mode: trimtab.Act, SLO: 0.9})
	p, err := planner.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{name: "h1", names: []string{"a", "b", "full"}, more: []string{"a", "b"}, now: map[string]trimtab.Amount{"full": trimtab.Units(8),
		"a": trimtab.Units(0.1), "b": trimtab.Units(0.1), "a memory": trimtab.Units(8 * gib), "b memory": trimtab.Units(8 * gib)}}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	now := t0.Add(time.Second)
	holding := h.holding(now)
	for i := range holding.Targets {
		if k := &holding.Targets[i]; k.Workload == "a" && k.Resource == "memory" {
			k.ReadOnly = "nobody may write it"
		}
	}
	p.Step(now, holding)
	p.Step(now, both("a", now, 6, 2*gib))
	p.Step(now, both("b", now, 1, 12*gib))
	plan := p.Step(now, nil)[0].(*trimtab.Plan)
	for _, name := range []string{"a", "b"} {
		if got := plan.Held[name]; got.Code != codes.HeldUnsolved {
			t.Errorf("%s: held %+v, want unsolved", name, got)
		}
	}
	if len(plan.Actions) > 0 {
		t.Errorf("held, and moved: %+v", plan.Actions)
	}
}
