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
// during which, or shortly before which, the allocation changed; reports
// without a known allocation (an unlimited one counts as the declared
// maximum, since the planner never gives more; without one it is unknown);
// and reports without load or requests. Missing is never zero: an interval
// without spans is no report, and a workload whose input stopped gets
// estimates that say so in Hold.
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 5. The package decides
// nothing about allocations, and it cannot tell an idle service from a broken
// exporter: both hold.
//
//	a, err := analyzer.New(analyzer.Config{Workloads: …, Report: time.Second, Round: 10 * time.Second})
//	a.Step(now, sketch)               // taken in
//	estimates := a.Step(now, nil)     // a tick
package analyzer
