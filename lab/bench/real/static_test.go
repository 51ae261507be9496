package main

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

func TestTheBestSplitFollowsConstantLoads(t *testing.T) {
	s := shape.Scenario{Pieces: []shape.Piece{{Load: [3]float64{.5, .1, .1}}}}
	whole := 2 * time.Minute
	var in [3][]arrival
	for i := range in {
		in[i] = arrivals(&s, i, whole, 0.66, 10*ms, 1)
	}
	same := [3]time.Duration{10 * ms, 10 * ms, 10 * ms}
	got := split(in, same, [3]time.Duration{200 * ms, 200 * ms, 200 * ms}, 0.66)
	if got[0] < 0.5 || got[1] < 0.12 || got[2] < 0.12 {
		t.Errorf("split %v for loads %v", got, s.Pieces[0].Load)
	}
	if sum := got[0] + got[1] + got[2]; math.Abs(sum-1) > 1e-9 {
		t.Errorf("the split adds up to %v", sum)
	}
}
