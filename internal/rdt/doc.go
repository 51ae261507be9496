// Package rdt knows the files of resctrl, the kernel's file system of cache and memory bandwidth
// allocation: the resources of a host, the schemata of groups, and the monitors. It decides
// nothing; the knobs (actuator/resctrl) and the monitors (collector/resctrl) share it.
//
// [Files] is the seam: [Open] is the kernel's tree, rdttest.Tree one in memory that
// answers as the kernel does. No host that trimtab was built on has resctrl: it has run
// on rdttest.Tree only, never on hardware.
//
// Source: Linux, Documentation/filesystems/resctrl.rst, and for errors
// arch/x86/kernel/cpu/resctrl (since Linux 6.16 fs/resctrl).
package rdt
