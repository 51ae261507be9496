package planner_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// Three workloads, each on a host of its own, whose baselines fit the pool. One
// host falls silent, whatever was lent to whom: when its lease ends and its
// baseline is back, the pool is not over its capacity, and nobody was lowered
// below its own baseline for that.
func TestWhatALostHostHasLentIsTakenBackBeforeItsLeaseEnds(t *testing.T) {
	const capacity, unit = 8.0, 0.1
	lease := 30 * time.Second
	recalled, cases := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cases++
		cfg := pool(fair.NJCPolicy{}, trimtab.Act)
		cfg.Capacity, cfg.Unit, cfg.Lease, cfg.Round = capacity, unit, lease, time.Second
		names := []string{"a", "b", "c"}
		now, baseline := map[string]float64{}, map[string]float64{}
		left, most := 80, 80
		for i, n := range names {
			cfg.Workloads[i].Max = capacity
			least := 2 * (len(names) - 1 - i)
			v := rapid.IntRange(2, left-least).Draw(t, n)
			b := rapid.IntRange(2, most-least).Draw(t, n+" baseline")
			left, most = left-v, most-b
			now[n], baseline[n] = float64(v)*unit, float64(b)*unit
		}
		p, err := planner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		epoch, sequence := uint64(1), map[string]uint64{}
		tell := func(at time.Time, n string) {
			p.Step(at, &trimtab.Holding{Host: "h-" + n, Time: at, Epoch: epoch, Sequence: sequence[n], Targets: []trimtab.KnobState{
				{KnobID: trimtab.KnobID{Pool: "p", Host: "h-" + n, Workload: n, Resource: "cpu"}, Knob: "test", Now: trimtab.Units(now[n]), Baseline: trimtab.Units(baseline[n]), Min: unit, Max: capacity}}})
		}
		p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: epoch})
		demands := map[string]float64{}
		for _, n := range names {
			demands[n] = float64(rapid.IntRange(1, 80).Draw(t, n+" demand")) * unit
			tell(t0, n)
		}
		known := rapid.Bool().Draw(t, "known") // without estimates the guard lowers nobody
		late := rapid.Bool().Draw(t, "late")
		silent := rapid.SampledFrom(names).Draw(t, "silent")
		for at := t0; !at.After(t0.Add(lease)); at = at.Add(time.Second) {
			if known {
				told(p, at, demands)
			}
			for _, v := range p.Step(at, nil) {
				plan := v.(*trimtab.Plan)
				for _, a := range plan.Actions {
					if a.Workload == silent {
						continue // it hears nothing, and is not heard
					}
					if a.Set.Value < now[a.Workload] && strings.Contains(a.Why.Summary, "which is lost") {
						recalled++
						if a.Set.Value < baseline[a.Workload]-1e-9 {
							t.Fatalf("%s is lowered from %v to %v, below its baseline %v", a.Workload, now[a.Workload], a.Set, baseline[a.Workload])
						}
					}
					now[a.Workload] = a.Set.Value
				}
				for _, n := range names {
					if n != silent {
						sequence[n] = plan.Sequence
						o := done(plan, at)
						o.Host = "h-" + n
						p.Step(at, o)
					}
				}
			}
			for _, n := range names {
				// What a host said before its link was cut may arrive at any time.
				if n != silent || late && at.Sub(t0) > lease/2 {
					tell(at, n)
				}
			}
		}
		now[silent] = baseline[silent]
		if sum := now["a"] + now["b"] + now["c"]; sum > capacity+1e-9 {
			t.Fatalf("the pool is over its capacity: %v of %v", now, baseline)
		}
	})
	if recalled == 0 && cases >= 100 { // of the few that `make test` plays perhaps none
		t.Error("nothing was ever taken back")
	}
}
