// Package sim has what the simulators share that replay a recording or a load: how to run in
// parallel, names that there are not, and a stop. Each is in a subfolder, and is as pure as the steps
// that it runs: parallelism and the clock come in as values, randomness from a seed, so a run gives
// the same figures on any number of threads.
package sim
