package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// openly is a holding in which some workloads have no limit, and the most that they may have is
// the whole pool.
func openly(at time.Time, sequence uint64, has map[string]float64, open ...string) *trimtab.Holding {
	for _, name := range open {
		has[name] = 8
	}
	h := holding(at, 1, sequence, has)
	for i := range h.Targets {
		for _, name := range open {
			if h.Targets[i].Workload == name {
				h.Targets[i].Now = trimtab.Unlimited()
			}
		}
	}
	return h
}

// uses is an estimate of a workload that is not planned for, with what it uses; < 0: not known.
func uses(name string, at time.Time, cores float64) *trimtab.Estimate {
	e := &trimtab.Estimate{Workload: name, Time: at, Model: "test/1", Hold: &trimtab.Held{Code: trimtab.HeldMissing, Text: "no load from spans"}}
	if cores >= 0 {
		e.Inputs = []trimtab.Input{{Name: string(trimtab.Usage), Value: cores, Age: 1}}
	}
	return e
}

// a learns, is idle or was restarted, and has no limit; its max is the whole pool.
func TestAWorkloadWithoutALimitTakesWhatItUsesAndTheOthersArePlannedFor(t *testing.T) {
	for _, policy := range []policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Egalitarian{}, welfare.Social{}} {
		for name, c := range map[string]struct {
			use, most float64 // most is what the limits of b and c may add up to
		}{
			"idle":          {0, 7.9},
			"busy":          {1, 7},
			"uses the rest": {6, 8 - 8./3},
			"not known":     {-1, 8 - 8./3},
		} {
			p, has, last, now := served(t, policy, map[string]float64{}), map[string]float64{"b": 1, "c": 3}, uint64(0), t0
			for range 8 {
				now = now.Add(11 * time.Second)
				p.Step(now, openly(now, last, has, "a"))
				p.Step(now, uses("a", now, c.use))
				queue := plansOf(p.Step(now, asks(now, "b", 2, 1, 0.5))) // which hurries
				queue = append(queue, plansOf(p.Step(now, asks(now, "c", 1, 0, 1)))...)
				queue = append(queue, plansOf(p.Step(now, nil))...)
				for len(queue) > 0 {
					plan := queue[0]
					if why := plan.Held["b"].Text; why != "" {
						t.Fatalf("%s: %s: b is held: %s", policy.Name(), name, why)
					}
					o := done(plan, now)
					for _, a := range plan.Actions {
						if has[a.Workload] = a.Set.Value; a.Workload == "a" {
							t.Fatalf("%s: %s: %s", policy.Name(), name, a.Why.Summary)
						}
					}
					last, queue = plan.Sequence, append(queue[1:], plansOf(p.Step(now, o))...)
				}
			}
			if has["b"] < 2 || has["b"]+has["c"] > c.most+1e-9 {
				t.Errorf("%s: %s: %v, want that b has the 2 that it needs, and both at most %v", policy.Name(), name, has, c.most)
			}
		}
	}
}

func TestAWorkloadWithoutALimitAndWithoutTrafficKeepsNobodyFromARecommendation(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Recommend)
	cfg.Round = 10 * time.Second
	p, err := planner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	now, advised := t0, map[string]string{}
	for round := range 20 {
		now = now.Add(11 * time.Second)
		p.Step(now, openly(now, uint64(round), map[string]float64{}, "a", "b", "c"))
		p.Step(now, uses("a", now, 0))
		for _, name := range []string{"b", "c"} {
			e := asks(now, name, 1, 0, 1)
			e.Inputs = append(e.Inputs, trimtab.Input{Name: string(trimtab.Usage), Value: 0.8, Age: 1})
			p.Step(now, e)
		}
		for _, plan := range plansOf(p.Step(now, nil)) {
			for name, why := range plan.Held {
				if name != "a" {
					t.Fatalf("%s is held: %s", name, why.Text)
				}
			}
			for _, a := range plan.Actions {
				advised[a.Workload] = a.Set.String()
			}
		}
	}
	if advised["b"] != "1.2" || advised["c"] != "1.2" || advised["a"] != "" {
		t.Errorf("recommended %v, want 1.5 times the 0.8 cores that b and c use", advised)
	}
}

// The guard lowers nobody on whom an alert fires: without a limit it would count as the pool.
func TestAnAlertOnAWorkloadWithoutALimitKeepsNobodyFromBeingPlannedFor(t *testing.T) {
	p := served(t, fair.NJCPolicy{}, map[string]float64{})
	now := t0.Add(11 * time.Second)
	for _, name := range []string{"a", "b"} {
		p.Step(now, &trimtab.Alert{Workload: name, Name: "slow", Group: name, Firing: true, Time: now})
	}
	raised := false
	for round := range 4 {
		now = now.Add(11 * time.Second)
		p.Step(now, openly(now, uint64(round+1), map[string]float64{"c": 1}, "a", "b"))
		for name, need := range map[string]float64{"a": 1, "b": 1, "c": 2} {
			e := asks(now, name, need, 0, 1)
			if name == "c" {
				e = asks(now, name, need, 1, 0.5)
			}
			e.Inputs = append(e.Inputs, trimtab.Input{Name: string(trimtab.Usage), Value: 0.9, Age: 1})
			p.Step(now, e)
		}
		for _, plan := range plansOf(p.Step(now, nil)) {
			if len(plan.Held) > 0 {
				t.Fatalf("held: %v", plan.Held)
			}
			for _, a := range plan.Actions {
				raised = raised || a.Workload == "c" && a.Expect.Less(a.Set)
				if a.Workload != "c" {
					t.Errorf("%s", a.Why.Summary)
				}
			}
		}
	}
	if !raised {
		t.Error("c misses its SLO beside two workloads that use 0.9 of 8 cores each, and is not raised")
	}
}

func TestWhoHoldsWhatOthersLackIsNamed(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Workloads[0].Min = 2 // c
	p := started(t, cfg, map[string]float64{"a": 5, "b": 1, "c": 2})
	p.Step(t0, uses("a", t0, 5))
	p.Step(t0, uses("b", t0, 1.5))
	p.Step(t0, holding(t0.Add(time.Millisecond), 1, 0, map[string]float64{"a": 5, "b": 1.5, "c": 1.5}))
	p.Step(t0, estimate("c", t0, ramp(2)))
	why := one(t, p.Step(t0, nil)).Held["c"].Text
	for _, want := range []string{"the pool has 8 cores", "at least 2 cores", "a holds 5 cores (estimate: no load from spans)", "b holds 1.5 cores"} {
		if !strings.Contains(why, want) {
			t.Errorf("c is held: %q, want %q", why, want)
		}
	}
}
