// Package analyzer is the learn step: it turns sketches, samples and holdings
// into one report per workload and interval,
//
//	report = (time, allocation in force, load, performance, requests),
//
// feeds reports to the workload's learner and forecaster, and gives the
// planner all that is known as an Estimate: the performance curve at the
// upper bound of the coming round's load, with bounds; the load forecast;
// latencies; and every input with its age.
//
// What many senders say of a workload is joined in the package report. Which source
// counts, and which reports teach, is decided here.
//
// Values are only taken in as they arrive; all work is done on ticks, in
// order of workload and interval. So duplicates, and any order between two
// ticks, change no bit of any estimate.
//
// The load of a report is the requests of its interval by its length. Where
// they are fewer than 100, the latest intervals in a row, at most five, count
// together: a rate of a few requests is mostly counting noise, which would
// flatten a curve over a/l and raise the bound of the load.
//
// Not every report teaches the curve. Set aside, and counted, are reports
// during which, or shortly before which, the allocation changed; those of a
// workload that was short, got more, and still works off what waited; the
// first one after a silence of more than a round; reports
// without a known allocation (an unlimited one counts as the declared
// maximum, since the planner never gives more; without one it is unknown);
// and reports without load or requests. Missing is never zero: an interval
// without spans is no report, and a workload whose input stopped gets
// estimates that say so in Hold.
//
// A workload that shares by weight has at least its amount. While the limit of all is
// not used up, it has what its maximum gives. Else it has as much more as others leave
// while it wants it, which nothing tells: the report is censored and teaches nothing.
//
// Where performance is a share of requests and use is measured in the unit of the
// resource, the workload is seen as a queue as well (Workload.Queue, learn/queue):
//
//	cost     c = Σ use / Σ requests          over the last 30 s
//	load     λ = μ / (1 − dW/dt)             while waits W grow, of μ answered
//	backlog  λ W, or what began and was not answered yet, times c
//	curve    the learner's and the queue's, each by the inverse of its variance
//
// Where load comes as a rate over a longer window, the use of the last seconds by
// the cost tells the load between two scrapes. Reports of a time in which a queue
// was worked off, or the load was another, teach nothing.
//
// A workload runs as instances i, on one or more hosts, that have a_i and serve the
// parts f_i of its load. Its allocation is the effective one,
//
//	a = min_i a_i / f_i,    Σ f_i = 1,    f_i = 1/n unless the load of each is known,
//
// at each instant over the instances that are there then, by the holdings of their
// hosts. Not counted are an instance that is gone, one whose knob cannot be read
// while others can, and those of a host that told nothing for three rounds (at least
// a minute) while others did. When one comes or goes the allocation has changed.
// Samples of instances become samples of the workload once all of them have told;
// while one does not, the sum is missing, never too low.
//
// The load of an instance is told by samples, else by the requests whose spans name
// it (Sketch.Instances): by host and name as its agent calls it, or by host where one
// is there alone. An f_i is a hundredth of 1/n at least.
//
// Where a pool shares several resources there is a curve over each,
//
//	p_r(x) = performance with x of r while nothing else is short,
//
// learnt from the same reports. A report of performance p with allocations a
// proves p_r(a_r) >= p for every r, since the performance rises in each of
// them; that p_r(a_r) is no more than that it proves only for what was short.
// So it is no evidence against r when r is known to be enough for more, and
// another resource explains the shortfall: with [L, U] the bounds so far, r is
// left out, and the report counted as other_short, when
//
//	p < L_r(a_r)  and, for some q that may be short, or is known to be:
//	L_q(a_q) <= p  or  U_q(a_q) < L_r(a_r),   and   U_q(max_q) >= L_r(a_r).
//
// Where use is measured there is better evidence: a resource is idle when its
// floor (see trimtab.KnobState) is at most 0.85 of the limit, or at most 0.7 of the
// cores are used and 2% of the periods throttled. More of what is idle would
// not help, so that a report below the target, with something else not idle,
// proves that an idle r is not short for it, and is learnt as a report of all
// requests in time (of a quarter over the target, where performance is no share).
//
// The limits of the rule: where nothing is measured, until anything is known every resource is blamed, so
// that first demands are too high rather than too low; of two resources that
// always move together neither can be told apart, and both keep the blame; and
// a change that makes a service need more of r is seen only once more of q is
// known not to help. A report in which any allocation changed teaches none.
// Curves over stocks, memory and caches, leave the load out.
//
// With Config.Entry all workloads serve the requests of one, and one learner
// (learn/kernel) is over ln(a_i/l) of all of them; it learns
//
//	y = ln(target / performance) of the entry,
//
// where performance by spans is the SLO's latency over that of the SLO's fraction
// of the requests. The curve of each is the section of that surface along its own
// allocation, all others as they are. Spans of the others, where there are any,
// give the expectation that y is learnt from: the mean sojourn times of
// learn/sojourn added up by visits, and k standard deviations of their sum; they
// also weigh what is left to learn of each. While the signal of the entry is
// missing all of them hold; so does whose allocation is not known. Reports during
// which any allocation changed teach nothing, but for the fifth in a row.
//
// While performance is stale, what the operator declared stands in, to raise
// a workload and never to lower it: see [Fallback].
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 5; the attribution is ours.
// The package decides nothing about allocations, and it cannot tell an idle
// service from a broken exporter: both hold.
//
//	a, err := analyzer.New(analyzer.Config{Workloads: …, Report: time.Second, Round: 10 * time.Second})
//	a.Step(now, sketch)               // taken in
//	estimates := a.Step(now, nil)     // a tick
package analyzer
