// Package resctrl divides the last-level cache and memory bandwidth among workloads,
// through the kernel's resctrl file system (Intel RDT, AMD QoS):
//
//	llc    ways of each L3 cache that the workload may fill; integers
//	membw  memory bandwidth at most: percent, or MiB/s where mounted with mba_MBps
//
// A workload is a control group. The first write makes a resource group of its own, named
// trimtab-…, and moves the tasks of the control group and of those below into it; threads
// and children inherit it. What came into the control group by another way is moved in at
// the next look. To restore is to remove the group, when neither resource is limited in it
// any more: the kernel gives its tasks back to the default group. Unlimited is what the
// default group has. Only groups with trimtab's prefix are ever written; the default group
// and those of others keep what they have, and a workload whose tasks another program put
// into a group is refused.
//
// Which ways (layout.go): groups get runs of ways that overlap neither each other nor the
// groups of others: latency-critical ones from the end that devices do not share, those
// of best-effort jobs (actuator.Location.High) from the other. Where the administrator
// lowered the default group, trimtab gives out only ways outside of its mask, so that both
// have theirs alone; where it has all ways, tasks that nobody limits may still fill any
// of them. A group that grows takes free ways beside it; when there are none, neighbours
// are pushed aside in an order in which no two groups share a way at any time. They keep
// their number of ways, so their own knobs notice nothing but a colder cache. All caches
// of a host are divided alike; with cdp, code and data alike.
//
// A value of another program is found at the next look, as with every knob: another number
// of ways, domains that differ or ways that overlap those of another group of trimtab read
// as a value that trimtab never writes. The kernel's last_cmd_status is in every error.
// Groups that a dead trimtab left behind are removed before a new one is made, unless a
// living process or a journal has their place (actuator.Places).
//
// It has run on the tree of internal/rdt/rdttest only, which answers as the kernel's
// documentation says; never on hardware.
//
// Source: Linux, Documentation/filesystems/resctrl.rst.
package resctrl
