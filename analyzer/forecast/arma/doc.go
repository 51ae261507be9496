// Package arma expects a load to return to its mean as an autoregressive
// moving average does, on the root scale of the package conformal:
//
//	y[t] − μ = φ (y[t−1] − μ) + e[t] + θ e[t−1]
//
// with μ, φ, θ refitted every 32 reports by the conditional sum of squares
// over the last 512.
//
// Source: Cilantro (OSDI'23), section 5, whose Gaussian bounds do not hold on
// recorded loads: here the bound is that of the package conformal. It knows no
// seasons.
package arma
