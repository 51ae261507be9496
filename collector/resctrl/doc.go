// Package resctrl reads the monitors of last-level caches and memory bandwidth (Intel
// RDT: CMT and MBM), of the whole host and of each workload that trimtab has put into a
// resctrl group:
//
//	llc_occupancy = Σ over caches of llc_occupancy                    bytes
//	membw_total   = Σ over caches of Δ mbm_total_bytes / Δ t          bytes per second
//	membw_local   = Σ over caches of Δ mbm_local_bytes / Δ t          bytes per second
//
// The host is the sum over all groups. A workload that trimtab limits neither in cache
// nor in bandwidth shares the default group with others, and has no value of its own: to
// give it one would take a group, and only knobs write. "Unavailable", "Error" and
// "Unassigned", a counter that fell, and a group that was not there at the last reading
// are missing values that say so, never 0.
//
// It has run on the tree of internal/rdt/rdttest only, never on hardware. Some CPUs
// count bandwidth wrongly (errata SKX99, BDF102); the kernel corrects that.
//
// Source: Linux, Documentation/filesystems/resctrl.rst, "mon_data".
package resctrl
