package analyzer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// series are the rates of seconds in which requests come at random, 1 a second.
func series(rng *rand.Rand, n int, load func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		for t := rng.ExpFloat64() / load(i); t < 1; t += rng.ExpFloat64() / load(i) {
			out[i]++
		}
	}
	return out
}

// slopes returns the mean slope and how often there was one.
func slopes(load func(i int) float64) (mean, share float64) {
	rng, runs := rand.New(rand.NewPCG(1, 2)), 2000
	for range runs {
		s := series(rng, ramped, load)
		b := slope(s, math.Sqrt(load(ramped/2)))
		mean += b / float64(runs)
		if b != 0 {
			share += 1 / float64(runs)
		}
	}
	return mean, share
}

func TestALoadThatRisesIsFollowedToWhereItWillBe(t *testing.T) {
	for want, seen := range map[float64]float64{1: 0.5, 2: 0.8} {
		mean, share := slopes(func(i int) float64 { return 12 + want*float64(i) })
		if mean < 0.5*want || mean > 1.05*want || share < seen {
			t.Errorf("a rise of %v a second is taken for %.2f, and seen in %.0f%% of the cases", want, mean, 100*share)
		}
	}
	if mean, share := slopes(func(i int) float64 { return 40 - 2*float64(i) }); mean > -1.2 || share < 0.8 {
		t.Errorf("a fall of 2 a second is taken for %.2f, and seen in %.0f%% of the cases", mean, 100*share)
	}
}

func TestTheNoiseOfASteadyLoadIsSeldomTakenForARise(t *testing.T) {
	mean, share := slopes(func(int) float64 { return 15 })
	if math.Abs(mean) > 0.03 || share > 0.13 {
		t.Errorf("a steady load is taken to change by %.3f a second, in %.0f%% of the cases", mean, 100*share)
	}
}

func TestALoadThatJumpedIsNotTakenForARampThatGoesOn(t *testing.T) {
	for _, since := range []int{4, 7, 10} {
		jump := func(i int) float64 {
			if i >= ramped-since {
				return 60
			}
			return 20
		}
		if mean, share := slopes(jump); share > 0.2 || math.Abs(mean) > 0.8 {
			t.Errorf("%d seconds after a jump from 20 to 60 it is taken to rise by %.2f a second, in %.0f%% of the cases", since, mean, 100*share)
		}
	}
}

func TestAFewReportsAreNoRamp(t *testing.T) {
	if b := slope([]float64{1, 5, 9, 13, 17}, 1); b != 0 {
		t.Errorf("slope %v of five", b)
	}
	if b := slope([]float64{1, 5, 9, 13, 17, 21}, 0); b != 0 {
		t.Errorf("slope %v of rates without noise", b)
	}
}
