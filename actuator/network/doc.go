// Package network limits how fast an interface sends, with a token bucket filter as
// its root queueing discipline (tc-tbf(8)):
//
//	tokens(t) grow by rate bytes a second, to at most burst = max(32 KiB, rate × 5 ms, 2 MTU)
//
// An interface in the network namespace of a container is what the workload sends
// through. The end of a pair of veth that stays on the host sends what the workload
// receives. Two workloads on one interface cannot be told apart: one interface has
// one workload.
//
// trimtab turns an interface that has the discipline that the kernel gives each by
// itself, whose handle is 0:, and its own, whose handle is 7472:. Any other is
// somebody's, and is refused. Without a limit its own is deleted, and the kernel puts
// its default back: the one in net.core.default_qdisc, none for veth and the like.
//
// Source: Linux, net/sched/sch_tbf.c and sch_generic.c, attach_default_qdiscs.
// It was tried on real veth pairs in network namespaces.
//
//	knob, err := network.Open(network.Config{Root: "/run/netns", Namespace: "batch", Interface: "eth0"})
//	…
//	err = knob.Write(ctx, trimtab.Units(10e6))
package network
