package calibrate

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trimtab/trimtab"
)

const (
	// Least is the least d⁻, most the greatest of both, Rate the step. Chosen by `trimtab-lab sim
	// services --coverage` with services whose work varies from not at all to exponentially.
	Least, most = 0.12, 0.7
	Rate        = 0.1
	// Enough is how many requests are compared at a time, Together how many in a row share a fate:
	// so many count as one.
	Enough, Together = 100, 4
)

// Calibration is both d of one curve. The zero Calibration has compared nothing. It is data, for
// snapshots.
type Calibration struct {
	// Below is d⁻ - Least, Above is d⁺.
	Below float64 `json:"below"`
	Above float64 `json:"above"`
	// Requests were seen since the last comparison. The others are sums over them: how many were
	// in time and, of what was expected, the mean and the bounds, and by how much Least alone
	// widens the band.
	Requests float64 `json:"requests,omitempty"`
	InTime   float64 `json:"in_time,omitempty"`
	Mean     float64 `json:"mean,omitempty"`
	Lower    float64 `json:"lower,omitempty"`
	Upper    float64 `json:"upper,omitempty"`
	Widened  float64 `json:"widened,omitempty"`
}

// Validate returns an error that is trimtab.ErrInvalid if a number is out of range.
func (k *Calibration) Validate() error {
	if !(k.Below >= 0 && k.Below <= most-Least && k.Above >= 0 && k.Above <= most) {
		return trimtab.Invalidf("calibration: off by %v and %v", k.Below, k.Above)
	}
	for _, v := range []float64{k.Requests, k.InTime, k.Mean, k.Lower, k.Upper, k.Widened} {
		if !(v >= 0 && v <= 2*Enough) {
			return trimtab.Invalidf("calibration: sum of %v", v)
		}
	}
	return nil
}

// Widen returns the curve with calibrated bounds; nil stays nil. dearer is by how much more, as a
// logarithm of the allocation, the service may need than was measured, >= 0: it lowers the lower
// bound only.
func (k *Calibration) Widen(c *trimtab.Curve, dearer float64) *trimtab.Curve {
	if c == nil {
		return nil
	}
	out := *c
	out.Knots = make([]trimtab.Knot, len(c.Knots))
	for i := range c.Knots {
		a := c.Knots[i].Allocation
		out.Knots[i] = trimtab.Knot{Allocation: a, Band: around(c, a, math.Min(Least+k.Below+dearer, most), k.Above)}
	}
	return &out
}

// around is the band at an allocation of a curve that is off by factors of it.
func around(c *trimtab.Curve, a, down, up float64) trimtab.Band {
	b := c.Eval(a)
	b.Lower = math.Min(b.Lower, c.Eval(a*math.Exp(-down)).Lower)
	b.Upper = math.Max(b.Upper, c.Eval(a*math.Exp(up)).Upper)
	return b
}

// Observe compares requests with a curve that was made before them and not widened; nil: there was
// none. The share inTime of them was in time, at an allocation and a load.
func (k *Calibration) Observe(c *trimtab.Curve, allocation, load, inTime, requests float64) {
	if c == nil || !(requests > 0) || !(load > 0) || !(allocation > 0) {
		return
	}
	n := math.Min(requests, Enough) // more of one report are not more independent
	scale, _ := c.Scale(load)
	a := allocation / scale
	b := around(c, a, Least+k.Below, k.Above)
	plain, least := c.Eval(a), around(c, a, Least, Least)
	k.Requests += n
	k.InTime += n * math.Min(inTime, 1)
	k.Mean += n * b.Mean
	k.Lower += n * b.Lower
	k.Upper += n * b.Upper
	k.Widened += n * (least.Upper - least.Lower - plain.Upper + plain.Lower)
	if k.Requests < Enough {
		return
	}
	k.judge(c.Level)
	*k = Calibration{Below: k.Below, Above: k.Above}
}

// judge compares what was seen since the last comparison.
func (k *Calibration) judge(level float64) {
	n := k.Requests
	b := trimtab.Band{Lower: k.Lower / n, Mean: k.Mean / n, Upper: k.Upper / n}
	if k.Widened/n <= normal(level)*deviation(b.Mean, n) {
		return // whatever d is, it would be lost in the noise
	}
	lower, upper := Interval(b, n, level)
	k.Below = math.Min(track(k.Below, k.InTime/n < lower, level), most-Least)
	k.Above = math.Min(track(k.Above, k.InTime/n > upper, level), most)
}

// track returns the next value of a d >= 0, of which half of what is not the level may miss.
func track(d float64, miss bool, level float64) float64 {
	if miss {
		d += Rate
	}
	return math.Max(0, d-Rate*(1-level)/2)
}

// Interval returns between which bounds a share of n requests lies with the probability level, if
// its mean lies in b with that probability:
//
//	lower = m - √((m - L)² + z² v(L)),   upper = m + √((U - m)² + z² v(U))
//
// with m, L and U the mean and the bounds of b, z the normal quantile of the level, and v(p) the
// variance of a share whose mean is p.
func Interval(b trimtab.Band, n, level float64) (lower, upper float64) {
	z := normal(level)
	return b.Mean - math.Hypot(b.Mean-b.Lower, z*deviation(b.Lower, n)), b.Mean + math.Hypot(b.Upper-b.Mean, z*deviation(b.Upper, n))
}

// normal is the quantile within which, on both sides, a standard normal value lies with the
// probability level.
func normal(level float64) float64 { return distuv.UnitNormal.Quantile(0.5 + level/2) }

// deviation is the standard deviation of a share of n requests with mean p, with the two successes
// and two failures of Agresti and Coull: a mean of 0 or 1 has noise, too.
func deviation(p, n float64) float64 {
	m := n/Together + 4
	p = (p*n/Together + 2) / m
	return math.Sqrt(p * (1 - p) / m)
}
