// Package perf counts hardware and software events of each workload, by the performance counters of
// its control group:
//
//	cpi              = Δ cycles / Δ instructions
//	mpki             = 1000 · Δ cache misses / Δ instructions
//	rpki             = 1000 · Δ cache references / Δ instructions
//	task_clock       = Δ task clock / Δ t                     in cores
//	context_switches, page_faults, cpu_migrations = Δ count / Δ t
//	run_delay        = Δ delay / (Δ delay + Δ on CPU)         over the group's threads
//
// Cycles, instructions, misses and references are one group of hardware counters on each CPU, so that
// their ratios are of the same moments. Where other users want the same counters, the
// kernel lets a group count for part of the time, and a count is scaled up:
//
//	Δ count = Σ over CPUs of Δ value · Δ time_enabled / Δ time_running
//
// where Δ time_running is at least 10% of Δ time_enabled; else the interval is missing.
// So it is where a counter fell, a CPU came or went, or the group is another one.
//
// Most virtual machines have no hardware counters: the first three then are missing, and
// [Collector.Unavailable] says so. The four software events are counted everywhere. Instead of
// the first three there is run_delay, which the kernel keeps for each thread
// (/proc/TID/schedstat; its samples name schedstat as their source, and threads that begin
// or end within an interval are not in it), throttled (package
// cgroup, source cgroup) and pressure (package psi, source psi). They tell that a workload
// waited for a CPU, not that it ran slower on it.
//
// To count takes CAP_PERFMON (Linux 5.8; before, kernel.perf_event_paranoid of at most 0).
// A process of its own has that capability and no other ([Confine], [Serve]): a child that
// answers in lines of JSON of bounded length and ends with its parent. When it dies it is
// started again, later and later, and the values are missing meanwhile.
//
// Each group takes 4 descriptors a CPU, 8 with hardware counters: 100 groups on 64 CPUs
// are 51,200. There are at most [MaxDescriptors], and no more than the process may open;
// groups beyond have no values. A kernel that switches between two groups which are counted
// has to switch their counters, too: what that costs stands in docs/operations.md.
//
// Control groups of version 1 are counted where a perf_event hierarchy, or one of version
// 2 mounted as unified, has a group of the same path. The package judges nothing and
// writes to no file.
//
// Source: Linux, perf_event_open(2), Documentation/admin-guide/perf-security.rst,
// Documentation/scheduler/sched-stats.rst. CPI and MPKI of each workload: Yang et al.,
// ROSE, IEEE TPDS 2020, section 4.
package perf
