// Package walk holds what learners of a curve over x = log2(a/l), allocation
// per unit of load, share: reports in these coordinates, the moments of those
// that lie together, and a random walk through them, seen with noise,
//
//	m(x+d) = m(x) + N(0, q d)                q: how steep, estimated per gap
//	pᵢ  = m(xᵢ) + β g ln(lᵢ/l₀) + N(0, rᵢ)   rᵢ: noise, estimated per bin
//
// with noise that is binomial for fractions of requests, as declared by sigma,
// or else in proportion to the performance.
//
// Source: the smoother is that of H. Rauch, F. Tung, C. Striebel, AIAA Journal
// 3(8), 1965; the moments are updated as in T. Chan, G. Golub, R. LeVeque, The
// American Statistician 37(3), 1983.
//
// It does not choose the bins, add what monotonicity says, or forget: that is
// what learners differ in.
//
//	report, ok := walk.ModeOf(o).Report(o)
//	one := walk.One(report)
//	bin.Merge(&one)
package walk
