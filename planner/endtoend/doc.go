// Package endtoend divides one capacity among the components of an application
// for the least of one end-to-end number, as its P99:
//
//	a* = argmin cost(a_1 … a_n),   Σ a_i <= R,  min_i <= a_i <= max_i
//
// [Policy] is the planner's: what it knows of a component is a curve of the
// performance of the whole application over its own allocation, all others as
// they are. With performance SLO/latency, it adds up latencies,
//
//	cost = Σ_i SLO / p_i(a_i),   a_i >= 3/4 now_i
//
// since such curves hold near what everybody has. Where nothing is known, all
// curves look alike and nothing would be learnt; so each is turned about what
// its component has, by a random share t of what its band leaves open there,
//
//	p_i(a) exp(±t √(h(a)² − h(now)²)),   h = ln(upper/mean),  t ~ Trial √(60/(60+reports)) N(0, 1)
//
// upwards above it and downwards below, for t > 0: some are tried as if they
// were short, others as if they had more than enough. The number of reports and
// the name draw t, so that the same problem has the same answer.
//
// Source: Cilantro (OSDI'23), section 4.2: the allocation with the best bound;
// the paper searches with an evolutionary algorithm. That curves are drawn at
// random from what is believed is W. Thompson's, "On the likelihood that one
// unknown probability exceeds another" (Biometrika 1933).
//
// The package learns nothing, and knows no interplay of components beyond what
// the curves have of it: they are drawn anew each round.
//
//	p := planner.Config{Policy: endtoend.Policy{MoveCost: endtoend.DefaultMoveCost}, …}
package endtoend
