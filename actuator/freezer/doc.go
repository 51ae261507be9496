// Package freezer freezes the processes of one control group, or kills them: two
// switches, which are 1 or 0.
//
//	running = 0: cgroup.freeze 1, freezer.state FROZEN   1: thawed
//	alive   = 0: cgroup.kill 1, or frozen, killed, thawed; 1 while a process is there
//
// Both act on the whole subtree. Freezing takes a moment: [Running.Read] is the state that was
// requested, [Running.Effective] whether all processes are frozen (cgroup.events; FREEZING does not
// count). They are also frozen while a parent group is. Version 1 can stay FREEZING for ever, for
// example if a shell forks, so each look requests freezing again.
//
// A kill cannot be undone: [Alive.Write] of 1 is refused if no process is left, and a restore
// reports this and drops the journal's entry. Processes that start in the group after a kill count
// as a change by another program, until the lease ends or a person resumes: start them in another
// group.
//
// The package refuses to freeze or kill a group that contains this process or process 1.
//
// It has run on real kernels: version 1 on Linux 6.18, version 2 on Debian's 6.1.
//
// Sources: Linux, cgroup-v2.rst, "Core Interface Files" (cgroup.freeze since Linux
// 5.2, cgroup.kill since 5.14); cgroup-v1/freezer-subsystem.rst.
package freezer
