package learn

import (
	"math"

	"github.com/trimtab/trimtab"
)

// resolution is how many points of a curve a learner is asked for: steps of
// 0.7% over three orders of magnitude.
const resolution = 1024

// CurveOf returns what l knows at the given load (requests/s, > 0) for
// allocations from min to max (0 <= min < max, in the pool's unit), as data
// for the planner, or nil when l holds no report or an argument is out of
// range. Level is the level that l's bounds hold at.
//
// l is asked at 1024 allocations that are the same share apart, since learners
// resolve ratios of allocations; bounds are made non-decreasing in the
// allocation, as the performance is, unless l is [Falling] and says that it
// falls. Of these points at most trimtab.MaxKnots
// stay, those where the curve bends most: see [Thin].
func CurveOf(l Learner, load, min, max float64, level float64) *trimtab.Curve {
	finite := !math.IsInf(load, 0) && !math.IsInf(max, 0) && load > 0 && min >= 0 && max > min
	if !finite || !(level > 0 && level < 1) || l.Reports() == 0 {
		return nil
	}
	c := &trimtab.Curve{Load: load, Level: level, Knots: make([]trimtab.Knot, 0, resolution)}
	n := resolution
	if low := max / 1000; min < low {
		// Ratios cannot start at 0: one knot there, the others above max/1000.
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: min, Band: l.Predict(min, load)})
		min = low
		n--
	}
	ratio := math.Log(max / min)
	for i := range n {
		a := max
		if i < n-1 {
			a = min * math.Exp(ratio*float64(i)/float64(n-1))
		}
		if k := len(c.Knots); k > 0 && a <= c.Knots[k-1].Allocation {
			continue // min and max are within rounding of each other
		}
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: l.Predict(a, load)})
	}
	if f, ok := l.(Falling); !ok || !f.Falls() {
		ascend(c.Knots)
	}
	c.Knots = Thin(c.Knots, trimtab.MaxKnots)
	return c
}

// ascend makes all three curves non-decreasing, by the running maximum.
func ascend(knots []trimtab.Knot) {
	var top trimtab.Band
	for i := range knots {
		b := &knots[i].Band
		top.Lower = math.Max(top.Lower, b.Lower)
		top.Mean = math.Max(top.Mean, math.Max(b.Mean, top.Lower))
		top.Upper = math.Max(top.Upper, math.Max(b.Upper, top.Mean))
		*b = top
	}
}
