// Package welfare maximises a function of the workloads' utilities: social welfare, their mean;
// egalitarian welfare, the least, then the next (leximin); Nash welfare, their product; and the
// operator's own, the sum or the minimum of an expression per workload.
//
//	W_S(a) = 1/n Σ u_j(a_j)           less c per unit moved
//	W_E(a) = min_j u_j(a_j), then the next least, ...
//	W_N(a) = |{j: u_j > 0}|, then Σ log u_j(a_j)   less c per unit moved
//	u_j(a) = u'_j((1−o) p̄_j(a) + o p̂_j(a)),  Σ a_j <= R
//
// where p̄ is the mean and p̂ the upper bound of the performance at the load's upper bound, and o
// the optimism: 0.95 for social welfare, which needs exploration, and 0.6 once much is known; 0.3
// and then 0.1 for egalitarian and 0.1 for Nash welfare, where the worst off would pay for it. On
// a true curve, whose bounds are equal, these are the oracles. For social welfare and the
// operator's sum, optimism counts no more than p̄ + p̂/4: where nothing was tried the upper bound
// says little, and must not take all from a workload that has enough.
//
// Social welfare and the operator's sum add a cost of change from the band: lowering workload j
// from c_j, its present allocation, costs
//
//	h_j(a) = min(ū_j(c_j) − ū_j(a), s (1−o) (û_j(c_j) − ǔ_j(c_j))/2)   for a < c_j
//
// in addition, where ǔ, ū, û are the utilities of the lower bound, the mean and the upper bound,
// and s is how much is known, from 0 to 1. So a trade must gain more than the uncertainty of the
// giver's utility, weighted by 1 − o. While little is known s is 0, so that exploration goes on. A
// rise costs nothing, nor does giving what the mean does not need; and the cost shrinks with the
// band. u_j − h_j does not fall with the allocation, so all below holds for it.
//
// Capacity beyond an answer has no value by these; [TieBreak] gives it where the mean is uncertain.
//
// Performance counts as not falling with the allocation: a curve that falls is replaced, at its
// knots, by the nearest that does not,
//
//	p(a) = (max_{b <= a} p(b) + min_{b >= a} p(b)) / 2
//
// so that noise below an allocation does not hide what was measured there. Below a
// curve's first knot it falls linearly to 0, as nothing was measured there.
//
// Answers are exact on whole units, or come with a bound on their gap:
// see [Social.Solve]. Utilities are counted in steps of 2^-40, so that ties are
// ties: they go to fewest units moved, then fewest units used, then by name
// (the first name gets most).
//
// Over several hosts, Σ_j f_jh a_j <= C_h for each of them, the least utility is
// exact as well: a workload on a full host stops rising, the others go on
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
