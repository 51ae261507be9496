package cilantro

import (
	"math"
	"sort"

	"github.com/trimtab/trimtab"
)

// Profile is a true performance curve: performance over the allocation per
// unit of load. Between points it is linear, above them flat, below them
// linear to 0.
type Profile struct {
	// X ascends strictly from >= 0, in units per request/s; P is >= 0 and
	// does not fall.
	X, P []float64
	// Work is what one request costs, in unit-seconds, > 0; it matters where
	// queues carry over. 0: where the curve reaches half of its end.
	Work float64
}

// At returns the performance at x = a/l.
func (p *Profile) At(x float64) float64 {
	n := len(p.X)
	i := sort.SearchFloat64s(p.X, x)
	switch {
	case x <= 0:
		return 0
	case i == 0:
		return p.P[0] * x / p.X[0]
	case i == n:
		return p.P[n-1]
	}
	t := (x - p.X[i-1]) / (p.X[i] - p.X[i-1])
	return p.P[i-1] + t*(p.P[i]-p.P[i-1])
}

// Least returns the least x that reaches performance slo, and the end of the
// curve when it never does.
func (p *Profile) Least(slo float64) float64 {
	i := sort.SearchFloat64s(p.P, slo)
	switch {
	case i == len(p.P):
		return p.X[i-1]
	case i == 0:
		return p.X[0] * slo / p.P[0]
	}
	t := (slo - p.P[i-1]) / (p.P[i] - p.P[i-1])
	return p.X[i-1] + t*(p.X[i]-p.X[i-1])
}

// work returns what one request costs.
func (p *Profile) work() float64 {
	if p.Work > 0 {
		return p.Work
	}
	return p.Least(p.P[len(p.P)-1] / 2)
}

// validate checks order and ranges.
func (p *Profile) validate(name string) error {
	if len(p.X) < 2 || len(p.X) != len(p.P) {
		return trimtab.Invalidf("profile %s: %d points, want at least 2", name, len(p.X))
	}
	for i, x := range p.X {
		if !(x >= 0) || !(p.P[i] >= 0) || math.IsInf(x, 0) || math.IsInf(p.P[i], 0) {
			return trimtab.Invalidf("profile %s: point %d is (%v, %v): want finite numbers >= 0", name, i+1, x, p.P[i])
		}
		if i > 0 && (x <= p.X[i-1] || p.P[i] < p.P[i-1]) {
			return trimtab.Invalidf("profile %s: point %d at %v follows one at %v, or performance falls", name, i+1, x, p.X[i-1])
		}
	}
	if p.P[len(p.P)-1] <= 0 {
		return trimtab.Invalidf("profile %s: performance is 0 everywhere", name)
	}
	return nil
}
