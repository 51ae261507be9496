package dominant

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/policy"
)

// drawMany draws workloads of some groups on some hosts, in numbers with which speeds
// are kept up to date for long.
func drawMany(t *rapid.T) *policy.Question {
	q := &policy.Question{}
	n, hosts := rapid.IntRange(50, 150).Draw(t, "workloads"), rapid.IntRange(2, 8).Draw(t, "hosts")
	for _, name := range []string{"cpu", "memory"} {
		of := policy.Pooled{Name: name, Unit: 1, Capacity: 100_000, Units: rapid.SampledFrom([]int{20_000, 60_000, 100_000}).Draw(t, "units")}
		for h := range hosts {
			of.Hosts = append(of.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: float64(10*n + rapid.IntRange(0, 100_000/hosts).Draw(t, "host"))})
		}
		q.Resources = append(q.Resources, of)
	}
	for i := range n {
		w := policy.Claim{Name: fmt.Sprintf("w%03d", i), Weight: rapid.SampledFrom([]float64{1, 2, 1e6, 1e-6}).Draw(t, "weight"),
			Group: rapid.SampledFrom([]string{"", "a", "a/b", "a/c", "d"}).Draw(t, "group")}
		var parts []policy.Part
		for h := range hosts {
			if rapid.Bool().Draw(t, "here") {
				parts = append(parts, policy.Part{Host: h, Share: 1 / float64(hosts)})
			}
		}
		for range q.Resources {
			w.Wants = append(w.Wants, policy.Want{Min: rapid.IntRange(0, 10).Draw(t, "min"), Max: 3000, Demand: rapid.IntRange(0, 2000).Draw(t, "demand"), Parts: parts})
		}
		q.Workloads = append(q.Workloads, w)
	}
	return q
}

// The speeds of all levels add up to 1, those of rows to no more: an error of so little
// of it is that of rounding.
func TestSpeedsThatAreKeptUpToDateAreThoseSummedUpAnew(t *testing.T) {
	longest := 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(drawMany(t))
		for _, limit := range []func(*tenant) float64{func(t *tenant) float64 { return t.demand }, func(t *tenant) float64 { return t.most }} {
			f := newFilling(p, limit)
			for steps := 0; f.left > 0; steps++ {
				f.speeds()
				kept := slices.Clone(f.speed)
				f.sum(true)
				for r := range kept {
					if anew := f.speed[r].now; math.Abs(kept[r].now-anew) > 1e-9*anew+1e-14 {
						t.Fatalf("step %d: row %d is used up by %v, summed up anew %v", steps, r, kept[r].now, anew)
					}
				}
				copy(f.speed, kept)
				longest = max(longest, steps)
				if !f.step() {
					break
				}
			}
		}
	})
	if longest < 2*afresh {
		t.Errorf("at most %d steps", longest)
	}
}
