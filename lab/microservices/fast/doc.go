// Package fast plays the 19 services of lab/microservices behind CPU quotas of the
// kernel (CFS bandwidth), in steps of 20 ms, under rules that move the quotas every
// 100 ms: the loop of planner/local inside envelopes, the rules of
// lab/baseline/quota, rounds of 30 s alone, and an oracle.
//
// A service is one control group. Its quota q is refilled every period T = 100 ms, at a
// phase of its own; what it saved, up to its burst b, is added; who used it up stands
// still until the next period, and what comes meanwhile waits (FIFO):
//
//	runtime ← min(runtime + q T, q T + b T)     at each period, and at each write
//
// The kernel refills at every write of quota or burst, also of the same value, which
// was measured: a rule that writes in every period doubles what it gives. So what writes
// refilled in the middle of a period is counted as cores, beside the sum of quotas: by
// that sum alone Escra with burst would need less than is used. A parent group
// per host holds the capacity and is never written; a child that the parent stops counts
// no throttled period. Stalled time is counted when the stall ends, as the kernel does.
// Where a host's CPUs or its parent's runtime do not suffice, they are shared by weight.
//
// Work. n requests in 20 ms are Poisson; service i is visited v n times, and the CPU
// time is gamma with mean w v n and
//
//	variance / mean = w S,    S = scv + clump · min(1, v)
//
// scv 8 is the prototype's. clump = 24 requests that come together: of 4, 8, 16, 24, 32
// and 48 the one whose best thresholds are nearest to those published for hotel
// reservation (k8s-cpu .7 .7 .6 .5 and k8s-cpu-fast .7 .8 .7 .7, on diurnal, constant,
// noisy and bursty), which nothing else here was fitted to. Latency is 80 ms, the p99 without stalls, and the delays
// of all services that a request visits; the SLO is a p99 of 200 ms over the run.
//
// Loads. diurnal, noisy, bursty and diurnal-2 are those of Autothrottle, times 10 as for
// its hotel reservation; constant is 2000/s; steps is 1000/s and three times that for 5 s,
// about every 50 s. diurnal-2 is for tuning only. A file has one rate per line and second.
//
// Every published rule has one knob, and gets for each load the cheapest that keeps the
// SLO, in hindsight; autothrottle is its Tower after 12 h on diurnal-2. fast has one set
// of constants, chosen on diurnal-2 and on steps of seeds 101 to 103: ceiling 6 targets,
// budget up to 50 ms, and those of planner/local.
//
// Learning. Where fast plays for half an hour or more, a learner (analyzer/learn/gp) is
// taught rounds of diurnal whose targets are drawn from .15 to 1.5 times the goal, one in
// 20 of them frozen, as in production: at the target, and for comparison at the mean of
// what was granted. What it says is held against rounds of other seeds at fixed targets.
//
// Source: loads/*.txt are the traces of microsoft/autothrottle, commit d237d7f, Copyright
// (c) Microsoft Corporation, MIT licence (loads/LICENSE).
//
// What it has not: latency does not act on load (open loop), services do not wait for
// each other, no slices per CPU (5 ms), no caches that get cold.
package fast
