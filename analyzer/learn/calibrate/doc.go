// Package calibrate keeps the bands of a curve at their level by what came of them.
//
// A learner and a model of a queue each know how sure they are of what they were taught. They do
// not know how far the service is from what they assume: that reports are independent, that the
// performance depends on allocation and load alone, that its queue is the model's. So the curve is
// taken to be off by a factor e^d of the allocation, in either direction,
//
//	lower'(a) = lower(a e^(-d⁻)),  d⁻ >= Least;   upper'(a) = upper(a e^d⁺),  d⁺ >= 0
//
// where it is steep, the band widens most, and where everything is in time, not at all. Requests
// are compared with the band that was shown before them, [Enough] at a time, and
//
//	d⁻ <- d⁻ + Rate (below - (1 - L)/2),   below = 1 if their share in time is below the band, else 0
//	d⁺ <- d⁺ + Rate (above - (1 - L)/2),   above = 1 if it is above, else 0
//
// so that a share L of the comparisons is inside in the long run, whatever the service does and
// however it changes: each d rises after more misses than the level L allows for, and falls after
// fewer. A share of n requests, of which [Together] in a row share a fate, is compared with the
// bounds of such a share, which are wider than the band of its mean: see [Interval]. A comparison
// in which d makes no difference, such as one far above what is needed, does not count.
//
// Least is what a workload's own reports cannot tell: they are of the allocations that it had, and
// the band is for all. There is none above: planners that explore plan with the upper bound, and a
// service that turns out better than believed harms nobody.
//
// Source: quantile tracking, the first part of A. Angelopoulos, E. Candès, R. Tibshirani,
// "Conformal PID Control for Time Series Prediction" (NeurIPS 2023), after I. Gibbs, E. Candès,
// "Adaptive Conformal Inference Under Distribution Shift" (NeurIPS 2021). That d is a factor of
// the allocation, and its least value, are ours.
//
// The package does not decide which requests are of a steady state: see analyzer.
package calibrate
