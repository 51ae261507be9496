// Package cgroup sets the CPU quota, the memory limit and the CPU weight of one
// control group, each a knob, version 1 or 2 behind the same knob:
//
//	cores = cpu.cfs_quota_us / cpu.cfs_period_us    version 1; quota -1: unlimited
//	cores = MAX / PERIOD of cpu.max                 version 2; MAX "max": unlimited
//	bytes = memory.limit_in_bytes                   version 1; from 2^60 on: unlimited
//	bytes = memory.max                              version 2; "max": unlimited
//	weight = cpu.weight                             version 2; 1 to 10000, default 100
//	weight = cpu.shares · 100 / 1024                version 1; 2 to 262144, default 1024
//
// The period stays as it is found. Memory is never lowered below what is in
// use, the usage without the inactive page cache, and an eighth of it:
//
//	floor = 9/8 (usage − inactive_file),  at least 4 MiB above it
//
// Below twice the floor it is lowered by an eighth at a time, and the use is read before
// each step; where the floor rises above the goal meanwhile, the limit goes back.
//
// Source: Linux, sched-bwc.rst, cgroup-v1/memory.rst and cgroup-v2.rst, "CPU
// Interface Files" and "Memory Interface Files"; which groups belong to systemd is in
// systemd's CGROUP_DELEGATION.
//
// A group of a systemd unit that was not delegated is read, and a write of it
// is refused. systemd sets the group of each unit again at daemon-reload, also of
// one that was delegated: what is to stay there is set through systemd, as a
// property of the unit, where systemd runs this host's version 2. A value that a
// parent's limit would not let through is not in force: Standing tells what is, and names
// the parent, unless the configuration lets trimtab raise that parent. The kernel of version
// 1 refuses such a quota.
//
// [Create] makes groups for services that trimtab starts itself. The package
// keeps no journal: the actuator's holds what [CPU.Undo] returns.
//
//	knob, err := cgroup.Open(cgroup.Config{Root: "/sys/fs/cgroup", Path: "shop/checkout"})
//	…
//	err = knob.Write(ctx, trimtab.Units(1.5))
package cgroup
