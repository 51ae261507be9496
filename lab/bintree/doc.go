// Package bintree learns a performance curve with a binning tree over
// x = log2(a/l), allocation per unit of load: leaves are dyadic cells, at most
// 96, each holding the moments of its reports.
//
// The estimate is a random walk seen with noise, on a scale g where the noise
// is even (arcsine of the square root for fractions of requests, square root
// for other numbers), with bounds
//
//	m(x+d) = m(x) + N(0, q d)            q: how steep, estimated per gap
//	g(pᵢ)  = m(xᵢ) + β ln(lᵢ/l₀) + N(0, rᵢ)   rᵢ: noise, estimated per bin
//	[lower, upper] = g⁻¹(isotonic(m ± z √var))
//
// The allocation and the load enter through their ratio alone as long as the
// service scales; β, shrunk to 0, is the guard: it shifts and widens what is
// said about loads that were not seen at this ratio. Outside the visited
// range only monotonicity is claimed: the upper bound to the right is 1 (for
// numbers: no better than in proportion to the allocation), the lower bound
// to the left is 0. That is the optimism that makes a policy explore, and it
// narrows as reports come in.
//
// A CUSUM test on what the curve does not explain forgets everything but the
// latest run of reports when the service has changed; a bin remembers 512
// reports, so that slow drift is followed too.
//
// trimtab itself learns with learn/gp. This package stays since it is the structure that the
// paper describes: `trimtab-lab sim cilantro` and `trimtab-lab calc learn` compare others with
// it, and tests that want a fast learner use it.
//
// Source: the tree of Cilantro (OSDI'23), section 5, whose published bounds
// depend on profiled constants and do not hold at their level; the smoother is
// H. Rauch, F. Tung, C. Striebel, AIAA Journal 3(8), 1965. It does not learn
// several resources at once.
//
//	t, err := bintree.New(0.9)
//	err = t.Observe(learn.Observation{Allocation: 4, Load: 20, Performance: 0.93, Requests: 200})
//	band := t.Predict(5, 20)
package bintree
