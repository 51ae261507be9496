// Package task runs speculative tasks on one host: a task is a process, with all that it
// starts, in a control group of its own.
//
//	ROOT/trimtab/oversubscribed/JOB@TASK@ATTEMPT   weight 1: speculative tasks
//	ROOT/trimtab/regular/JOB@TASK@ATTEMPT          weight 100: tasks with a regular grant
//
// The package watches, freezes and kills the group, so processes that the task forks still belong
// to it. The task has ended when its group is empty and was removed. No instruction of it runs
// outside of the group. On version 2 the process is cloned into the group; on version 1 a shim,
// this program again ([Exec]), enters the groups and then executes the command. A task has no more
// than its declared environment, /dev/null as standard input, no_new_privs, and an output of which
// the first and the last bytes are kept.
//
//	starting → running ⇄ frozen → (killing → unkillable) → ended
//
// A task runs on a lease, counted on the boot clock: without [Runner.Renew] it is killed. When the
// agent dies, [Watchdog], a process of its own, kills all tasks, and so does the next [Open], which
// finds them by their groups. The first process of a task also gets SIGKILL from the kernel
// (PR_SET_PDEATHSIG). A task that cannot be killed, for example because it waits for a device, is
// reported as unkillable and killed again at growing intervals; nothing waits for it.
//
// [Runner.Pin] binds a task to some of the CPUs, where the host has the cpuset controller.
//
// [Runner.Relabel] takes a task that runs from one class to the other: its processes are
// moved, until none is left behind. On version 2 the memory that it has stays charged
// where it was, so its limit counts what it takes from then on.
//
// The package decides nothing: its caller decides which task runs, freezes or is tried again, and
// ensures that a task runs only once in the cluster. Only one Runner at a time may use a root
// group.
//
// A task that runs as root may leave its group, so give it a user. The wall time of a task also
// counts while it is frozen.
//
// It has run on real kernels: version 1 on Linux 6.18, version 2 on Debian's 6.1. It needs
// Linux 5.7 (clone into a group, pidfd).
//
// Source: Zhou et al., ROSE, sections 6.1 and 6.2 (regular and oversubscribed groups
// under one root); Linux, cgroup-v2.rst and cgroup-v1/, clone(2), pidfd_open(2).
//
//	r, err := task.Open(ctx, task.Config{Dir: dir, Watchdog: []string{"task-watchdog", …}})
//	…
//	info, err := r.Start(ctx, spec, 30*time.Second)
//	err = r.Renew(ctx, 30*time.Second, info.ID)
//	err = r.Close(ctx) // kills all
package task
