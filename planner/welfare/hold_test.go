package welfare

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// A fall costs what its formula says, and nothing makes more be worth less.
func TestWhatTheBandCannotTellIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		how := Social{}.reading()
		s := newSolver(p, how)
		for _, j := range s.known {
			w := &p.Workloads[j]
			b := w.Curve.Eval(float64(w.Current) * p.Unit)
			width := w.Utility(b.Upper) - w.Utility(b.Lower)
			doubt := map[int]float64{0: 0, 480: 0.5 * (1 - 0.775), 10_000: 1 - 0.6}[w.Reports] * width / 2
			before := int64(math.MinInt64)
			for k := 0; k <= 12; k++ {
				want := 0.0
				if k < w.Current {
					want = min(obvious(w, p.Unit, 0, w.Current)-obvious(w, p.Unit, 0, k), doubt)
				}
				// A step function may fall on either side of its step.
				if got := float64(s.of[j].fall.at(k)) / quantum; math.Abs(got-want) > 1e-7 && math.Abs(got-want) < 0.003 {
					t.Fatalf("%s from %d to %d units: %v, want %v", w.Name, w.Current, k, got, want)
				}
				if v := s.of[j].value(k); v < before {
					t.Fatalf("%s: %d units are worth less than one less", w.Name, k)
				} else {
					before = v
				}
			}
		}
	})
}

// Two curves of which the band cannot tell that the second gains by a unit of
// the first: nobody moves, until the gain exceeds the doubt, or one misses.
func TestATradeWithinTheBandIsNotMade(t *testing.T) {
	line := func(level, slope, half float64) *trimtab.Curve {
		c := &trimtab.Curve{Load: 1, Level: 0.9}
		for _, a := range []float64{1, 10, 19} {
			v := level + slope*(a-10)
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: v - half, Mean: v, Upper: v + half}})
		}
		return c
	}
	solve := func(slope, half float64, reports int) []int {
		p := &policy.Problem{Units: 20, Unit: 1}
		for name, c := range map[string]*trimtab.Curve{"a": line(0.5, 0.01, half), "b": line(0.5, slope, half)} {
			p.Workloads = append(p.Workloads, policy.Workload{Name: name, Weight: 1, Max: 19, Current: 10, Curve: c, Reports: reports,
				SLO: 1, Utility: policy.Linear(1)})
		}
		slices.SortFunc(p.Workloads, func(a, b policy.Workload) int { return cmp.Compare(a.Name, b.Name) })
		s, err := Social{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		return s.Units
	}
	for name, c := range map[string]struct {
		slope, half float64
		reports     int
		moves       bool
	}{
		"a gain within the doubt":          {0.012, 0.2, 10_000, false},
		"a gain beyond it":                 {0.03, 0.2, 10_000, true},
		"a narrow band":                    {0.012, 0.001, 10_000, true},
		"exploration, little is known yet": {0.012, 0.2, 100, true},
	} {
		if got := solve(c.slope, c.half, c.reports); (got[1] != 10) != c.moves {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAFlatUtilityIsGivenNothing(t *testing.T) {
	c := &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}},
		{Allocation: 5, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}},
		{Allocation: 500, Band: trimtab.Band{Lower: 2, Mean: 2, Upper: 2}},
	}}
	for _, objective := range []policy.Policy{Social{}, Egalitarian{}} {
		for current, want := range map[int]int{2: 5, 5: 5, 9: 9} {
			s, err := objective.Solve(&policy.Problem{Units: 1000, Unit: 1, Workloads: []policy.Workload{
				{Name: "a", Weight: 1, Max: 1000, Current: current, Curve: c, SLO: 1, Utility: policy.Linear(1)}}})
			if err != nil || s.Units[0] != want {
				t.Errorf("%s from %d units: %v (%v), want %d", objective.Name(), current, s.Units, err, want)
			}
		}
	}
}
