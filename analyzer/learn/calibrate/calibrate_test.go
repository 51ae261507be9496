package calibrate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// rise is a curve that rises from 0 at 0.1 cores to 1 at 0.3, with a narrow band.
func rise() *trimtab.Curve {
	c := &trimtab.Curve{Load: 10, Level: 0.9}
	for a := 0.05; a < 0.6; a += 0.01 {
		m := math.Max(0, math.Min(1, (a-0.1)/0.2))
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: math.Max(0, m-0.01), Mean: m, Upper: math.Min(1, m+0.01)}})
	}
	return c
}

// share draws the share in time of n requests, of which Together in a row have the same fate.
func share(rng *rand.Rand, p float64, n int) float64 {
	in := 0.0
	for range n / Together {
		if rng.Float64() < p {
			in += Together
		}
	}
	return in / float64(n)
}

func TestABandWidensWhereTheCurveIsSteepAndNotWhereAllAreInTime(t *testing.T) {
	var k Calibration
	c := k.Widen(rise(), 0)
	if b := c.Eval(0.2); b.Upper-b.Lower < 0.1 {
		t.Errorf("at the knee: %+v", b)
	}
	if b := c.Eval(0.45); b.Upper-b.Lower > 0.02 {
		t.Errorf("far above: %+v", b)
	}
}

func TestWhatMayBeDearerLowersTheLowerBoundAlone(t *testing.T) {
	var k Calibration
	plain, dearer := k.Widen(rise(), 0).Eval(0.25), k.Widen(rise(), math.Ln2).Eval(0.25)
	if dearer.Lower > 0.2 || dearer.Mean != plain.Mean || dearer.Upper != plain.Upper {
		t.Errorf("%+v, and %+v where it may need twice as much", plain, dearer)
	}
}

// The property that the method promises: whatever the truth is and however it changes, so many
// comparisons are inside, as far as d is within its bounds.
func TestOfTheComparisonsTheLevelIsInside(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var k Calibration
		c, inside, all := rise(), 0.0, 0.0
		for i := range 4000 {
			// The service needs up to 50% more than the curve says, and then again as much.
			off := 0.5 * math.Abs(math.Sin(float64(i)/400))
			a := 0.14 + 0.14*rng.Float64()
			p := c.Eval(a / (1 + off)).Mean
			in := share(rng, p, Enough)
			if i >= 200 {
				lower, upper := Interval(k.Widen(c, 0).Eval(a), Enough, c.Level)
				if all++; in >= lower && in <= upper {
					inside++
				}
			}
			k.Observe(c, a, 10, in, Enough)
		}
		if got := inside / all; got < 0.87 || got > 0.97 {
			t.Errorf("seed %d: %.3f of %v inside, want 0.9", seed, got, all)
		}
	}
}

func TestWhatIsFarAboveTheNeedTeachesNothing(t *testing.T) {
	k := Calibration{Below: 0.3, Above: 0.2}
	for range 1000 {
		k.Observe(rise(), 0.55, 10, 1, Enough)
	}
	if k.Below != 0.3 || k.Above != 0.2 {
		t.Errorf("off by %v more below and %v above, before 0.3 and 0.2", k.Below, k.Above)
	}
}

func TestOffStaysInItsBoundsAndCurvesStayValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Calibration
		for range rapid.IntRange(0, 30).Draw(t, "reports") {
			k.Observe(rise(), rapid.Float64Range(0, 1).Draw(t, "allocation"), rapid.Float64Range(0, 50).Draw(t, "load"),
				rapid.Float64Range(0, 1).Draw(t, "in time"), rapid.Float64Range(0, 1000).Draw(t, "requests"))
			if err := k.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Widen(rise(), rapid.Float64Range(0, 800).Draw(t, "dearer")).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWithoutACurveNothingIsComparedAndNothingWidened(t *testing.T) {
	var k Calibration
	if k.Observe(nil, 1, 1, 0, 1000); k != (Calibration{}) || k.Widen(nil, 0) != nil {
		t.Errorf("%+v", k)
	}
}

func TestACalibrationOutOfRangeIsRefused(t *testing.T) {
	for _, k := range []Calibration{{Above: -1}, {Below: -1}, {Below: 0.6}, {Above: 1}, {Above: math.NaN()}, {Requests: math.Inf(1)}, {Lower: -1}} {
		if err := k.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", k, err)
		}
	}
}
