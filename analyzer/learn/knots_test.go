package learn_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// drawStairs draws a curve of at most 30 steps, read off at 500 places.
func drawStairs(t *rapid.T) []trimtab.Knot {
	steps := rapid.IntRange(1, 30).Draw(t, "steps")
	height := make([]float64, steps)
	for i := range height {
		height[i] = rapid.Float64Range(0, 1).Draw(t, "height")
	}
	knots := make([]trimtab.Knot, 500)
	for i := range knots {
		v := height[i*steps/len(knots)]
		knots[i] = trimtab.Knot{Allocation: float64(i + 1), Band: trimtab.Band{Lower: v / 2, Mean: v, Upper: 2 * v}}
	}
	return knots
}

func TestThinKeepsEveryStepOfAStaircase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		knots := drawStairs(t)
		got := trimtab.Curve{Load: 1, Level: 0.9, Knots: learn.Thin(knots, trimtab.MaxKnots)}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, k := range knots {
			if b := got.Eval(k.Allocation); math.Abs(b.Mean-k.Mean) > 1e-9 || math.Abs(b.Upper-k.Upper) > 1e-9 || math.Abs(b.Lower-k.Lower) > 1e-9 {
				t.Fatalf("at %v: %v, want %v", k.Allocation, b, k.Band)
			}
		}
	})
}

func TestThinKeepsTheEndsAndNothingNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		knots := drawStairs(t)
		n := rapid.IntRange(2, 80).Draw(t, "n")
		got := learn.Thin(knots, n)
		if len(got) > n || got[0] != knots[0] || got[len(got)-1] != knots[len(knots)-1] {
			t.Fatalf("%d knots from %v to %v", len(got), got[0], got[len(got)-1])
		}
		for _, k := range got {
			if k != knots[int(k.Allocation)-1] {
				t.Fatalf("%v is none of the knots", k)
			}
		}
	})
}
