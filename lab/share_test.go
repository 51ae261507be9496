package lab

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// slowShare raises the level in tiny steps until the amount is used up.
func slowShare(amount float64, wants, weights []float64) []float64 {
	low, high := 0.0, 1e9
	given := make([]float64, len(wants))
	for range 200 {
		level, sum := (low+high)/2, 0.0
		for i := range wants {
			given[i] = math.Min(wants[i], level*weights[i])
			sum += given[i]
		}
		if sum > amount {
			high = level
		} else {
			low = level
		}
	}
	return given
}

func drawShare(t *rapid.T) (amount float64, wants, weights []float64) {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	amount = rapid.SampledFrom([]float64{0, 0.001, 1, 3}).Draw(t, "amount")
	for range n {
		wants = append(wants, rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1), rapid.Just(100.0)).Draw(t, "want"))
		weights = append(weights, rapid.OneOf(rapid.Just(1.0), rapid.Float64Range(0.01, 100)).Draw(t, "weight"))
	}
	return amount, wants, weights
}

func TestSharesByWeightAreThoseOfARisingLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, wants, weights := drawShare(t)
		given := make([]float64, len(wants))
		Share(amount, wants, weights, given)
		for i, want := range slowShare(amount, wants, weights) {
			if math.Abs(given[i]-want) > 1e-6 {
				t.Fatalf("%v of %v for wants %v by weights %v, want %v at %d", given, amount, wants, weights, want, i)
			}
		}
	})
}

func TestNobodyHasLessThanItsShareAndNothingIsWasted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, wants, weights := drawShare(t)
		given := make([]float64, len(wants))
		sum := Share(amount, wants, weights, given)
		all, asked, total := 0.0, 0.0, 0.0
		for i := range wants {
			all, asked, total = all+weights[i], asked+wants[i], total+given[i]
		}
		if math.Abs(total-math.Min(amount, asked)) > 1e-9 || math.Abs(sum-total) > 1e-12 {
			t.Fatalf("%v of %v was given for %v, and %v was said", total, amount, asked, sum)
		}
		for i := range wants {
			if least := math.Min(wants[i], amount*weights[i]/all); given[i] < least-1e-9 || given[i] > wants[i] {
				t.Fatalf("%v for a want of %v, whose share is %v", given[i], wants[i], least)
			}
		}
	})
}
