// Package evolve searches allocations by trial, for experiments alone: it
// tries random ones on the live system.
//
// A table holds the mean value of each allocation that was tried. Ten rounds
// begin it, two with equal shares and eight at random. Then, with probability
// 0.1, a random allocation is tried, else one of the table,
//
//	P(a_i) ∝ exp((y_i − mean(y)) / std(y)),
//
// after 1 to 20 steps that each move one unit between two random jobs.
//
// Source: Cilantro (OSDI'23), appendix A.4; the epsilon-greedy search of
// section 7.2 tries a random allocation with probability 1/3, else the best of
// the table.
//
// The package does not know what the value is.
package evolve
