package planner

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestThePlannedCurveIsThatOfTheLoadBetweenMeanAndBound(t *testing.T) {
	e := &trimtab.Estimate{Load: &trimtab.LoadForecast{Mean: 10, Upper: 20},
		Curve: &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 4, Band: trimtab.Band{Mean: 0.5}}, {Allocation: 8, Band: trimtab.Band{Mean: 1}}}}}
	for weight, want := range map[float64]float64{0.25: 5, 0.5: 6, 1: 8, 0: 8} {
		p := &Planner{traits: policy.Traits{Caution: weight}}
		c := p.planned(e)
		if got := c.Knots[1].Allocation; math.Abs(got-want) > 1e-12 || math.Abs(c.Load-2.5*want) > 1e-12 {
			t.Errorf("weight %v: full performance at %v under load %v, want at %v", weight, got, c.Load, want)
		}
	}
	if e.Curve.Knots[1].Allocation != 8 {
		t.Error("the estimate was changed")
	}
	// A curve at another load than the forecast's bound stays what it is.
	e.Load.Upper = 30
	if p := (&Planner{traits: policy.Traits{Caution: 0.5}}); p.planned(e) != e.Curve {
		t.Error("a curve of another load was scaled")
	}
}
