package planner_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/pipeline/steptest"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
	"github.com/trimtab/trimtab/quantity"
)

func TestThePlannerMeetsTheContractOfSteps(t *testing.T) {
	one := pool(fair.NJCPolicy{}, trimtab.Act)
	one.Guard, one.Urgent, one.AlertGap = guard.Config{}, time.Second, 2*time.Second
	advice := pool(welfare.TieBreak{Objective: welfare.Egalitarian{}}, trimtab.Recommend)
	several := pool(dominant.Policy{}, trimtab.Act)
	several.Others = []planner.Resource{{Name: "memory", Capacity: 16 * gib, Unit: gib / 64}}
	for i := range several.Workloads {
		several.Workloads[i].Others = map[string]planner.Bounds{"memory": {Min: gib / 8}}
	}
	for _, cfg := range []planner.Config{one, advice, several} {
		t.Run(cfg.Policy.Name(), func(t *testing.T) {
			steptest.Run(t, steptest.Suite{
				New: func() trimtab.Step {
					p, err := planner.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					return p
				},
				Live:    func(t *rapid.T, l *steptest.Life) { live(t, l.Give, len(cfg.Others) > 0) },
				Repeats: []trimtab.Kind{trimtab.KindEstimate, trimtab.KindHolding, trimtab.KindOutcome, trimtab.KindAlert, trimtab.KindCommand},
				Foreign: ofOthers,
				Forgets: "what the knobs hold, which a new term reads from the hosts, and what was seen to be enough",
			})
		})
	}
}

// live plays hosts, an analyzer, people and an alerting system around a planner.
func live(t *rapid.T, step func(now time.Time, in trimtab.Value) []trimtab.Value, memory bool) {
	now := t0
	h := &host{name: "h1", names: []string{"a", "b", "c"}, now: map[string]trimtab.Amount{}, pending: map[string]trimtab.Amount{}, slow: rapid.Bool().Draw(t, "slow")}
	for _, n := range h.names {
		h.now[n] = trimtab.Units(float64(rapid.IntRange(1, 26).Draw(t, "has")) / 10)
		if memory {
			h.more = append(h.more, n)
			h.now[n+" memory"] = trimtab.Units(float64(rapid.IntRange(1, 40).Draw(t, "has of memory")) * gib / 8)
		}
	}
	var plans []*trimtab.Plan
	give := func(v trimtab.Value) {
		for _, out := range step(now, v) {
			plans = append(plans, out.(*trimtab.Plan))
		}
	}
	give(&trimtab.Leader{Pool: "p", Epoch: 1})
	give(h.holding(now))
	for range rapid.IntRange(10, 30).Draw(t, "events") {
		now = now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
		switch name := rapid.SampledFrom(h.names).Draw(t, "workload"); rapid.IntRange(0, 9).Draw(t, "event") {
		case 0, 1, 2:
			give(nil)
		case 3:
			clear(h.pending)
			give(h.holding(now))
		case 4, 5, 6:
			e := estimate(name, now, ramp(rapid.Float64Range(0.2, 6).Draw(t, "full")))
			if memory {
				e.Curves = map[string]*trimtab.Curve{"memory": ramp(rapid.Float64Range(0.2*gib, 12*gib).Draw(t, "full of memory"))}
			}
			p := rapid.Float64Range(0.5, 1).Draw(t, "performance")
			has := h.inForce(name).Value
			e.Performance, e.Requests, e.Allocation = &p, 100, &has
			give(e)
		case 7:
			give(&trimtab.Alert{Workload: name, Name: "slow", Group: name, Fingerprint: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "alert"), Firing: rapid.Bool().Draw(t, "firing"), Time: now})
		case 8:
			c := &trimtab.Command{Pool: "p", Time: now, Workload: name, Plan: "1-1",
				Verb: rapid.SampledFrom([]trimtab.Verb{trimtab.Pause, trimtab.Resume, trimtab.Round, trimtab.Release, trimtab.Apply}).Draw(t, "verb")}
			if len(plans) > 0 {
				c.Plan = rapid.SampledFrom(plans).Draw(t, "plan").ID()
			}
			give(c)
		default:
			for len(plans) > 0 && rapid.IntRange(0, 4).Draw(t, "answered") > 0 {
				plan := plans[0]
				plans = plans[1:]
				give(h.carryOut(plan, now, func(string) (bool, bool) { return false, true }))
			}
		}
	}
}

func TestAPolicyInAWrapperPlansAsItDoesWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := pool(rapid.SampledFrom([]policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Social{}, welfare.Nash{},
			welfare.TieBreak{Objective: welfare.Egalitarian{}}, endtoend.Policy{}, dominant.Policy{}}).Draw(t, "policy"), trimtab.Act)
		cfg.Guard, cfg.Urgent = guard.Config{}, time.Second
		memory := cfg.Policy.Traits().Share != nil
		if memory {
			cfg.Others = []planner.Resource{{Name: "memory", Capacity: 16 * gib, Unit: gib / 64}}
			for i := range cfg.Workloads {
				cfg.Workloads[i].Others = map[string]planner.Bounds{"memory": {Min: gib / 8}}
			}
		}
		bare, err := planner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Policy = struct{ policy.Policy }{cfg.Policy}
		wrapped, err := planner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		live(t, func(now time.Time, in trimtab.Value) []trimtab.Value {
			want, got := bare.Step(now, in), wrapped.Step(now, in)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, in a wrapper %+v", cfg.Policy.Name(), want, got)
			}
			return want
		}, memory)
	})
}

// ofOthers draws what is none of the business of a planner of pool p.
func ofOthers(t *rapid.T, now time.Time) trimtab.Value {
	h := &host{name: "h1", names: []string{"a", "x"}, now: map[string]trimtab.Amount{"a": trimtab.Units(9), "x": trimtab.Units(1)}}
	elsewhere := h.holding(now)
	elsewhere.Pool, elsewhere.Epoch = "q", 9
	for i := range elsewhere.Targets {
		elsewhere.Targets[i].Pool = "q"
	}
	return rapid.SampledFrom([]trimtab.Value{
		estimate("x", now, ramp(1)), elsewhere,
		&trimtab.Leader{Pool: "q", Epoch: 9}, &trimtab.Leader{Pool: "q"},
		&trimtab.Outcome{Pool: "q", Host: "h1", Epoch: 1, Sequence: 1, Step: 1, Time: now},
		&trimtab.Alert{Workload: "x", Name: "slow", Group: "g", Firing: true, Time: now},
		&trimtab.Command{Pool: "q", Verb: trimtab.Pause, Time: now}, &trimtab.Command{Pool: "p", Verb: trimtab.Release, Workload: "x", Time: now},
		&trimtab.Sample{Workload: "a", Quantity: quantity.Load, Source: "test", Time: now, Value: 1},
		&trimtab.Sketch{Workload: "a", From: now.Add(-time.Second), To: now},
		&trimtab.Plan{Pool: "p", Epoch: 9, Sequence: 1, Step: 1, Time: now, Lease: 1},
		&trimtab.SpanFrame{Data: []byte(fmt.Sprint(now))},
	}).Draw(t, "foreign")
}
