package welfare

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/policy"
)

// dense is the full programme over all units of all workloads: slow, obvious.
func dense(s *solver, cost int64) int64 {
	best := make([]int64, s.left+1)
	for i := len(s.known) - 1; i >= 0; i-- {
		w := &s.problem.Workloads[s.known[i]]
		next := make([]int64, s.left+1)
		for r := range next {
			next[r] = math.MinInt64 / 2
			for k := w.Min; k <= min(r, w.Max); k++ {
				v := s.of[s.known[i]].value(k) - cost*int64(max(k-w.Current, w.Current-k))
				next[r] = max(next[r], v+best[r-k])
			}
		}
		best = next
	}
	return best[s.left]
}

func TestSocialIsTheFullProgramme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Problem{Units: rapid.IntRange(20, 150).Draw(t, "units"), Unit: 0.1}
		for i := range rapid.IntRange(5, 15).Draw(t, "workloads") {
			w := policy.Workload{Name: fmt.Sprintf("w%02d", i), Weight: 1, Min: 1, Max: 60, SLO: 0.75, Current: rapid.IntRange(0, 20).Draw(t, "current"),
				Utility: rapid.SampledFrom([]func(float64) float64{policy.Linear(0.75), policy.Quadratic(0.75), policy.SquareRoot(0.75)}).Draw(t, "utility")}
			w.Curve = drawCurve(t, p.Unit*float64(rapid.IntRange(1, 4).Draw(t, "wide")))
			p.Workloads = append(p.Workloads, w)
		}
		got := solved(t, Social{}, p)
		s := newSolver(p, Social{}.reading())
		cost := unitCost(0, p)
		if worth, want := total(s, cost)(got.Units), dense(s, cost); worth != want {
			t.Fatalf("worth %d, the full programme reaches %d", worth, want)
		}
	})
}

// A sampled answer is never above the full programme, and never further below
// it than it says.
func TestTheGapOfASampledAnswerHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Problem{Units: rapid.IntRange(20, 300).Draw(t, "units"), Unit: 0.1}
		for i := range rapid.IntRange(1, 6).Draw(t, "workloads") {
			w := policy.Workload{Name: fmt.Sprintf("w%02d", i), Weight: 1, Min: 1, Max: rapid.IntRange(1, 300).Draw(t, "max"), SLO: 0.75, Current: rapid.IntRange(0, 60).Draw(t, "current"),
				Utility: rapid.SampledFrom([]func(float64) float64{policy.Linear(0.75), policy.Quadratic(0.75), policy.SquareRoot(0.75)}).Draw(t, "utility")}
			w.Curve = drawCurve(t, p.Unit*float64(rapid.IntRange(1, 20).Draw(t, "wide")))
			p.Workloads = append(p.Workloads, w)
		}
		s := newSolver(p, utilities(1))
		cost := unitCost(rapid.SampledFrom([]float64{0, 0.05, 1}).Draw(t, "cost"), p)
		c := newCore(s, cost)
		c.sampled = true
		picked, short := c.solve()
		worth, units := int64(0), 0
		for _, k := range picked {
			worth += k.worth
			units += int(k.units)
		}
		best := dense(s, cost)
		if units > s.left || worth > best || float64(worth)+short < float64(best) {
			t.Fatalf("%d units of %d are worth %d, at most %v more; the full programme reaches %d", units, s.left, worth, short, best)
		}
	})
}

func TestACutSearchIsFeasibleAndSaysSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Stop = func() bool { return true }
		for _, policy := range []policy.Policy{Social{}, Egalitarian{}} {
			s, err := policy.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			checkBounds(t, p, s)
			if policy.Name() == "egalitarian" && !s.Cut {
				t.Fatal("not marked")
			}
		}
	})
}
