// Package memory reads how much memory each control group of a workload uses (versions 1 and 2), and
// how often it ran short:
//
//	working_set      = usage − inactive part of the page cache         bytes
//	refaults         = Δ workingset_refault / Δ t                      pages per second
//	oom_kills        = Δ oom_kill                                      since the previous reading
//
// and likewise usage, anonymous memory, swap and the limit in force, in bytes, how often the group met
// memory.high, its limit, and the OOM killer, and, with version 2, the share of time in which some task
// waited for memory (PSI), which package psi reads less often.
//
// memory.stat and the limits of parent groups are read again only if the usage changed, and every 5 s.
//
// Source: Linux, cgroup-v2.rst, "Memory Interface Files", and cgroup-v1/memory.rst. Version 1 has
// neither memory.high nor a count of OOM events. Its memory.failcnt counts as memory_max_events.
//
// A kill counts once, even if its group was removed before the next reading. With version 2 the counters
// of a parent group include those of the groups below, so a kill that only the parent counted belongs to
// the group that is gone; if several groups of workloads below one parent are gone, the kill is nobody's.
// With version 1 an eventfd on memory.oom_control counts beyond the group's end; if it counted, that is
// told as one kill, a reading later. A group that no reading has seen is lost. The counters of a group
// that was created between two readings start at 0. A counter that fell was reset, and its sample is
// missing.
//
// A missing value gives its reason, and is never 0. The package does not interpret values and
// changes nothing on the host.
package memory
