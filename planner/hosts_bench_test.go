package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// onHosts puts n workloads of 100 units each, who need twice that, on hosts that
// have as much in all, 20 instances each, at hosts drawn for each workload, with
// loads that differ by up to a half.
func onHosts(n, hosts int) *policy.Problem {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := large("learnt", n, 100*n, 300)
	for h := range hosts {
		p.Hosts = append(p.Hosts, policy.Host{Name: fmt.Sprintf("h%04d", h), Units: float64(p.Units) / float64(hosts) * (0.75 + r.Float64()/2)})
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Curve, w.Reports = wideCurve(r, 50+300*r.Float64(), float64(p.Units)), 10_000
		w.Demand = policy.DemandOf(w.Curve, w.SLO, 1, 1, p.Units).Mean
		on, sum := r.Perm(hosts)[:min(20, hosts)], 0.0
		slices.Sort(on)
		for _, h := range on {
			f := 1 + r.Float64()/2
			w.Parts, sum = append(w.Parts, policy.Part{Host: h, Share: f}), sum+f
		}
		for k := range w.Parts {
			w.Parts[k].Share /= sum
		}
	}
	return p
}

// BenchmarkHosts solves one round over hosts: ms a round, and the certified gap to
// the optimum.
func BenchmarkHosts(b *testing.B) {
	for _, size := range [][2]int{{100, 10}, {1000, 100}, {10000, 1000}} {
		p := onHosts(size[0], size[1])
		for _, policy := range []policy.Policy{fair.ResourceFair{}, fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05},
			welfare.Nash{MoveCost: 0.05}, welfare.Own{Title: "sum", MoveCost: 0.05}, welfare.TieBreak{Objective: welfare.Own{Title: "secured sum"}}, welfare.TieBreak{Objective: welfare.Own{Title: "secured minimum", Least: true}}} {
			b.Run(fmt.Sprintf("%s/%dx%d", policy.Name(), size[0], size[1]), func(b *testing.B) {
				gap, over, from := 0.0, 0.0, processorTime()
				for b.Loop() {
					s, err := policy.Solve(p)
					if err != nil {
						b.Fatal(err)
					}
					gap, over = s.Gap(), usedMost(p, s.Units)
				}
				if over > 1+1e-9 {
					b.Fatalf("a host has %v times what it holds", over)
				}
				b.ReportMetric((processorTime()-from).Seconds()*1e3/float64(b.N), "cpu-ms/round")
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/round")
				b.ReportMetric(100*gap, "gap_%")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// severalOnHosts asks about n workloads that need cpu and memory, twice what there is,
// on hosts that have different amounts of both; with floors that bind, or groups.
func severalOnHosts(n, hosts int, kind string) *policy.Question {
	r := rand.New(rand.NewPCG(2, uint64(n)))
	one := onHosts(n, hosts)
	q := &policy.Question{}
	for _, name := range []string{"cpu", "memory"} {
		of := policy.Pooled{Name: name, Unit: 1, Capacity: float64(one.Units), Units: one.Units}
		for _, h := range one.Hosts {
			of.Hosts = append(of.Hosts, policy.Host{Name: h.Name, Units: float64(one.Units) / float64(hosts) * (0.75 + r.Float64()/2)})
		}
		q.Resources = append(q.Resources, of)
	}
	for i := range one.Workloads {
		w := &one.Workloads[i]
		c := policy.Claim{Name: w.Name, Weight: 1 + float64(i%3)}
		if kind == "groups" {
			c.Group = fmt.Sprintf("g%d/h%d", i%10, i%100)
		}
		for range q.Resources {
			v := policy.Want{Min: 1, Max: 400, Current: 100, Demand: 50 + r.IntN(300), Parts: w.Parts}
			if kind == "floors" {
				v.Min = r.IntN(60)
			}
			c.Wants = append(c.Wants, v)
		}
		q.Workloads = append(q.Workloads, c)
	}
	return q
}

// BenchmarkSeveralOverHosts shares cpu and memory over hosts: ms a round.
func BenchmarkSeveralOverHosts(b *testing.B) {
	for _, size := range [][2]int{{100, 10}, {1000, 100}, {10000, 1000}} {
		for _, kind := range []string{"free", "floors", "groups"} {
			q := severalOnHosts(size[0], size[1], kind)
			b.Run(fmt.Sprintf("%s/%dx%d", kind, size[0], size[1]), func(b *testing.B) {
				over, from := 0.0, processorTime()
				for b.Loop() {
					s, err := dominant.Policy{}.Share(q)
					if err != nil {
						b.Fatal(err)
					}
					for r := range q.Resources {
						units := make([]int, len(s.Units))
						for j := range units {
							units[j] = s.Units[j][r]
						}
						over = math.Max(over, usedMost(q.Of(r), units))
					}
				}
				if over > 1+1e-9 {
					b.Fatalf("a host has %v times what it holds", over)
				}
				b.ReportMetric((processorTime()-from).Seconds()*1e3/float64(b.N), "cpu-ms/round")
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/round")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// processorTime is what the process has used of processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usedMost is how full the fullest host is.
func usedMost(p *policy.Problem, units []int) (most float64) {
	used := make([]float64, len(p.Hosts))
	for j, w := range p.Workloads {
		for _, part := range w.Parts {
			used[part.Host] += part.Share * float64(units[j])
		}
	}
	for h, u := range used {
		most = math.Max(most, u/p.Hosts[h].Units)
	}
	return most
}
