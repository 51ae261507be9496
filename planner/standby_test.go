package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// of makes a holding that of another host; problem is what its knobs have.
func of(h *trimtab.Holding, host, problem string) *trimtab.Holding {
	h.Host = host
	for i := range h.Targets {
		h.Targets[i].Host, h.Targets[i].Problem = host, problem
		if problem != "" {
			h.Targets[i].Now = trimtab.Amount{}
		}
	}
	return h
}

const noGroup = "probe cgroup shop/a: no such file or directory"

func TestAStandbyHostWithoutTheKnobDoesNotStopTheHostThatHasIt(t *testing.T) {
	for _, standby := range []string{"h0", "h9"} { // before and after it in order
		p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
		p.Step(t0, of(holding(t0, 1, 0, equal), standby, noGroup))
		told(p, t0, skewed)
		plan := one(t, p.Step(t0, nil))
		if len(plan.Held) > 0 || len(plan.Actions) == 0 {
			t.Fatalf("standby %s: held %v, actions %v", standby, plan.Held, plan.Actions)
		}
		for _, a := range plan.Actions {
			if a.Host != "h1" {
				t.Errorf("an action on %s of host %s", a.Workload, a.Host)
			}
		}
	}
}

func TestAWorkloadThatTwoHostsRunHasAnInstanceOnEach(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Capacity = 16
	p := started(t, cfg, equal)
	p.Step(t0, of(holding(t0, 1, 0, equal), "h2", ""))
	told(p, t0, map[string]float64{"a": 1, "b": 1, "c": 1})
	plan := one(t, p.Step(t0, nil))
	on := map[string]trimtab.Amount{}
	for _, a := range plan.Actions {
		if a.Workload == "a" {
			on[a.Host] = a.Set
		}
	}
	if len(plan.Held) > 0 || len(on) != 2 || on["h1"] != on["h2"] {
		t.Errorf("held %v, a on %v", plan.Held, on)
	}
}

func TestAStandbyTakesOverFromAHostThatIsSilentForALease(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Act)
	cfg.Capacity = 16 // what the silent one held stays reserved
	p := started(t, cfg, equal)
	at := t0.Add(time.Hour)
	p.Step(at, of(holding(at, 1, 0, equal), "h2", ""))
	told(p, at, skewed)
	plan := one(t, p.Step(at, nil))
	if len(plan.Held) > 0 || len(plan.Actions) == 0 || plan.Actions[0].Host != "h2" {
		t.Errorf("held %v, actions %+v", plan.Held, plan.Actions)
	}
}

func TestAWorkloadWhoseKnobsAllHaveAProblemIsHeldWithTheProblem(t *testing.T) {
	p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	p.Step(t0, of(holding(t0, 1, 0, equal), "h1", noGroup))
	p.Step(t0, of(holding(t0, 1, 0, equal), "h2", noGroup))
	told(p, t0, skewed)
	if held := one(t, p.Step(t0, nil)).Held["a"].Text; !strings.Contains(held, noGroup) {
		t.Errorf("held %q", held)
	}
}
