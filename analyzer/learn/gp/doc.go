// Package gp learns a performance curve as a Gaussian process over
// x = log2(a/l), allocation per unit of load, that is monotone where the data
// agree. Reports are kept as the moments of at most 128 bins, narrow where
// reports are many; the process is a random walk with a variance of its own
// for each gap, seen with noise,
//
//	m(x+d) = m(x) + N(0, q d)            q: how steep, estimated per gap
//	pᵢ  = m(xᵢ) + β g ln(lᵢ/l₀) + N(0, rᵢ)   rᵢ: noise, estimated per bin
//	[lower, upper] = isotonic(Wilson(m, var; z))
//
// interpolated between bins: along the line where the curve is smooth, and as
// the hull of both ends as far as it is abrupt, since a step may be anywhere
// between them. A bin narrower than 0.5% is one place.
//
// A walk with local variances follows steps, which recorded curves consist of
// and smooth kernels ring at, and its exact posterior costs microseconds.
//
// Noise is binomial for fractions of requests, as declared by sigma, or else
// estimated from the spread inside bins and the differences of successive
// ones; never less than binomial, more where requests fail together. The
// allocation and the load enter through their ratio as long as the service
// scales; β, shrunk to 0, is the guard: it shifts and widens what is said
// about loads that were not seen at this ratio.
//
// Where isotonic regression would level data that fall beyond doubt, the
// curve falls: more resource makes it worse there, and Falls says so. Outside
// the visited range only monotonicity is claimed: the upper bound to the
// right is 1 (for numbers: no better than in proportion to the allocation),
// the lower bound to the left is 0. That is the optimism that makes a policy
// explore, and it narrows as reports come in. The mean is a guess there: as
// far to the right as it got, to the left as 2^(−d²/2) for d octaves of allocation.
//
// A CUSUM test over blocks of 12 reports, each judged by what was known before
// it, makes it forget all but the reports since a change: two blocks beyond
// 3.5 standard errors to one side, or more weaker ones, and 4% of the
// performance. A bin remembers 1024 reports, so that slow drift is followed
// too. Revise keeps the curve of an earlier version as a guess worth a block.
// Nothing is profiled beforehand; a learner takes at most 64 KiB.
//
// Source: Cilantro (OSDI'23), section 4.1.2, for what a learner must give;
// the posterior is that of H. Rauch, F. Tung, C. Striebel, AIAA Journal 3(8),
// 1965. It learns one resource.
//
//	p, err := gp.New(0.9)
//	err = p.Observe(learn.Observation{Allocation: 4, Load: 20, Performance: 0.93, Requests: 200})
//	band := p.Predict(5, 20)
package gp
