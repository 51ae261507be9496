// Package report combines what many senders report of a workload into the parts of a [Report]:
//
//	[Sketches]  partial sketches, by partition and second   → requests, latency, load
//	[History]   holdings, by host and instance              → the effective allocation
//	            a = min_i a_i / f_i, at any instant
//	[Join]      samples of instances, and spans that name   → samples of the workload,
//	            them                                           the shares f_i of its load
//
// Each accepts values in any order, including duplicates, and has bounded memory whatever is sent.
// A missing value stays missing: there is no sum while an instance is missing, and if one share is
// unknown, all instances count as serving equal shares.
//
// Learner, forecaster and application read the reports. Package analyzer decides from which source
// a load or performance is taken, and from which reports is learned.
//
//	var sketches report.Sketches
//	sketches.Add(sketch)
//	spans, seen := sketches.Merge(partitions, time.Second, 200*time.Millisecond)
//	loads := join.Known(&history, end, stale)
//	has := history.During(begin, end, settle, loads)
package report
