// Package psi reads how long tasks waited for resources (pressure stall information), of
// the whole host and of control groups of version 2:
//
//	pressure_cpu_some = Δ total / Δ t       share of the interval in which some task waited
//	pressure_cpu_full = Δ total / Δ t       … in which all that had something to do waited
//
// and likewise of memory and io. The kernel's own averages (avg10, avg60) are parsed and
// not used: they fade over fixed times, totals cover the interval exactly.
//
// Source: Linux, Documentation/accounting/psi.rst, and cgroup-v2.rst, "cpu.pressure".
//
// Control groups of version 1 have no such files, so only the host is reported. A missing value
// gives its reason, and is never 0. The package does not interpret values and changes nothing.
package psi
