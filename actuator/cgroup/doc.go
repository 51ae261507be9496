// Package cgroup turns the CPU quota of one control group, version 1 or 2
// behind the same knob:
//
//	cores = cpu.cfs_quota_us / cpu.cfs_period_us    version 1; quota -1: unlimited
//	cores = MAX / PERIOD of cpu.max                 version 2; MAX "max": unlimited
//
// The period stays as it is found. Source: Linux, sched-bwc.rst and
// cgroup-v2.rst, "CPU Interface Files"; which groups belong to systemd is in
// systemd's CGROUP_DELEGATION.
//
// A group of a systemd unit that was not delegated is refused: systemd would
// write over it. A value that a parent's quota would not let through is
// refused with the parent named, unless the configuration lets trimtab raise
// that parent.
//
// [Create] makes groups for services that trimtab starts itself. The package
// keeps no journal: the actuator's holds what [CPU.Undo] returns.
//
//	knob, err := cgroup.Open(cgroup.Config{Root: "/sys/fs/cgroup", Path: "shop/checkout"})
//	…
//	err = knob.Write(ctx, trimtab.Units(1.5))
package cgroup
