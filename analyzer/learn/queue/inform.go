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
		b, width := m.predict(a, load, cost, level)
		if c != nil {
			b = join(b, width, c.Eval(a))
		}
		top.Lower = math.Max(top.Lower, b.Lower)
		top.Mean = math.Max(math.Max(top.Mean, b.Mean), top.Lower)
		top.Upper = math.Max(math.Max(top.Upper, b.Upper), top.Mean)
		out.Knots = append(out.Knots, trimtab.Knot{Allocation: a, Band: top})
	}
	out.Knots = learn.Thin(out.Knots, trimtab.MaxKnots)
	return out
}

// join weighs the band a of the model, and the width of the mixture that its mean is of, with the
// band b of a learner. The mean is that of both by the inverse of the squares of their widths. The
// bounds are by what each knows,
//
//	u = 1/(w_a + 2 foreign)², v = 1/w_b² - 1
//	w² = (u² w_a² + v² w_b² + u v (deviations (m_a - m_b))²) / (u + v)²
//
// around a mean with these weights: a band over everything, of width 1, knows nothing, and narrows
// nothing; where both disagree, the band is wider. The part of the width below the mean is weighed as well.
func join(a trimtab.Band, mixed float64, b trimtab.Band) trimtab.Band {
	wide, other := a.Upper-a.Lower, b.Upper-b.Lower
	mean := weighed(1/square(mixed+hardly), a.Mean, 1/square(other+hardly), b.Mean)
	u, v := 1/square(wide+2*foreign), math.Max(0, 1/square(other+hardly)-1)
	middle, width := weighed(u, a.Mean, v, b.Mean), math.Hypot(math.Hypot(u*wide, v*other), math.Sqrt(u*v)*deviations*(a.Mean-b.Mean))/(u+v)
	lower := middle - width*weighed(u, lowerPart(a), v, lowerPart(b))
	return trimtab.Band{Lower: math.Max(0, math.Min(lower, mean)), Mean: mean, Upper: math.Max(mean, math.Min(1, lower+width))}
}

func weighed(u, a, v, b float64) float64 { return (u*a + v*b) / (u + v) }

// foreign is by how much a service may be better or worse than a model of a queue knows, by other
// resources, pauses, the network, where it is weighed with a learner. hardly is a width that counts
// as none. deviations is how many standard deviations wide a band of level 0.9 is.
const foreign, hardly, deviations = 0.05, 1e-3, 3.29

// lowerPart is which part of the width of a band is below its mean.
func lowerPart(b trimtab.Band) float64 {
	return (b.Mean - b.Lower + hardly/2) / (b.Upper - b.Lower + hardly)
}

func square(v float64) float64 { return v * v }
