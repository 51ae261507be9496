// Package welfare answers rounds by what the workloads get out of an
// allocation: social welfare, their mean utility; egalitarian welfare, their
// least one, then the next (leximin); Nash welfare, their product; and the
// operator's own, the sum or the minimum of an expression per workload.
//
//	W_S(a) = 1/n Σ u_j(a_j)           less c per unit moved
//	W_E(a) = min_j u_j(a_j), then the next least, ...
//	W_N(a) = |{j: u_j > 0}|, then Σ log u_j(a_j)   less c per unit moved
//	u_j(a) = u'_j((1−o) p̄_j(a) + o p̂_j(a)),  Σ a_j <= R
//
// where p̄ is the mean and p̂ the upper bound of the performance at the load's
// upper bound, and o the optimism: for social welfare, where hope pays for
// exploration, 0.95, and 0.6 once much is known; 0.3 and then 0.1 for egalitarian
// and 0.1 for Nash welfare, where it is paid by the worst off. On a true curve, whose bounds are
// one, these are the oracles. For social welfare and the operator's sum, hope
// goes no further than p̄ + p̂/4: a bound says little where nothing was tried, and
// who has enough is not to be dropped to nothing in the hope that it needs none.
//
// Social welfare and the operator's sum hold on to what is there by the band
// itself: that workload j is lowered from c_j, what it has, counts
//
//	h_j(a) = min(ū_j(c_j) − ū_j(a), s (1−o) (û_j(c_j) − ǔ_j(c_j))/2)   for a < c_j
//
// more than is read of it, where ǔ, ū, û are the utilities of the lower bound,
// the mean and the upper bound, and s how far hope has settled, from 0 to 1. A
// trade is made when it gains more than the band of who gives cannot tell, as
// far as that is not hoped upon. While little is known s is 0, so that
// exploration goes on; who is raised, as on a miss of its SLO, and who gives
// what its mean does not need, is not held; and the doubt shrinks with the
// band. u_j − h_j does not fall with the allocation, so all below holds for it.
//
// What an answer leaves over is worth nothing by these; [Secured] spends it on
// what is not certain.
//
// Performance is read as not falling with the allocation: a curve that falls is
// replaced, at its knots, by the nearest that does not,
//
//	p(a) = (max_{b <= a} p(b) + min_{b >= a} p(b)) / 2
//
// so that noise below an allocation does not hide what was measured there. Below a
// curve's first knot it falls linearly to 0: nothing is proven there.
//
// Answers are exact on whole units, or come with a bound on what they miss:
// see [Social.Solve]. Utilities are counted in steps of 2^-40, so that ties are
// ties: they go to fewest units moved, then fewest units used, then by name
// (the first name gets most).
//
// Over several hosts, Σ_j f_jh a_j <= C_h for each of them, the least utility is
// exact as well: who finds a host full stays where it is, the others go on
// (ascend.go). Sums are divided into those that share no host, of which one
// on a single host is answered as a pool is; the others are answered by prices of
// hosts, with the gap that the prices prove (market.go). Gaps are some tenths of a
// percent for curves whose steps are small against a host, and some percent where
// a workload has nothing but one large step.
//
// Source: Cilantro (OSDI'23), section 4.1.1, equations (1) and (2), and
// 4.1.2, equation (4); the paper searches with an evolutionary algorithm. The
// Lagrangian bound for separable problems is that of Everett (1963).
//
// The package does not bound steps (see package planner) and knows no weights
// nor groups: an entitlement is not a utility.
//
//	s, err := welfare.Egalitarian{}.Solve(problem)
package welfare
