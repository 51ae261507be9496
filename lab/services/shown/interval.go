package shown

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trimtab/trimtab"
)

// Interval returns between which bounds a share of n requests lies with the probability level, if
// its mean lies in b with that probability:
//
//	lower = m - √((m - L)² + z² v(L)),   upper = m + √((U - m)² + z² v(U))
//
// with m, L and U the mean and the bounds of b, z the normal quantile of the level, and v(p) the
// variance of a share whose mean is p.
func Interval(b trimtab.Band, n, level float64) (lower, upper float64) {
	z := distuv.UnitNormal.Quantile(0.5 + level/2)
	return b.Mean - math.Hypot(b.Mean-b.Lower, z*deviation(b.Lower, n)), b.Mean + math.Hypot(b.Upper-b.Mean, z*deviation(b.Upper, n))
}

// deviation is the standard deviation of a share of n requests with mean p, with the two successes
// and two failures of Agresti and Coull: a mean of 0 or 1 has noise, too. So many requests in a row
// share a fate, and count as one.
func deviation(p, n float64) float64 {
	const together = 4
	m := n/together + 4
	p = (p*n/together + 2) / m
	return math.Sqrt(p * (1 - p) / m)
}
