// Package sim holds what the simulators of the papers' experiments share: the
// frame that plays each row of an experiment under each seed, in parallel if its
// runner is, where time is measured, and how runs are summed up.
//
//	mean ± stderr,  stderr = sqrt(Σ(v−mean)² / (n−1) / n)
//
// Source: the experiments are in subfolders, each with its paper. A simulator
// is pure as the steps that it runs are: parallelism and the clock come in as
// values, randomness from a seed, so a run gives the same figures on any number
// of threads.
//
// The package prints nothing and reads no file.
package sim
