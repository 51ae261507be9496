// Package colocate plays latency-critical services beside best-effort jobs, under the
// co-location policies of planner/colocate, and says what each policy makes of the
// machines: EMU, the share of time with the SLO held, work that was lost.
//
// Time goes in periods of 2 s, in each of which the controllers of all hosts decide
// once. A component is a queue M/G/k in its stationary state, with
//
//	S   = S₀ (1 + Σ_r a_r p_r²)                      service time under the pressures p
//	W   = C(k, λS)/(k/S − λ) · (1 + cv²)/2           Allen and Cunneen
//	q'  = max(0, q + (λ − k/S) · 2 s)                backlog above saturation
//
// and a request meets a pause, exponential with mean d_r, with probability Σ π_r p_r².
// The p99 of a period is that of 100 to 512 requests, as many as the period has,
// drawn along the calls: sums in sequence, the maximum of calls at the same time. The
// pressure on a resource is what jobs have of it, times how much of that they use;
// half of it does a quarter, since in the paper (section 2.1) half the stream does a
// sixth and less. Jobs progress by cores, as far as their bandwidth feeds them, less
// what they lose without cache; alone on a machine it is 1 per second.
//
//	EMU = load / maximum load + progress − progress lost in kills
//
// A solo run gives contributions and loadlimits by analyzer/contribution. The
// slacklimits are found by algorithm 1, before the run. A loadlimit that the solo
// run does not tell (the variation does not rise by 10%) is left to the policy.
//
// [Oracle] knows sensitivities and load, moves everything at once and kills nothing.
//
// Left out: power and frequency, time that a change takes, requests that time out,
// and what a service does for some seconds after a burst.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, section 5; A. O. Allen, Probability,
// Statistics and Queueing Theory (1990), for Allen and Cunneen's approximation. The
// origin of each number is in builtin.go and in the Origin fields.
//
//	x := colocate.Experiment{Env: colocate.BuiltIn(colocate.Constant), Run: []string{"heracles", "rhythm"},
//		Periods: 10800, Seeds: 5, First: 1, Runner: sim.InOrder}
//	profiles, outcomes, err := x.Play()
package colocate
