package welfare

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
)

// quantum is how many steps a utility of 1 has.
const quantum = 1 << 40

// moveCost is what moving one unit costs, in steps: about 1e-9 of utility. It
// is a thousand times the rounding of a utility, so that rounding moves nobody.
const moveCost = 1 << 10

// utility is one workload's utility as a function of whole units.
type utility struct {
	// at are the knots in units, performance what is expected there, and top
	// its running maximum.
	at, performance, top []float64
	of                   func(float64) float64
}

// mix is the performance between the mean and the upper bound.
func mix(b trimtab.Band, optimism float64) float64 {
	return (1-optimism)*b.Mean + optimism*b.Upper
}

// utilityOf reads the curve of w with the given optimism; ok is false when
// there is nothing to read.
func utilityOf(w *planner.Workload, unit, optimism float64) (u utility, ok bool) {
	if w.Curve == nil || len(w.Curve.Knots) == 0 || w.Utility == nil {
		return utility{}, false
	}
	n := len(w.Curve.Knots)
	numbers := make([]float64, 3*(n+1))
	u = utility{numbers[: 0 : n+1], numbers[n+1 : n+1 : 2*n+2], numbers[2*n+2 : 2*n+2], w.Utility}
	if w.Curve.Knots[0].Allocation > 0 {
		u.at, u.performance, u.top = append(u.at, 0), append(u.performance, 0), append(u.top, 0)
	}
	top := 0.0
	for _, k := range w.Curve.Knots {
		p := mix(k.Band, optimism)
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return utility{}, false
		}
		top = math.Max(top, p)
		u.at, u.performance, u.top = append(u.at, k.Allocation/unit), append(u.performance, p), append(u.top, top)
	}
	return u, true
}

// steps returns the utility at performance p as a whole number of steps, 0
// where the function answers nonsense.
func (u *utility) steps(p float64) int64 {
	v := u.of(p)
	if !(v > 0) {
		return 0
	}
	return int64(math.Round(math.Min(v, 1) * quantum))
}

// value returns the utility of k units in steps. It takes O(log knots).
func (u *utility) value(k int) int64 { return u.steps(u.interpolate(float64(k))) }

// interpolate returns the performance at a units.
func (u *utility) interpolate(a float64) float64 {
	lo, hi := 0, len(u.at)
	for lo < hi { // the first knot at or after a
		if m := int(uint(lo+hi) / 2); u.at[m] < a {
			lo = m + 1
		} else {
			hi = m
		}
	}
	switch {
	case lo == 0:
		return u.top[0]
	case lo == len(u.at):
		return u.top[lo-1]
	}
	return u.between(lo, a)
}

// between interpolates between knots i-1 and i; it does not fall with a.
func (u *utility) between(i int, a float64) float64 {
	x0, x1, p0, p1 := u.at[i-1], u.at[i], u.performance[i-1], u.performance[i]
	return math.Min(u.top[i], math.Max(u.top[i-1], p0+(a-x0)/(x1-x0)*(p1-p0)))
}
