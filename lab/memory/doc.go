// Package memory reads recordings of memory usage and makes harder ones of them: processes that restart
// with a peak, and leaks. Package sim/sizing plays them under rules that set a memory limit.
//
// The recordings of machines and clusters have 8 to 30 days; 100% of a machine counts as 64 GiB. Those
// of containers have 15 to 20 hours. In none of them a process leaks, as far as is known.
package memory
