package welfare

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// quantum is how many steps a utility of 1 has.
const quantum = 1 << 40

// moveCost is the least cost of moving one unit, in steps: about 1e-9 of utility. It is a
// thousand times the rounding error of a utility, so that rounding moves nothing.
const moveCost = 1 << 10

// reading defines how a policy evaluates a workload: the performance that it assumes, and the
// utility of it in whole steps.
type reading struct {
	// optimism is the weight of the upper bound over the mean, in [0, 1], for a model with that
	// many reports.
	optimism func(reports int) float64
	// of returns the performance to assume, given the optimism; limited says that it is at most
	// hopeMost.
	of      func(b trimtab.Band, optimism float64) float64
	limited bool
	// holds says that a reduction also costs the uncertainty of the band.
	holds bool
	// worth returns the function from performance to a worth in [0, 1].
	worth func(*policy.Workload) func(performance float64) float64
	// steps converts a worth in [0, 1] to steps; it must not decrease.
	steps func(worth float64) int64
	// fine is the gap, in steps for each workload, at which a sampled answer is good enough; 0: a
	// share of the answer's worth.
	fine float64
}

// utilities returns the reading in equal steps of 2^-40.
func utilities(optimism float64) reading {
	return settling(optimism, optimism)
}

// fewReports and manyReports are the numbers of reports between which optimism decays: 20 and 60
// rounds of 12 reports.
const fewReports, manyReports = 240, 720

// settled returns how far optimism has decayed, in [0, 1].
func settled(reports int) float64 {
	return math.Min(math.Max(float64(reports-fewReports)/(manyReports-fewReports), 0), 1)
}

// settling returns a reading whose optimism decays from one value to another as reports accumulate.
func settling(from, to float64) reading {
	return reading{optimism: func(reports int) float64 {
		return from + settled(reports)*(to-from)
	}, of: mix, worth: func(w *policy.Workload) func(float64) float64 { return w.Utility }, steps: equalSteps}
}

// at returns the same reading for one bound of the band.
func (how reading) at(bound func(trimtab.Band) float64) reading {
	how.of, how.limited = func(b trimtab.Band, _ float64) float64 { return bound(b) }, false
	return how
}

// equalSteps counts v in steps of 2^-40; 0 for NaN.
func equalSteps(v float64) int64 {
	if !(v > 0) {
		return 0
	}
	return int64(math.Round(math.Min(v, 1) * quantum))
}

// optimismOf returns v, the default for 0, and 0 for negative ones.
func optimismOf(v, otherwise float64) float64 {
	switch {
	case v == 0:
		return otherwise
	case !(v > 0):
		return 0
	}
	return math.Min(v, 1)
}

// cautionOf returns v, at most 1, or the default.
func cautionOf(v, otherwise float64) float64 {
	if v > 0 {
		return math.Min(v, 1)
	}
	return otherwise
}

// traitsOf returns the traits of an objective that evaluates workloads by how.
func traitsOf(how reading, caution float64, score func(*policy.Problem, reading) func(units []int) float64) policy.Traits {
	return policy.Traits{
		Weighs:  true,
		Serves:  true, // values above the largest utility are worth nothing
		Caution: caution,
		Expect:  func(b trimtab.Band, reports int) float64 { return how.of(b, how.optimism(reports)) },
		Scorer:  func(p *policy.Problem) func(units []int) float64 { return score(p, how) },
	}
}

// utility is one workload's utility as a function of whole units.
type utility struct {
	// at are the knots in units; performance is the expected performance there; top is the same
	// made monotone, see ascend.
	at, performance, top []float64
	of                   func(float64) float64
	count                func(float64) int64
	// fall is the additional cost of a reduction; nil: none.
	fall *fall
	// worth are the utilities at the knots in steps, computed at the first use.
	worth []int64
}

// mix returns the performance between the mean and the upper bound, by optimism.
func mix(b trimtab.Band, optimism float64) float64 {
	return (1-optimism)*b.Mean + optimism*b.Upper
}

// mostHope is how much of the upper bound optimism may add to the mean. Tuned by measurement:
// values from .2 to .45 give similar results; without it, a workload that was never tried with less
// is lowered until it fails.
const mostHope = 0.25

// hopeMost returns the largest performance that optimism may assume.
func hopeMost(b trimtab.Band) float64 { return b.Mean + mostHope*b.Upper }

// hope returns mix, at most hopeMost.
func hope(b trimtab.Band, optimism float64) float64 {
	return math.Min(mix(b, optimism), hopeMost(b))
}

// utilityOf evaluates the curve of w; ok is false if it has none.
func utilityOf(w *policy.Workload, unit float64, how reading) (u utility, ok bool) {
	worth := how.worth(w)
	if w.Curve == nil || len(w.Curve.Knots) == 0 || worth == nil {
		return utility{}, false
	}
	knots, optimism := w.Curve.Knots, how.optimism(w.Reports)
	n := len(knots) + 1
	if how.limited {
		n += len(knots)
	}
	numbers := make([]float64, 3*n)
	u = utility{numbers[:0:n], numbers[n : n : 2*n], numbers[2*n : 2*n], worth, how.steps, nil, nil}
	if knots[0].Allocation > 0 {
		u.add(0, 0)
	}
	for i := range knots {
		k := &knots[i]
		p := how.of(k.Band, optimism)
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return utility{}, false
		}
		if how.limited && i > 0 {
			u.bend(&knots[i-1], k, unit, optimism)
		}
		u.add(k.Allocation/unit, p)
	}
	u.ascend()
	return u, true
}

// ascend makes a curve monotone at its knots: each becomes the mean of the highest up to there and
// the lowest from there on. With the highest alone, noise at a lower allocation would count as more
// than was measured here, and the workload would stay there.
func (u *utility) ascend() {
	least := math.Inf(1)
	for i := len(u.top) - 1; i >= 0; i-- {
		least = math.Min(least, math.Max(0, u.performance[i]))
		if u.top[i] > least {
			u.top[i] = (u.top[i] + least) / 2
		}
	}
	copy(u.performance, u.top)
}

// add appends one knot.
func (u *utility) add(at, performance float64) {
	top := math.Max(0, performance)
	if n := len(u.top); n > 0 {
		top = math.Max(top, u.top[n-1])
	}
	u.at, u.performance, u.top = append(u.at, at), append(u.performance, performance), append(u.top, top)
}

// bend adds a knot where the bound hopeMost begins or ceases to apply between a and b: the
// minimum of two lines is not a line.
func (u *utility) bend(a, b *trimtab.Knot, unit, optimism float64) {
	before, after := mix(a.Band, optimism)-hopeMost(a.Band), mix(b.Band, optimism)-hopeMost(b.Band)
	if before < 0 == (after < 0) || before == after {
		return
	}
	t := before / (before - after)
	at, p, q := a.Allocation+t*(b.Allocation-a.Allocation), hopeMost(a.Band), hopeMost(b.Band)
	u.add(at/unit, p+t*(q-p))
}

// steps returns the utility at performance p as a whole number of steps.
func (u *utility) steps(p float64) int64 { return u.count(u.of(p)) }

// value returns the utility of k units in steps, less the cost of a fall; it does not decrease in
// k. It takes O(log knots).
func (u *utility) value(k int) int64 { return u.steps(u.interpolate(float64(k))) - u.fall.at(k) }

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
