package bintree

import "math"

// The link maps performance to a scale on which its noise is even: the arcsine
// of the square root for fractions, the square root for other numbers.
//
// Source: F. Anscombe, The transformation of Poisson, binomial and negative-
// binomial data, Biometrika 35, 1948.

// highest returns the end of the link's range.
func (m mode) highest() float64 {
	if m == fraction {
		return math.Pi / 2
	}
	return math.Sqrt(greatest)
}

// link returns y(p) for a mean of n effective requests, and the variance of y.
// For numbers variance is that of p, and n is ignored.
func (m mode) link(p, n, variance float64) (y, v float64) {
	if m == fraction {
		return math.Asin(math.Sqrt((p*n + 0.375) / (n + 0.75))), 1 / (4*n + 2)
	}
	return math.Sqrt(p), variance / (4*math.Max(p, math.Sqrt(variance)) + 1e-300)
}

// unlink returns p(y), with y clipped to the link's range.
func (m mode) unlink(y float64) float64 {
	y = math.Max(0, math.Min(m.highest(), y))
	if m == fraction {
		s := math.Sin(y)
		return s * s
	}
	return y * y
}

// steep returns dy/dp at p, where unit is the variance of one report of
// weight 1 at p.
func (m mode) steep(p, unit float64) float64 {
	if m == fraction {
		return 1 / (2 * math.Sqrt(unit))
	}
	return 1 / (2 * math.Sqrt(math.Max(p, math.Sqrt(unit))))
}
