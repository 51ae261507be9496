package queue

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// points is at how many allocations the model alone is read.
const points = 40

// Inform joins the curve of a learner that models no queue with the model: each counts by the
// inverse of the square of its band's width,
//
//	mean = (m_c/s_c² + m_q/s_q²) / (1/s_c² + 1/s_q²),   1/s² = 1/s_c² + 1/s_q²
//
// so that measurements count where the service was tried, and its cost elsewhere. With a nil
// curve the result is the model's alone. It is nil if load or cost is not > 0. least and greatest
// bound the allocations of interest, > 0.
func (m *Model) Inform(c *trimtab.Curve, load, cost, level, least, greatest float64) *trimtab.Curve {
	if !(load > 0) || !(cost > 0) || !(greatest > least) || !(least >= 0) {
		return c
	}
	at := make([]float64, 0, points+trimtab.MaxKnots)
	from := math.Max(least, greatest/1000)
	for i := range points {
		at = append(at, from*math.Pow(greatest/from, float64(i)/(points-1)))
	}
	// The knee is where it matters.
	for _, f := range []float64{0.9, 1, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.3, 2.6} {
		if a := f * load * cost; a > least && a < greatest {
			at = append(at, a)
		}
	}
	if c != nil {
		for _, k := range c.Knots {
			at = append(at, k.Allocation)
		}
	}
	slices.Sort(at)
	out := &trimtab.Curve{Load: load, Level: level}
	var top trimtab.Band
	for _, a := range at {
		if n := len(out.Knots); n > 0 && a <= out.Knots[n-1].Allocation*(1+1e-9) {
			continue
		}
		b := m.Predict(a, load, cost, level)
		if c != nil {
			b = join(b, c.Eval(a))
		}
		top.Lower = math.Max(top.Lower, b.Lower)
		top.Mean = math.Max(math.Max(top.Mean, b.Mean), top.Lower)
		top.Upper = math.Max(math.Max(top.Upper, b.Upper), top.Mean)
		out.Knots = append(out.Knots, trimtab.Knot{Allocation: a, Band: top})
	}
	out.Knots = learn.Thin(out.Knots, trimtab.MaxKnots)
	return out
}

// join weighs two bands by the inverse of the square of their widths.
func join(a, b trimtab.Band) trimtab.Band {
	u, v := 1/square(a.Upper-a.Lower+1e-3), 1/square(b.Upper-b.Lower+1e-3)
	mean := (u*a.Mean + v*b.Mean) / (u + v)
	half := 0.5 / math.Sqrt(u+v)
	// Where they differ by more than their bands allow, one of them is wrong.
	apart := math.Abs(a.Mean - b.Mean)
	half = math.Max(half, 0.5*math.Min(apart*math.Min(u, v)/(u+v)*2, 1))
	return trimtab.Band{Lower: math.Max(0, mean-half), Mean: mean, Upper: math.Max(mean, math.Min(1, mean+half))}
}

func square(v float64) float64 { return v * v }
