package policy

import "math"

// Linear returns the utility m = min(1, performance/slo) (Cilantro, figure 4a).
func Linear(slo float64) func(float64) float64 {
	return func(p float64) float64 { return math.Min(1, p/slo) }
}

// Quadratic returns m squared: even small violations hurt (figure 4b).
func Quadratic(slo float64) func(float64) float64 {
	return func(p float64) float64 { m := math.Min(1, p/slo); return m * m }
}

// SquareRoot returns the root of m: small violations hardly hurt (figure 4c).
func SquareRoot(slo float64) func(float64) float64 {
	return func(p float64) float64 { return math.Sqrt(math.Min(1, p/slo)) }
}
