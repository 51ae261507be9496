// Command small measures what trimtab costs on a small machine: `trimtab run`
// as a process of its own, real services' worth of spans, one CPU group each.
//
//	go run ./lab/bench/small --groups 100 --round 1s --spans 600 --for 3m
//	go run ./lab/bench/small --groups 2000 --round 30s --spans 600 --for 2m
//
// It prints the time to ready, CPU as a part of one core, resident memory as
// time passes, what was written to the storage directory per hour, how long
// /metrics and the first page take, and how far the planner lags behind. Where
// a cgroup hierarchy of version 1 is writable the groups are real and empty;
// elsewhere they are files in the form of version 2.
//
// Latencies follow the limits, so that there is something to learn: a service
// that has less than it needs answers part of its requests late.
package main
