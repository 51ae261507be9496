package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// BenchmarkFreshInstances doubles the instances of every workload at once: ms of the
// processor for the holdings that tell of them, all together, and for the round that
// gives each what its siblings have.
func BenchmarkFreshInstances(b *testing.B) {
	for _, size := range [][3]int{{100, 10, 10}, {1000, 100, 10}, {10000, 1000, 10}, {10, 1000, 10000}, {1, 1000, 100000}} {
		b.Run(fmt.Sprintf("%dx%dx%d", size[0], size[1], size[2]), func(b *testing.B) {
			for b.Loop() {
				freshInstances(b, size[0], size[1], size[2])
			}
		})
	}
}

func freshInstances(b *testing.B, n, hosts, each int) {
	const amount = 0.064
	pool := 4 * amount * float64(n*each)
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: pool, Unit: 0.01 * float64(each), Round: 10 * time.Second, Lease: 15 * time.Second, Policy: fair.NJCPolicy{}}
	f := fleetOf(hosts, 1.1*pool/float64(hosts))
	put := func(from, to int, amount float64) {
		for i := range n {
			for k := from; k < to; k++ {
				f.put(f.hosts[(i*7+k*(hosts/10+1))%hosts], cfg.Workloads[i].Name, fmt.Sprintf("%05d", k), amount)
			}
		}
	}
	for i := range n {
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: fmt.Sprintf("w%05d", i), Mode: trimtab.Act, SLO: 0.9, Min: 0.001, Max: 1})
	}
	put(0, each, amount)
	p := leads(b, cfg)
	now, placed := t0, 0
	var holdings, rounds time.Duration
	for round := range 4 {
		now = now.Add(10 * time.Second)
		if round == 3 {
			put(each, 2*each, amount/2)
		}
		said := f.holdings(now)
		slices.Reverse(said) // each new knob comes before all that are known
		holdings = f.steps(p, now, said, nil)
		for i := range cfg.Workloads {
			p.Step(now, estimate(cfg.Workloads[i].Name, now, ramp(amount*float64(each))))
		}
		var out []*trimtab.Plan
		rounds = f.steps(p, now, []trimtab.Value{nil}, &out)
		for k := 0; k < len(out); k++ {
			f.steps(p, now, f.carryOut(now, out[k]), &out)
			for i := range out[k].Actions {
				if strings.Contains(out[k].Actions[i].Why.Summary, "just appeared") {
					placed++
				}
			}
		}
	}
	b.ReportMetric(1e3*rounds.Seconds(), "ms/round")
	b.ReportMetric(1e3*holdings.Seconds(), "ms/holdings")
	b.ReportMetric(float64(placed), "placed")
	b.ReportMetric(0, "ns/op")
}
