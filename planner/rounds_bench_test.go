package planner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// BenchmarkRoundsOverHosts is a whole round, with its ledger, guard, spreading and
// reasons: ms of the processor a round, a holding, and the bytes of the plan.
func BenchmarkRoundsOverHosts(b *testing.B) {
	for _, size := range [][2]int{{100, 10}, {1000, 100}, {10000, 1000}} {
		for _, objective := range []policy.Policy{fair.ResourceFair{}, fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05}} {
			b.Run(fmt.Sprintf("%s/%dx%dx20", objective.Name(), size[0], size[1]), func(b *testing.B) {
				roundsOverHosts(b, objective, size[0], size[1])
			})
		}
	}
}

func roundsOverHosts(b *testing.B, objective policy.Policy, n, hosts int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: float64(n), Unit: 0.01, Step: 10, Round: 10 * time.Second, Lease: time.Hour, Policy: objective}
	on := make([]*trimtab.Holding, hosts)
	for h := range on {
		on[h] = &trimtab.Holding{Pool: "p", Host: fmt.Sprintf("h%04d", h), Epoch: 1, Capacity: map[string]float64{"cpu": 1.1 * float64(n) / float64(hosts)}}
	}
	for i := range n {
		name := fmt.Sprintf("w%05d", i)
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Act, SLO: 0.9, Min: 0.001, Max: 1})
		for k := range 20 {
			h := on[(i*7+k*(hosts/10+1))%hosts]
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: h.Host, Workload: name, Instance: fmt.Sprint(k), Resource: "cpu"},
				Knob: "bench", Now: trimtab.Units(0.05), Baseline: trimtab.Units(0.05), Since: t0, Min: 0.001, Max: 1})
		}
	}
	p := leads(b, cfg)
	now, heard, rounds, bytes, actions := t0, 0.0, 0.0, 0, 0
	for b.Loop() {
		now = now.Add(10 * time.Second)
		from := processorTime()
		for _, h := range on {
			h.Time = now
			p.Step(now, h)
		}
		heard += (processorTime() - from).Seconds()
		for i := range cfg.Workloads {
			p.Step(now, estimate(cfg.Workloads[i].Name, now, ramp(0.3+1.6*r.Float64())))
		}
		from = processorTime()
		out := plans(p.Step(now, nil))
		rounds += (processorTime() - from).Seconds()
		for _, plan := range out {
			actions += len(plan.Actions)
			text, err := json.Marshal(plan)
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(text)
		}
	}
	b.ReportMetric(1e3*rounds/float64(b.N), "ms/round")
	b.ReportMetric(1e3*heard/float64(b.N*hosts), "ms/holding")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/round")
	b.ReportMetric(float64(actions)/float64(b.N), "actions/round")
}
