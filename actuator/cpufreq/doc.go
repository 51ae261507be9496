// Package cpufreq limits the clock frequency of the CPUs that a control group runs on:
//
//	MHz = scaling_max_freq / 1000,  cpuinfo_min_freq … cpuinfo_max_freq; the last means unlimited
//
// The kernel has one ceiling for each frequency policy: a set of CPUs that change their clock
// together. A group limits the policies all of whose CPUs are in its cpuset. The knob refuses a
// policy that has CPUs outside of the cpuset, a policy that two workloads would limit, and a group
// that runs on all CPUs of the host.
//
// A restore is done policy by policy: [Frequency.Undo] has the ceiling that each had.
// When the cpuset of a group changes, the next write limits its new policies and
// restores those that it left. The kernel keeps the ceiling of a policy whose CPUs are
// all offline, so trimtab counts it as changed until it is online again. A policy that
// is gone, as with its driver, has nothing to restore.
//
// The kernel rounds a ceiling down to a frequency of its table, where it has one, and
// shows only the ceiling that is in force. So if the host is too hot when trimtab first
// writes, the ceiling that the kernel lowered for that reason becomes the baseline.
//
// Source: Linux, admin-guide/pm/cpufreq.rst, "Policy Interface in sysfs";
// drivers/cpufreq/cpufreq.c, cpufreq_set_policy. The package was tested on an imitation of these
// files, not on hardware: virtual machines have no policies.
//
//	knob, err := cpufreq.Open(cpufreq.Config{Root: "/sys/fs/cgroup", Path: "batch"})
//	…
//	err = knob.Write(ctx, trimtab.Units(1800))
package cpufreq
