// Package resctrl divides the last-level cache and memory bandwidth among workloads,
// through the kernel's resctrl file system (Intel RDT, AMD QoS):
//
//	llc    ways of each L3 cache that the workload may fill; integers
//	membw  memory bandwidth at most: percent, or MiB/s where mounted with mba_MBps
//
// A workload is a control group. The first write makes a resource group of its own, named
// trimtab-…, and moves the tasks of the control group and of those below into it; threads and
// children inherit it. The next look also moves tasks that joined the control group otherwise. When
// neither resource is limited any more, a restore removes the resource group, and the kernel
// returns its tasks to the default group. Unlimited means the values of the default group. trimtab
// writes only groups with its prefix, and refuses a workload whose tasks another program put into a
// group.
//
// Which ways (layout.go): groups get runs of ways that overlap neither each other nor the groups of
// others: latency-critical ones from the end that devices do not share, those of best-effort jobs
// (actuator.Location.High) from the other. If the administrator reduced the default group, trimtab
// uses only ways outside of its mask, so that neither shares with the other. If the default group
// has all ways, tasks without a limit may still fill any way. A group that grows takes free ways
// beside it. If there are none, trimtab moves its neighbours, in an order in which no two groups
// share a way at any time. They keep their number of ways, so their own knobs notice only a colder
// cache. All caches of a host are divided alike; with cdp, code and data alike.
//
// A value of another program is found at the next look, as with every knob: another number
// of ways, domains that differ or ways that overlap those of another group of trimtab read
// as a value that trimtab never writes. The kernel's last_cmd_status is in every error.
// Groups that a dead trimtab left behind are removed before a new one is made, unless a
// living process or a journal has their place (actuator.Places).
//
// It was only tested on internal/rdt/rdttest, an imitation by the kernel's documentation, never on
// hardware.
//
// Source: Linux, Documentation/filesystems/resctrl.rst.
package resctrl
