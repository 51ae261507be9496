// Package memory reads what control groups of version 1 and 2 have of the host's memory, and what
// became of them when it ran short:
//
//	working_set      = usage − inactive part of the page cache         bytes
//	refaults         = Δ workingset_refault / Δ t                      pages per second
//	oom_kills        = Δ oom_kill                                      since the reading before
//
// and likewise usage, anonymous memory, swap and the limit in force, in bytes, and how often the
// group met memory.high, its limit, and the OOM killer. Pressure (PSI) is read by package psi.
//
// Source: Linux, cgroup-v2.rst, "Memory Interface Files", and cgroup-v1/memory.rst. Version 1 has
// neither memory.high nor a count of OOM events. Its memory.failcnt counts as memory_max_events.
//
// A kill counts once, whatever became of its group. A group that was made between two readings
// counts from 0. For a group of version 2 that was removed between them, the group above tells of a
// kill, since its counters include those of groups below; it is not told if several groups of
// workloads below that one went at once, and version 1 does not tell it. A counter that went back
// is a restart of the count, and its sample is missing.
//
// A missing value gives its reason, and is never 0. The package does not interpret values and
// changes nothing on the host.
package memory
