package welfare

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestHopeIsTheLesserOfTheMixAndItsMostAtEveryUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := policy.Workload{Utility: func(p float64) float64 { return p / 2 }, Reports: rapid.SampledFrom([]int{0, 480, 10_000}).Draw(t, "reports")}
		w.Curve = drawCurve(t, 1)
		knots := w.Curve.Knots
		for i := range knots { // a curve that rises, as learners make them
			if i > 0 {
				b, before := &knots[i].Band, knots[i-1].Band
				b.Lower, b.Mean, b.Upper = max(b.Lower, before.Lower), max(b.Mean, before.Mean), max(b.Upper, before.Upper)
			}
		}
		u, _ := utilityOf(&w, 1, Social{}.reading())
		first := knots[0]
		for k := range 25 {
			a := float64(k)
			want := Social{}.Traits().Expect(w.Curve.Eval(a), w.Reports)
			if a < first.Allocation {
				want = Social{}.Traits().Expect(first.Band, w.Reports) * a / first.Allocation
			}
			if got := float64(u.value(k)) / quantum; math.Abs(got-want/2) > 1e-9 {
				t.Fatalf("%d units: %v, want %v", k, got, want/2)
			}
		}
	})
}

// TestWhoHasEnoughIsNotDroppedToNothingInHope has two workloads that were never
// tried with less than half of the units: all that is known below is that it
// is no better.
func TestWhoHasEnoughIsNotDroppedToNothingInHope(t *testing.T) {
	band := func(a, lower, mean, upper float64) trimtab.Knot {
		return trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: lower, Mean: mean, Upper: upper}}
	}
	c := &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{
		band(1, 0, 0.1, 0.9), band(25, 0, 0.63, 0.9), band(50, 0.88, 0.89, 0.9), band(100, 0.88, 0.89, 1),
	}}
	p := &policy.Problem{Units: 100, Unit: 1}
	for _, name := range []string{"a", "b"} {
		p.Workloads = append(p.Workloads, policy.Workload{Name: name, Weight: 1, Min: 1, Max: 100, Current: 50, Curve: c, SLO: 1, Utility: policy.Linear(1), Reports: 12})
	}
	s, err := Social{}.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	for j, k := range s.Units {
		if k < 25 {
			t.Errorf("%s is dropped to %d of 50 units", p.Workloads[j].Name, k)
		}
	}
}

func TestWhoGetsNothingDoneMayHope(t *testing.T) {
	if got := (Social{}).Traits().Expect(trimtab.Band{Upper: 1}, 0); got != mostHope {
		t.Errorf("counts on %v where nothing was ever good, want %v", got, mostHope)
	}
}
