// Package cgroup reads what control groups used, of version 1 and 2:
//
//	usage     = Δ CPU time / Δ t                   in cores, over the interval
//	throttled = Δ nr_throttled / Δ nr_periods      in [0, 1], of the group's own quota
//	            or of that of the nearest group above with one: the larger
//	allocation = quota / period                    in cores
//
// Source: Linux, cgroup-v2.rst, "CPU Interface Files" (cpu.stat, cpu.max),
// sched-bwc.rst and cpuacct.rst.
//
// If a value is missing, its sample gives the reason: the group is gone, its counters were reset,
// it has no quota. It is never 0. At each interval the collector looks for the groups of a pattern.
// Each is an instance, which its samples name; one that is gone is reported as missing once. The
// package does not interpret values and changes nothing on the host.
//
//	c, err := cgroup.Open(cgroup.Config{Root: root, Targets: targets, Bus: bus})
//	…
//	err = c.Run(ctx)
package cgroup
