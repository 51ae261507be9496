package drf

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestAColumnWhoseDigitsAreInDoubtIsQueuedNoLaterThanItIsFull takes rates off
// a cell as the solver does, and off big numbers.
func TestAColumnWhoseDigitsAreInDoubtIsQueuedNoLaterThanItIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "rates")
		spread := rapid.IntRange(0, 60).Draw(t, "spread")
		rates := make([]float64, n)
		x := Cell{room: 1}
		least := math.Inf(1)
		exactRate, exactRoom := new(big.Float).SetPrec(400), new(big.Float).SetPrec(400).SetInt64(1)
		for k := range rates {
			rates[k] = math.Ldexp(1+rapid.Float64Range(0, 1).Draw(t, "digits"), -rapid.IntRange(0, spread).Draw(t, "size"))
			x.rate += rates[k]
			least = min(least, rates[k])
			exactRate.Add(exactRate, new(big.Float).SetFloat64(rates[k]))
		}
		g := guard(x.rate, uint32(n), least)
		level := 1 / x.rate
		for _, a := range rates[:rapid.IntRange(0, n-1).Draw(t, "frozen")] {
			at := level * rapid.Float64Range(0, 1).Draw(t, "level")
			x.rate -= a
			x.room -= a * at
			rate := new(big.Float).SetPrec(400).SetFloat64(a)
			exactRate.Sub(exactRate, rate)
			exactRoom.Sub(exactRoom, new(big.Float).SetPrec(400).Mul(rate, new(big.Float).SetFloat64(at)))
		}
		full, _ := new(big.Float).Quo(exactRoom, exactRate).Float64()
		// No level is below 0, to which rounding may bring what was full.
		if bound := x.atLeast(g, uint32(n)); !(bound <= max(0, full)) {
			t.Fatalf("at least %v, full at %v", bound, full)
		}
		if x.rate < float64(g.alone) {
			t.Fatalf("F = %v counts as nobody's, the least rate is %v", x.rate, least)
		}
	})
}
