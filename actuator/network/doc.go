// Package network limits how fast an interface sends, with a token bucket filter as
// its root queueing discipline (tc-tbf(8)):
//
//	tokens(t) grow by rate bytes a second, to at most burst = max(32 KiB, rate × 5 ms, 2 MTU)
//
// A workload sends through the interface in its container's network namespace. The end of the veth
// pair on the host sends what the workload receives. Traffic of two workloads on one interface
// cannot be told apart, so each interface belongs to one workload.
//
// trimtab limits only interfaces with the kernel's default discipline, whose handle is 0:, or its
// own, whose handle is 7472:. It refuses any other. To remove a limit it deletes its own
// discipline, and the kernel installs its default again: the one in net.core.default_qdisc, none
// for veth and the like.
//
// Source: Linux, net/sched/sch_tbf.c and sch_generic.c, attach_default_qdiscs.
// It was tried on real veth pairs in network namespaces.
//
//	knob, err := network.Open(network.Config{Root: "/run/netns", Namespace: "batch", Interface: "eth0"})
//	…
//	err = knob.Write(ctx, trimtab.Units(10e6))
package network
