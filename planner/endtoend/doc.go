// Package endtoend divides one capacity among the components of an application
// for the least of one end-to-end number, as its P99:
//
//	a* = argmin cost(a_1 … a_n),   Σ a_i <= R,  min_i <= a_i <= max_i
//	step: |a_i − now_i| <= B
//
// Separable solves cost = Σ cost_i(a_i) exactly, for curves of any shape, by
// dynamic programming over components in O(n R max). Ascend improves any cost by
// exchanges: it moves 1 to 8 units between two components while that helps; it
// ends in a local optimum of single exchanges or with its budget of
// evaluations, and gives the same answer for the same seed. Towards takes the
// bounded step, in which the sum never exceeds R.
//
// Source: Cilantro (OSDI'23), section 4.2: the allocation with the best bound;
// the paper searches with an evolutionary algorithm. Target first, then the
// step, as in planner.
//
// The package learns nothing: the cost is a function that it is given, a bound
// of learn/kernel, curves of learn/sojourn added up, or the truth in an oracle.
//
//	p := endtoend.Problem{Units: 160, Min: min, Max: max, Current: now, Step: 10}
//	target, err := p.Separable(func(i, units int) float64 { … })
//	target = p.Ascend(target, cost, 2000, rand)
//	next := p.Towards(target)
package endtoend
