// Package drf measures planner/drf: random pools of DC-DRF's kind, the solve
// beside the floor of the machine, the textbook rounds and a deadline, all in one
// run. `trimtab-lab bench drf` prints it.
//
//	floor        = the same rows streamed once, with a random read-modify-write
//	               per entry of the solver's resource array, 16 bytes a resource
//	narrow floor = the same in an array of 8 bytes a resource
//
// Rows have N(mean, sd) entries, truncated to [2, 128], on resources drawn
// uniformly or by Zipf's law; amounts are uniform in (0, 1], capacities in
// [0.5, 1.5) of one size.
//
// Source: Kash, O'Shea, Volos, "DC-DRF" (SoCC 2018), evaluation: demand
// vectors of 2 to 128 from a truncated Gaussian. It does not judge: it prints,
// people read.
package drf
