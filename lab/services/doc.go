// Package services simulates a few services on one host or two, each behind a CPU
// quota, under open-loop load, and closes the loop through the analyzer and
// the planner that production runs, with the settings of production.
//
// A request is a number of core-seconds. Requests arrive as a Poisson process;
// up to Concurrency of them share what the quota leaves,
//
//	work done in dt = min(Servers · dt, what is left of quota · period)
//
// with the period of the kernel's CFS bandwidth control, 100 ms. Where services share by
// weight, what a group above them has left of its quota is what they share, as far as the
// host's CPUs go ([lab.Share]); equal weights are the kernel alone. Latency counts
// from the arrival. A request that is not answered within Timeout is given up
// and counts as missed.
//
// A service may have instances on several hosts with an equal part of the pool each; a request
// goes to the instance with the fewest open ones.
//
// It is the fast twin of the benchmark on real services (lab/bench/real),
// which overrules it: a figure of this package is a hypothesis.
//
// Source: the service model is the textbook's processor-sharing queue; the
// quota is that of Turner, Rao, Rao, "CPU bandwidth control for CFS", 2010.
package services
