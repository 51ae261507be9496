// Package waits reads from the kernel how much work waits, whatever the service itself reports:
//
//	waited = Δ time on run queues, over the threads of a control group      /proc/TID/schedstat
//	queued = Σ accept queues of the listening TCP sockets of its processes  sock_diag, /proc/PID/net/tcp
//
// A thread that ends or begins between two readings is not in them.
//
// The sockets of this process's own network namespace are asked for by netlink (sock_diag): 30 µs.
// Those of another one are read from the files of a process in it, in whose column rx_queue the
// accept queue of a listening socket stands: anybody may, where netlink takes CAP_SYS_ADMIN to
// enter the namespace. It takes the kernel 2 ms for each file, so one namespace is read in a
// round, each in its turn, and told in that round alone: a group in two of them is left out.
// Listening sockets come first in a file: what connections there are besides is not read.
//
// Which of the sockets are a group's is told by the descriptors of its processes, /proc/PID/fd,
// which takes CAP_SYS_PTRACE where these run as another user; without it, all sockets of a
// namespace count that is neither this process's nor the system's. Sockets of Unix are not seen.
//
// A value that cannot be read is an error, never 0. All reads are bounded, for each group and for a
// whole round, so that no group blocks the others forever.
//
// Source: Linux, Documentation/scheduler/sched-stats.rst; sock_diag(7); net/ipv4/tcp_ipv4.c,
// get_tcp4_sock and tcp_get_idx; proc(5).
package waits
