package cilantro

import (
	"fmt"
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// Profile is a true performance curve: performance over the allocation per
// unit of load. Between points it is linear, above them flat, below them
// linear to 0.
type Profile struct {
	// X ascends strictly from >= 0, in units per request/s; P is >= 0 and
	// does not fall. Neither is beyond what package learn takes.
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
	for i := range p.X {
		if err := p.validatePoint(i); err != nil {
			return fmt.Errorf("profile %s: point %d: %w", name, i+1, err)
		}
	}
	if p.P[len(p.P)-1] <= 0 {
		return trimtab.Invalidf("profile %s: performance is 0 everywhere", name)
	}
	return nil
}

// validatePoint checks point i against its ranges and the point before.
func (p *Profile) validatePoint(i int) error {
	x, v := p.X[i], p.P[i]
	switch {
	case x != 0 && !(x >= learn.Least && x <= learn.Greatest):
		return trimtab.Invalidf("alloc_per_unit_load is %v, want 0 or %g to %g", x, learn.Least, learn.Greatest)
	case !(v >= 0 && v <= learn.Greatest):
		return trimtab.Invalidf("perf_est is %v, want 0 to %g", v, learn.Greatest)
	case i > 0 && x <= p.X[i-1]:
		return trimtab.Invalidf("alloc_per_unit_load %v follows %v, want it to ascend", x, p.X[i-1])
	case i > 0 && v < p.P[i-1]:
		return trimtab.Invalidf("performance falls from %v to %v", p.P[i-1], v)
	}
	return nil
}
