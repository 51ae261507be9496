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
// inverse of the square of its band's width, so that measurements count where the service was tried,
// and its cost elsewhere. With a nil curve the result is the model's alone. It is nil if load or
// cost is not > 0. least and greatest bound the allocations of interest, > 0.
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

// join weighs the band a of the model and the band b of a learner by what they know,
//
//	u = 1/(w_a + foreign)², v = 1/w_b² - 1,   mean = (u m_a + v m_b) / (u + v)
//	w² = (u² w_a² + v² w_b²) / (u + v)²
//
// A band over everything, of width 1, knows nothing, and adds nothing to the model. The part of the
// width below the mean is weighed as well.
func join(a, b trimtab.Band) trimtab.Band {
	wide, other := a.Upper-a.Lower, b.Upper-b.Lower
	u, v := 1/square(wide+foreign), math.Max(0, 1/square(other+hardly)-1)
	mean := (u*a.Mean + v*b.Mean) / (u + v)
	width, below := math.Hypot(u*wide, v*other)/(u+v), (u*lowerPart(a)+v*lowerPart(b))/(u+v)
	return trimtab.Band{Lower: math.Max(0, mean-width*below), Mean: mean, Upper: math.Max(mean, math.Min(1, mean+width*(1-below)))}
}

// foreign is the width that the band of the model counts as beside a learner's for what no model of
// a queue knows: other resources, pauses, the network. hardly is a width that counts as none.
const foreign, hardly = 0.1, 1e-3

// lowerPart is which part of the width of a band is below its mean.
func lowerPart(b trimtab.Band) float64 {
	return (b.Mean - b.Lower + hardly/2) / (b.Upper - b.Lower + hardly)
}

func square(v float64) float64 { return v * v }
