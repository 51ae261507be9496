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
// The period stays as it is found. A memory limit is never lowered below the memory in use (the
// usage without the inactive page cache) plus an eighth of it:
//
//	floor = 9/8 (usage − inactive_file),  at least 4 MiB above it
//
// Below twice the floor the limit is lowered by an eighth at a time, and the usage is read before
// each step. If the floor rises above the goal meanwhile, the old limit is restored.
//
// With version 2 a memory limit has a soft edge below it, memory.high, from which the kernel reclaims
// and slows the group down: edge.go. One that another program set is kept.
//
// Source: Linux, sched-bwc.rst, cgroup-v1/memory.rst and cgroup-v2.rst, "CPU
// Interface Files" and "Memory Interface Files"; which groups belong to systemd is in
// systemd's CGROUP_DELEGATION.
//
// The group of a systemd unit that was not delegated can be read; a write is refused. At
// daemon-reload systemd sets the values of every unit's group again, even if it was delegated. So
// on version 2 trimtab sets the values of units through systemd, as properties. A value above a
// parent's limit is not in force: Standing reports the parent and its limit, unless the
// configuration lets trimtab raise that parent. With version 1 the kernel refuses such a quota.
//
// [Create] makes groups for services that trimtab starts itself. The package
// keeps no journal: the actuator's holds what [CPU.Undo] returns.
//
//	knob, err := cgroup.Open(cgroup.Config{Root: "/sys/fs/cgroup", Path: "shop/checkout"})
//	…
//	err = knob.Write(ctx, trimtab.Units(1.5))
package cgroup
