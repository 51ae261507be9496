package endtoend_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/policy"
)

// sure is a policy that tries nothing and moves for any gain.
func sure() endtoend.Policy { return endtoend.Policy{Optimism: -1, Trial: -1} }

// curve is the performance SLO/latency over 1 to 12 units where latency is
// rest + need/units SLOs; half is the width of its band as a share.
func curve(rest, need, half float64) *trimtab.Curve {
	c := &trimtab.Curve{Load: 1, Level: 0.9}
	for u := 1.0; u <= 12; u++ {
		p := 1 / (rest + need/u)
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: u, Band: trimtab.Band{Lower: p * (1 - half), Mean: p, Upper: p * (1 + half)}})
	}
	return c
}

// application has needs and what they have; all curves go through one latency.
func application(units int, needs []float64, has []int, half float64) *policy.Problem {
	now := 0.5
	for i, n := range needs {
		now += n / float64(has[i])
	}
	p := &policy.Problem{Units: units, Unit: 1}
	for i, n := range needs {
		p.Workloads = append(p.Workloads, policy.Workload{Name: string(rune('a' + i)), Weight: 1, Min: 1, Max: 12, Current: has[i], Reports: 5,
			SLO: 1, Utility: policy.Linear(1), Curve: curve(now-n/float64(has[i]), n, half)})
	}
	return p
}

// slow is the least Σ latency by trying all allocations near what everybody has.
func slow(p *policy.Problem) float64 {
	least := math.Inf(1)
	var place func(i, left int, sum float64)
	place = func(i, left int, sum float64) {
		if i == len(p.Workloads) {
			least = math.Min(least, sum)
			return
		}
		w := &p.Workloads[i]
		low := max(w.Min, min(int(math.Ceil(0.75*float64(w.Current))), w.Current-1))
		for u := low; u <= min(w.Max, left); u++ {
			place(i+1, left-u, sum+1/w.Curve.Eval(float64(u)).Mean)
		}
	}
	place(0, p.Units, 0)
	return least
}

func TestTheAnswerHasTheLeastLatencyNearWhatEverybodyHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "n")
		needs, has, units := make([]float64, n), make([]int, n), 0
		for i := range needs {
			needs[i] = rapid.Float64Range(0.01, 5).Draw(t, "need")
			has[i] = rapid.IntRange(1, 8).Draw(t, "has")
			units += has[i]
		}
		p := application(units+rapid.IntRange(0, 5).Draw(t, "idle"), needs, has, 0)
		got, err := sure().Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		sum, latency := 0, 0.0
		for i, u := range got.Units {
			sum += u
			latency += 1 / p.Workloads[i].Curve.Eval(float64(u)).Mean
		}
		if sum > p.Units {
			t.Fatalf("%d of %d units", sum, p.Units)
		}
		if best := slow(p); latency > best*(1+1e-6)+1e-9 {
			t.Fatalf("latency %v at %v, %v can be had", latency, got.Units, best)
		}
		if !(got.Value > 0 && got.Value <= 1) || got.Bound < got.Value-1e-12 {
			t.Fatalf("value %v, bound %v", got.Value, got.Bound)
		}
	})
}

func TestWhoIsShortIsGivenWhatOthersDoNotNeed(t *testing.T) {
	p := application(12, []float64{4, 0.01, 0.01}, []int{4, 4, 4}, 0)
	got, err := sure().Solve(p)
	if err != nil || got.Units[0] != 6 || got.Units[1] != 3 || got.Units[2] != 3 {
		t.Errorf("%v, %v: want a quarter of b and c given to a", got.Units, err)
	}
}

func TestTheSameProblemHasTheSameAnswerAndMoreReportsAnotherTrial(t *testing.T) {
	problem := func(reports int, half float64) *policy.Problem {
		p := application(36, []float64{1, 1, 1, 1, 1, 1}, []int{6, 6, 6, 6, 6, 6}, half)
		for i := range p.Workloads {
			p.Workloads[i].Reports = reports
			if half > 0 { // known where it is, unknown elsewhere
				for k := range p.Workloads[i].Curve.Knots {
					b := &p.Workloads[i].Curve.Knots[k]
					f := 1 + half*math.Abs(b.Allocation-6)/6
					b.Lower, b.Upper = b.Mean/f, b.Mean*f
				}
			}
		}
		return p
	}
	solve := func(reports int, half float64) []int {
		got, err := endtoend.Policy{}.Solve(problem(reports, half))
		if err != nil {
			t.Fatal(err)
		}
		return got.Units
	}
	trials := map[string]bool{}
	for reports := range 10 {
		a, b := solve(reports, 3), solve(reports, 3)
		if !slices.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
		trials[string(rune(a[0]))+string(rune(a[1]))+string(rune(a[2]))] = true
	}
	if len(trials) < 3 {
		t.Errorf("%d trials in ten rounds of which nothing is known", len(trials))
	}
	if got := solve(1, 0); !slices.Equal(got, []int{6, 6, 6, 6, 6, 6}) {
		t.Errorf("%v is tried although all is known", got)
	}
}

func TestAProblemIsLeftAsItWas(t *testing.T) {
	p, q := application(20, []float64{3, 1}, []int{5, 5}, 0.2), application(20, []float64{3, 1}, []int{5, 5}, 0.2)
	if _, err := (endtoend.Policy{}).Solve(p); err != nil {
		t.Fatal(err)
	}
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Utility" || p.Last().String() == ".Worth" }, cmp.Ignore())
	if d := cmp.Diff(q, p, ignore); d != "" {
		t.Error(d)
	}
}

func TestNobodyKnownStaysAndWhatCannotBeIsRefused(t *testing.T) {
	p := application(10, []float64{1, 1}, []int{5, 5}, 0)
	p.Workloads[0].Curve, p.Workloads[1].Curve = nil, nil
	got, err := (endtoend.Policy{}).Solve(p)
	if err != nil || got.Units[0] != 5 || got.Units[1] != 5 || got.Value != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	p.Units = 1
	if _, err := (endtoend.Policy{}).Solve(p); !errors.Is(err, trimtab.ErrInfeasible) {
		t.Errorf("one unit for two minimums: %v", err)
	}
	p.Workloads[0].Weight = math.NaN()
	if _, err := (endtoend.Policy{}).Solve(p); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("a weight of NaN: %v", err)
	}
}

func TestPerformanceOfZeroIsSlowAndNotNaN(t *testing.T) {
	p := application(10, []float64{1, 1}, []int{5, 5}, 0)
	p.Workloads[0].Curve = &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 1}, {Allocation: 7, Band: trimtab.Band{Mean: 0.1, Upper: 0.2}}}}
	got, err := (endtoend.Policy{}).Solve(p)
	if err != nil || math.IsNaN(got.Value) || got.Units[0] < 5 {
		t.Errorf("%+v, %v", got, err)
	}
}
