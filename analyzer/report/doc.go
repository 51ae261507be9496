// Package report joins what is said of a workload into what a [Report] is made of:
//
//	[Sketches]  partial sketches, by partition and second   → requests, latency, load
//	[History]   holdings, by host and instance              → the effective allocation
//	            a = min_i a_i / f_i, at any instant
//	[Join]      samples of instances, and spans that name   → samples of the workload,
//	            them                                           the shares f_i of its load
//
// Each takes values in any order and as often as they come, and is bounded in memory
// whatever is sent. Missing is missing: a sum that lacks an instance is not made, and
// shares of which one is not known are even ones.
//
// Learner, forecaster and application are consumers of reports. Which source a load
// or a performance is taken from, and which reports teach, is their business.
//
//	var sketches report.Sketches
//	sketches.Add(sketch)
//	spans, seen := sketches.Merge(partitions, time.Second, 200*time.Millisecond)
//	loads := join.Known(&history, end, stale)
//	has := history.During(begin, end, settle, loads)
package report
