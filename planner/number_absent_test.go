package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/trial"
	"github.com/trimtab/trimtab/planner"
)

// faultOf is what goes wrong with the inputs of a workload of a cluster, from a moment on;
// each may be asked for an estimate and a holding of a second, either of which may be nil.
func faultOf(random *rand.Rand) (name string, spoil func(now time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding)) {
	type spoiler = func(time.Time, *trimtab.Estimate, *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding)
	unreadable := func(h *trimtab.Holding, why string, resource string) *trimtab.Holding {
		for i := range h.Targets {
			if resource == "" || h.Targets[i].Resource == resource {
				h.Targets[i].Problem = why
			}
		}
		return h
	}
	frozen := time.Time{}
	all := []struct {
		name  string
		spoil spoiler
	}{
		{"Prometheus down", func(_ time.Time, _ *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			return nil, h
		}},
		{"an empty answer", func(_ time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			return &trimtab.Estimate{Workload: e.Workload, Time: e.Time}, h
		}},
		{"NaN", func(_ time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			nan := math.NaN()
			e.Performance, e.Load.Now, e.Load.Upper = &nan, nan, nan
			return e, h
		}},
		{"stale", func(now time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			if frozen.IsZero() {
				frozen = now.Add(-5 * time.Minute)
			}
			e.Time = frozen
			return e, h
		}},
		{"spans gone", func(_ time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			e.Hold = &trimtab.Held{Code: codes.HeldMissing, Text: "no spans"}
			return e, h
		}},
		{"API server away", func(_ time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			return e, unreadable(h, "the API server said nothing of pods for 31s", "")
		}},
		{"API server away, no word of it", func(_ time.Time, e *trimtab.Estimate, _ *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			return e, nil
		}},
		{"whether there is an HPA cannot be told", func(_ time.Time, e *trimtab.Estimate, h *trimtab.Holding) (*trimtab.Estimate, *trimtab.Holding) {
			return nil, unreadable(h, "whether an autoscaler has shop/Deployment/a cannot be told", trimtab.Replicas)
		}},
	}
	one := all[random.IntN(len(all))]
	return one.name, one.spoil
}

// Item 1 of the acceptance list of Kubernetes: while an input is absent, whatever it is and
// whatever the others say, no plan lowers a limit or a number.
func TestNoInputOfAClusterThatFailsLowersSizeOrNumber(t *testing.T) {
	tr := trial.Start(t, trial.Some(60, 150))
	fell := 0
	for n := range tr.N {
		p, d := counted(t, 16, func(w *planner.WorkloadConfig) { w.Max = 2 }), deployed(2+tr.Rand.IntN(4), 0.5+tr.Rand.Float64()*1.5)
		d.startup = time.Duration(1+tr.Rand.IntN(20)) * time.Second
		need := 0.3 + tr.Rand.Float64()*5
		warm := 25 + tr.Rand.IntN(30)
		d.play(p, t0, warm, steady(need))
		name, spoil := faultOf(tr.Rand)
		replicas, least := d.replicas, map[string]float64{}
		for _, pod := range d.pods {
			least[pod.name] = pod.limit
		}
		low := need * tr.Rand.Float64() // what is asked for meanwhile would lower it
		for i := range 40 {
			now := t0.Add(time.Duration(warm+i) * time.Second)
			d.run(now)
			e, h := spoil(now, asks(now, "a", max(low, 0.05), 0, 1), d.holding(now))
			var out []*trimtab.Plan
			if h != nil {
				out = plans(p.Step(now, h))
			}
			if e != nil && e.Validate() == nil { // the bus refuses what is invalid
				out = append(out, plans(p.Step(now, e))...)
			}
			out = append(out, plans(p.Step(now, nil))...)
			for len(out) > 0 {
				was := fmt.Sprint(d.replicas, d.pods)
				plan := out[0]
				out = append(out[1:], plans(p.Step(now, d.carryOut(plan, now)))...)
				if d.replicas < replicas {
					tr.Failf("%s: second %d: %d pods, had %d: %s", name, i, d.replicas, replicas, was)
				}
				for _, pod := range d.pods {
					if v, ok := least[pod.name]; ok && pod.limit < v-1e-9 {
						tr.Failf("%s: second %d: %s has %v, had %v: %s: %s", name, i, pod.name, pod.limit, v, was, saysOf([]*trimtab.Plan{plan}))
					}
					least[pod.name] = max(least[pod.name], pod.limit)
				}
				replicas = max(replicas, d.replicas)
			}
		}
		if n < 5 { // once the input is back, the same is lowered
			d.play(p, t0.Add(time.Duration(warm+40)*time.Second), 400, steady(max(low/2, 0.05)))
			for _, pod := range d.pods {
				if pod.limit < least[pod.name]-1e-9 || d.replicas < replicas {
					fell++
					break
				}
			}
		}
		tr.Case()
	}
	if fell == 0 {
		t.Error("nothing is lowered with good inputs either")
	}
}
