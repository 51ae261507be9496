// Package arma forecasts a load by an autoregressive moving average, with a
// bound for the highest of the next h reports that holds at its level
// whatever the noise is.
//
// On the scale y = sqrt(load), where the noise of counts is even,
//
//	y[t] − μ = φ (y[t−1] − μ) + e[t] + θ e[t−1]
//	upper = (max of the expected path + Q)²
//
// with μ, φ, θ refitted by the conditional sum of squares over a sliding
// window, and Q the quantile of what the highest of h reports was above the
// expected path in the last rounds (split conformal), at a level that is
// itself corrected by how often the bound was crossed. The same is done for
// the naive forecast "as now"; when ARMA's bounds are no sharper, the
// forecast is that one and its model "abstain".
//
// Source: Cilantro (OSDI'23), section 5, for ARMA(1,1), whose Gaussian bounds
// do not hold on recorded loads; I. Gibbs, E. Candès, Adaptive conformal
// inference under distribution shift, NeurIPS 2021, for the correction. It
// knows no seasons.
//
//	f, err := arma.New(arma.Config{Horizon: 12, Level: 0.9})
//	err = f.Observe(41.5)
//	next, ok := f.Forecast(12, 0.9)
package arma
