package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// wideCurve is a learner's curve of 64 knots a fixed ratio apart, from one unit
// to the whole pool, rising in stairs to its SLO near need.
func wideCurve(r *rand.Rand, need, units float64) *trimtab.Curve {
	c := &trimtab.Curve{Load: 10, Level: 0.9}
	level := 0.1 * r.Float64()
	for i := range trimtab.MaxKnots {
		a := math.Exp(math.Log(units) * float64(i) / (trimtab.MaxKnots - 1))
		if r.IntN(3) > 0 {
			level = math.Max(level, (1+0.1*r.Float64())*math.Min(1, a/need))
		}
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: 0.9 * level, Mean: level, Upper: 1.05 * level}})
	}
	return c
}

// BenchmarkGrowth solves one round for 10 to 10,000 workloads with 100 units
// each, whose curves reach over the whole pool and who need twice what there
// is: ms a round, and the certified gap to the optimum.
func BenchmarkGrowth(b *testing.B) {
	own := welfare.Own{Title: "sum", MoveCost: 0.05}
	for _, objective := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05}, welfare.Nash{MoveCost: 0.05}, own} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", objective.Name(), n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				p := large("learnt", n, 100*n, 300)
				for i := range p.Workloads {
					w := &p.Workloads[i]
					w.Curve, w.Reports = wideCurve(r, 50+300*r.Float64(), float64(p.Units)), 10_000
					w.Demand = policy.DemandOf(w.Curve, w.SLO, 1, 1, p.Units).Mean
				}
				gap := 0.0
				for b.Loop() {
					s, err := objective.Solve(p)
					if err != nil {
						b.Fatal(err)
					}
					gap = s.Gap()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/round")
				b.ReportMetric(100*gap, "gap_%")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
