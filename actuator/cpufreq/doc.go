// Package cpufreq turns the ceiling of the clock of the CPUs that a control group
// runs on:
//
//	MHz = scaling_max_freq / 1000,  cpuinfo_min_freq … cpuinfo_max_freq; at the latter: unlimited
//
// The kernel has one ceiling for each policy: the CPUs that change their clock
// together. A group turns the policies whose CPUs are all in its cpuset, and no
// other. A policy that other CPUs are of, one that two workloads would turn, and
// the policies of a group that runs on all CPUs of the host, are refused.
//
// What was there comes back policy by policy: [Frequency.Undo] has the ceiling
// that each had. A group whose cpuset moves takes its ceiling along with the next
// write; the policies that it left get theirs back then. A policy whose CPUs are
// all offline keeps its ceiling in the kernel, so it counts as turned until it is
// online again. One that is gone, as with its driver, has nothing to restore.
//
// The kernel resolves a ceiling to the highest frequency of its table that is not
// above, where it has one, and never shows what was asked for but what is in
// force: a ceiling that is low because the host is too hot when trimtab first
// writes is taken for what somebody set.
//
// Source: Linux, admin-guide/pm/cpufreq.rst, "Policy Interface in sysfs";
// drivers/cpufreq/cpufreq.c, cpufreq_set_policy. It was tried on a tree that
// answers as those do, not on hardware: virtual machines have no policies.
//
//	knob, err := cpufreq.Open(cpufreq.Config{Root: "/sys/fs/cgroup", Path: "batch"})
//	…
//	err = knob.Write(ctx, trimtab.Units(1800))
package cpufreq
