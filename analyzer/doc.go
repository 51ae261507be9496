// Package analyzer is the learn step: it turns sketches, samples and holdings into one report per
// workload and interval,
//
//	report = (time, allocation in force, load, performance, requests),
//
// feeds reports to the workload's learner and forecaster, and gives the planner all that is known
// as an Estimate: the performance curve at the upper bound of the coming round's load, with bounds;
// the load forecast; latencies; and every input with its age.
//
// Package report joins what many senders report of a workload. This package decides which source
// counts, and from which reports the curve is learned.
//
// Values are only stored as they arrive; all work is done on ticks, in order of workload and
// interval. Duplicates, and the order of values between two ticks, therefore do not change any bit
// of an estimate.
//
// The load of a report is the number of requests in its interval divided by its length. If there
// are fewer than 100, the latest intervals in a row, at most five, are combined: a rate of a few
// requests is mostly counting noise, which would flatten a curve over a/l and raise the bound of
// the load.
//
// The curve is not learned from every report. Ignored, and counted, are: reports during which or
// shortly before which the allocation changed; reports of a workload that had too little, got more,
// and still works off its backlog; the first ones after a silence of more than a round; reports
// without a known allocation (an unlimited one counts as the declared maximum, since the planner
// never gives more; without a maximum it is unknown); and reports without load or requests. A
// missing value is never zero: an interval without spans gives no report, and a workload whose
// input stopped gets estimates that say so in Hold.
//
// A workload that shares CPU by weight has at least its amount. While the common limit is not used
// up, its report counts as one at its maximum. Otherwise it also has what others leave idle, which
// is not measured: the report is censored, and nothing is learned from it.
//
// Where performance is a share of requests and use is measured in the unit of the resource, the
// workload is also modelled as a queue (Workload.Queue, learn/queue):
//
//	cost     c = Σ use / Σ requests          over the last 30 s
//	load     λ = μ / (1 − dW/dt)             while waits W grow, of μ answered
//	backlog  λ W, or what began and was not answered yet, times c
//	curve    the learner's and the queue's, each by the inverse of its variance
//
// If the load is a rate over a longer window, the load between two scrapes is the use of the last
// seconds divided by the cost. Nothing is learned from reports of a time in which a backlog was
// worked off or the load changed.
//
// A workload runs as instances i on one or more hosts. Instance i has allocation a_i and serves the
// fraction f_i of the load. The workload's allocation is the effective one,
//
//	a = min_i a_i / f_i,    Σ f_i = 1,    f_i = 1/n unless the load of each is known,
//
// at each instant over the instances that exist then, by the holdings of their hosts. An instance
// does not count if it is gone, if its knob cannot be read while those of others can, or if its
// host sent nothing for three rounds (at least a minute) while others did. The allocation changes
// when an instance comes or goes. Samples of instances are added up once all of them have reported;
// while one does not report, the sum is missing, rather than too low.
//
// The load of an instance comes from samples, or else from the requests whose spans name it
// (Sketch.Instances): by host and the name that its agent uses, or by host alone if it is the only
// one there. f_i is at least a hundredth of 1/n.
//
// Where a pool shares several resources there is a curve over each,
//
//	p_r(x) = performance with x of r while nothing else is short,
//
// learnt from the same reports. A report of performance p with allocations a shows p_r(a_r) >= p
// for every r, since the performance rises in each of them. It shows p_r(a_r) <= p only for a
// resource that was short. It is therefore no evidence against r if r is known to suffice for more
// and another resource explains the shortfall. With [L, U] the bounds so far, r does not learn from
// the report, which counts as other_short, if
//
//	p < L_r(a_r)  and, for some q that may be short, or is known to be:
//	L_q(a_q) <= p  or  U_q(a_q) < L_r(a_r),   and   U_q(max_q) >= L_r(a_r).
//
// Measured use is better evidence: a resource is idle if its floor (see trimtab.KnobState) is at
// most 0.85 of the limit, or if at most 0.7 of the cores are used and at most 2% of the periods
// throttled. More of an idle resource would not help. If a report misses the target while another
// resource is not idle, an idle r therefore learns it as a report with all requests in time (or
// 1.25 times the target, if performance is no fraction).
//
// The rule has limits. If no use is measured, every resource is blamed until something is known, so
// that first demands are too high rather than too low. Two resources that always change together
// cannot be told apart, and both keep the blame. A change that makes a service need more of r is
// noticed only once more of q is known not to help. No resource learns from a report in which any
// allocation changed. Curves over stocks (memory and caches) do not depend on the load.
//
// With Config.Entry all workloads serve the requests of one, and one learner (learn/kernel) works
// over ln(a_i/l) of all of them. It learns
//
//	y = ln(target / performance) of the entry,
//
// where performance from spans is the SLO's latency divided by the measured latency at the SLO's
// fraction. The curve of each workload is the section of that surface along its own allocation,
// with all others unchanged. If the others send spans, these give the prior of y: the mean sojourn
// times of learn/sojourn, added up by visits, plus k standard deviations of their sum. They also
// weight how deviations are attributed to each. While the entry's performance is missing, all
// workloads are held; so is a workload whose allocation is unknown. Nothing is learned from reports
// during which an allocation changed, except from the fifth in a row.
//
// While performance is stale, the operator's declaration stands in: it may raise a workload, but
// never lower it. See [Fallback].
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 5; the attribution is ours. The package does not
// decide about allocations. It cannot tell an idle service from a broken exporter, and holds both.
//
//	a, err := analyzer.New(analyzer.Config{Workloads: …, Report: time.Second, Round: 10 * time.Second})
//	a.Step(now, sketch)               // stored
//	estimates := a.Step(now, nil)     // a tick
package analyzer
