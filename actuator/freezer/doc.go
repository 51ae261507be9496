// Package freezer freezes the processes of one control group, or kills them: two
// switches, which are 1 or 0.
//
//	running = 0: cgroup.freeze 1, freezer.state FROZEN   1: thawed
//	alive   = 0: cgroup.kill 1, or frozen, killed, thawed; 1 while a process is there
//
// Both are of a whole subtree. Running takes effect late: [Running.Read] is what was
// asked for, [Running.Effective] whether all are frozen (cgroup.events; FREEZING is not
// yet), which they also are while a group above is.
//
// A kill cannot be undone. [Alive.Write] of 1 is refused where no process is left, and a
// restore says that nothing can be brought back, which is no failure: the journal's
// entry is dropped. What starts in the same group again counts as somebody else's
// doing until the lease ends or a person resumes: start it in a group of its own.
//
// A group with this process or process 1 in it is neither frozen nor killed.
//
// It has run on real kernels: version 1 on Linux 6.18, version 2 on Debian's 6.1.
//
// Sources: Linux, cgroup-v2.rst, "Core Interface Files" (cgroup.freeze since Linux
// 5.2, cgroup.kill since 5.14); cgroup-v1/freezer-subsystem.rst.
package freezer
