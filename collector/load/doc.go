// Package load reads the load of a host as a whole, for decisions on the host:
//
//	cpu       cores in use:  CPUs · (1 − Δ(idle + iowait) / Δ all)        /proc/stat
//	memory    bytes in use:  MemTotal − MemAvailable                      /proc/meminfo
//	load      tasks that run or wait, a mean of a minute                  /proc/loadavg
//	disk      the share of time in which the busiest disk was busy        /proc/diskstats
//	network   bytes a second that are sent over links that tell a speed   /sys/class/net
//	pressure_cpu, pressure_memory, pressure_io
//	          the share of time in which something waited for it (PSI)    /proc/pressure
//
// each with the capacity that it is of. Time that a hypervisor gives to others counts as in use.
// Time in which trimtab's own quotas throttle tasks is subtracted from pressure_cpu: the kernel
// counts it as waiting even if CPUs are idle. Values that the host does not report are missing. The
// package publishes nothing.
//
// Source: Linux, Documentation/filesystems/proc.rst, admin-guide/iostats.rst,
// accounting/psi.rst. The metrics are those of Yang et al., ROSE, IEEE TPDS 2020, 4.
//
//	now := reader.Read()
//	loads := load.Between(before, now) // loads["cpu"].Used of loads["cpu"].Capacity
package load
