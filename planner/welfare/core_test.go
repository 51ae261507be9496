package welfare

import (
	"fmt"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// alike is n workloads that rise to their SLO over full units, all of them on
// the same line, so that what rounding leaves decides.
func alike(n, units, current int, full float64) *policy.Problem {
	c := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{{}, {Allocation: full, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
	p := &policy.Problem{Units: units, Unit: 1}
	for i := range n {
		p.Workloads = append(p.Workloads, policy.Workload{Name: fmt.Sprintf("w%02d", i), Weight: 1, Min: 1, Max: units, Current: current, SLO: 0.9, Curve: c, Utility: policy.Linear(1)})
	}
	return p
}

func lines() map[string]*policy.Problem {
	return map[string]*policy.Problem{
		"a line of no whole steps a unit": alike(20, 1000, 1, 150),
		"a line of whole steps a unit":    alike(20, 1000, 1, 128),
		"a line that ends between units":  alike(20, 1000, 40, 149.7),
		"many on a short line":            alike(100, 3000, 1, 90),
	}
}

// denseAnswer is the full programme over all units of all workloads, then the
// fewest units, then most for the first name.
func denseAnswer(s *solver, cost int64) []int {
	n := len(s.known)
	worth, best := make([][]int64, n), make([][]int64, n+1)
	best[n] = make([]int64, s.left+1)
	for r := 1; r <= s.left; r++ {
		best[n][r] = math.MinInt64 / 2
	}
	for i := n - 1; i >= 0; i-- {
		w := &s.problem.Workloads[s.known[i]]
		worth[i], best[i] = make([]int64, s.left+1), make([]int64, s.left+1)
		for k := range worth[i] {
			worth[i][k] = math.MinInt64 / 2
			if k >= w.Min && k <= w.Max {
				worth[i][k] = s.of[s.known[i]].value(k) - cost*int64(max(k-w.Current, w.Current-k))
			}
		}
		end := s.of[s.known[i]].at
		most := max(w.Min, int(end[len(end)-1])+1) // more is worth no more
		for r := range best[i] {
			best[i][r] = math.MinInt64 / 2
			for k := w.Min; k <= min(r, most); k++ {
				best[i][r] = max(best[i][r], worth[i][k]+best[i+1][r-k])
			}
		}
	}
	at := 0
	for r, v := range best[0] {
		if v > best[0][at] {
			at = r
		}
	}
	units := append([]int(nil), s.answer.Units...)
	for i, j := range s.known {
		k := at
		for worth[i][k]+best[i+1][at-k] < best[i][at] {
			k--
		}
		units[j], at = k, at-k
	}
	return units
}

// Nearly all answers are alike to a step or two of 2^40 here, and the one that
// is best, with its ties, is found and proven nevertheless.
func TestTheBestOfLinesThatAreAlikeIsProvenToTheStep(t *testing.T) {
	for name, p := range lines() {
		t.Run(name, func(t *testing.T) {
			got, err := Social{}.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			s := newSolver(p, Social{}.reading())
			if c := newCore(s, moveCost); !c.relax() && !c.search() {
				t.Errorf("not proven after %d steps", c.steps)
			}
			if got.Gap() != 0 {
				t.Errorf("a gap of %v", got.Gap())
			}
			if d := gocmp.Diff(denseAnswer(s, moveCost), got.Units); d != "" {
				t.Errorf("want by the full programme (-), got (+): %s", d)
			}
		})
	}
}

func TestASearchKeepsTheBestThatItHas(t *testing.T) {
	for name, p := range lines() {
		t.Run(name, func(t *testing.T) {
			for part := 1.0; part < 64; part *= 2 {
				c := newCore(newSolver(p, Social{}.reading()), moveCost)
				c.relax()
				before := c.short
				if c.within(before / part); c.short > before {
					t.Errorf("within 1/%v of %v steps it falls to %v", part, before, c.short)
				}
			}
		})
	}
}
