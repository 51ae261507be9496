// Package lab has the common parts of the simulators of the papers' experiments. A frame plays each
// row of an experiment with each seed, in parallel if its runner is parallel, measures time, and
// computes statistics of the runs.
//
//	mean ± stderr,  stderr = sqrt(Σ(v−mean)² / (n−1) / n)
//
// Source: the experiments are in subfolders, each with its paper. A simulator is as pure as the
// steps that it runs: parallelism and the clock come in as values, randomness from a seed, so a run
// gives the same figures on any number of threads.
//
// The package prints nothing and reads no file.
package lab
