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
// A value that is not there is a sample that says why: the group is gone, its
// counters began anew, it has no quota. It is never 0. The groups of a pattern are
// looked for at each interval: each is an instance, which its samples name, and one
// that is gone is said to be absent once. The package judges nothing and writes
// nothing.
//
//	c, err := cgroup.Open(cgroup.Config{Root: root, Targets: targets, Bus: bus})
//	…
//	err = c.Run(ctx)
package cgroup
