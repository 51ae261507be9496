package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// The demands of Cilantro's figure 6 and equation (5), by trying every unit.
func TestDemandsAreThoseOfEveryUnitTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]float64{1, 0.1, 0.3}).Draw(t, "unit")
		c := &trimtab.Curve{}
		at, level := 0.0, [3]float64{}
		for range rapid.IntRange(1, 6).Draw(t, "knots") {
			at += rapid.Float64Range(0.01, 9).Draw(t, "gap") * unit
			for i := range level { // bounds that do not fall
				level[i] += rapid.Float64Range(0, 0.5).Draw(t, "rise")
			}
			m := level[1]
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: at, Band: trimtab.Band{Lower: math.Max(0, m-level[0]/3), Mean: m, Upper: m + level[2]/3}})
		}
		slo := rapid.Float64Range(0.01, 2).Draw(t, "slo")
		lo := rapid.IntRange(0, 5).Draw(t, "lo")
		hi := lo + rapid.IntRange(0, 60).Draw(t, "span")
		upper, mean, at5, best := hi, -1, lo, math.Inf(-1)
		proven := UpUnits(c.Knots[0].Allocation, unit)
		for k := hi; k >= lo; k-- {
			b := c.Eval(float64(k) * unit)
			if k >= proven && b.Lower >= slo {
				upper = k
			}
			if k >= proven && b.Mean >= slo {
				mean = k
			}
			if h := math.Min(b.Upper-slo, slo-b.Lower); h >= best {
				best, at5 = h, k
			}
		}
		got := DemandOf(c, slo, unit, lo, hi)
		near := func(a, b int, bound func(trimtab.Band) float64) bool { // rounding at a crossing
			return a == b || a-b == 1 && math.Abs(bound(c.Eval(float64(b)*unit))-slo) < 1e-7 || b-a == 1 && math.Abs(bound(c.Eval(float64(a)*unit))-slo) < 1e-7
		}
		if monotone(c) && !near(got.Upper, upper, func(b trimtab.Band) float64 { return b.Lower }) {
			t.Fatalf("upper %d, want %d", got.Upper, upper)
		}
		if !near(got.Mean, mean, func(b trimtab.Band) float64 { return b.Mean }) {
			t.Fatalf("mean %d, want %d", got.Mean, mean)
		}
		if best < 1e-9 && got.Explore == got.Upper {
			return // it is known to the unit, or all that there is
		}
		b := c.Eval(float64(got.Explore) * unit)
		if h := math.Min(b.Upper-slo, slo-b.Lower); h < min(best, enough*best)-1e-9 {
			t.Fatalf("explore %d is worth %v, %d is worth %v", got.Explore, h, at5, best)
		}
	})
}

func TestAFlatBandIsExploredAwayFromWhatIsHeld(t *testing.T) {
	// One place was visited, 50: there the band is narrow, below it is flat,
	// and where it begins to narrow a knot may stand out by rounding.
	c := &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Mean: 0.5, Upper: 0.987}}, {Allocation: 49, Band: trimtab.Band{Mean: 0.5, Upper: 0.987}},
		{Allocation: 50, Band: trimtab.Band{Mean: 0.99, Upper: 0.992}}, {Allocation: 51, Band: trimtab.Band{Lower: 0.985, Mean: 0.99, Upper: 0.995}}}}
	if d := DemandOf(c, 0.9, 1, 1, 1000); d.Explore >= 49 || d.Upper != 51 {
		t.Errorf("explore %d, upper %d", d.Explore, d.Upper)
	}
}

// monotone reports whether the lower bound does not fall.
func monotone(c *trimtab.Curve) bool {
	for i := 1; i < len(c.Knots); i++ {
		if c.Knots[i].Lower < c.Knots[i-1].Lower {
			return false
		}
	}
	return true
}

// Equation (6): "We clip this value between d(r−1) − B and d(r−1) + B".
func TestARecommendedDemandIsMixedAndClipped(t *testing.T) {
	d := Demand{Upper: 100, Explore: 60}
	for previous, want := range map[int]int{90: 90, 85: 90, 50: 60, 120: 110} {
		if got := d.Recommend(0.75, previous, 10); got != want {
			t.Errorf("after %d: %d, want %d", previous, got, want)
		}
	}
}

func TestABoundThatNeverReachesTheSLODemandsTheMaximum(t *testing.T) {
	c := &trimtab.Curve{Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}}}}
	if d := DemandOf(c, 0.9, 0.1, 1, 80); d.Upper != 80 || d.Mean != -1 {
		t.Errorf("%+v", d)
	}
}

func TestHugeAllocationsAreNoSmallDemand(t *testing.T) {
	c := &trimtab.Curve{Knots: []trimtab.Knot{{Allocation: 1e300, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
	if d := DemandOf(c, 0.9, 0.1, 1, 80); d.Upper != 80 {
		t.Errorf("%+v", d)
	}
}

// Everything below is certain to miss, everything from 7 on to meet it.
func TestADemandThatIsKnownToTheUnitIsNotExplored(t *testing.T) {
	band := func(at, mean, half float64) trimtab.Knot {
		return trimtab.Knot{Allocation: at, Band: trimtab.Band{Lower: max(0, mean-half), Mean: mean, Upper: mean + half}}
	}
	for _, half := range []float64{0.01, 0.05, 0.074} {
		c := &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{
			band(1, 0.825, half), band(6, 0.825, half), band(7, 0.975, half), band(20, 0.975, half)}}
		d := DemandOf(c, 0.9, 1, 1, 20)
		if d.Upper != 7 || d.Explore != 7 || d.Recommend(0.75, 7, 10) != 7 {
			t.Errorf("bands of +-%v: %+v", half, d)
		}
	}
}
