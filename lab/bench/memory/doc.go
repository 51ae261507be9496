// Command memory measures what ways to set memory limits give to real services, what it costs them,
// and how near trimtab comes to what they need. At the end it says which of the figures asked of
// trimtab this run has.
//
// The services are PostgreSQL, redis with maxmemory and eviction, a JVM, a Go program and Node.js with
// a cache each; every one has a cgroup of its own. They stay up through all rows, and all rows see the
// same requests: open load (Poisson, with a seed) that moves through a day of some seconds, with two
// steps.
//
//	no limit     nothing to do: given is what the groups use, with their page cache
//	untouched    what an operator set: about twice what the software's own settings let it hold
//	1.5 x peak   of the working set in the rows before
//	VPA          what its recommender asks for after eight days like the rows before
//	trimtab      the program itself (knob.memory, default settings), beginning at VPA's limits
//
// A row's given memory is the mean of the limit over the day, in bytes; GiB-hours are for a day of 24
// hours. trimtab lowers no limit in its first hour and learns by hours and days, so each recorded day
// is stretched to 24 hours, for VPA and for trimtab alike: VPA's rule reads that, and in trimtab's
// stored state it replaces what a first run in mode recommend had learnt. During the row itself time
// is not stretched: a rise that takes hours in production takes seconds.
//
// The sweep finds the least fixed limit that a running service holds, in hindsight:
//
//	no process is killed, 95% of the requests are in time, and fewer than 1024 pages/s are read again
//
// A runtime that is started under such a limit may need less: Node.js and JVMs size their heaps by it.
//
// Trials play one step of the load for each service, up to half above all that was seen, under the limit
// that trimtab would have left after eight such days, while an observer reads limit and use every 20 ms.
//
// It does not measure several instances of a service, swap, or runtimes that are told of a limit.
//
// It needs root or a delegated cgroup with the memory controller, PostgreSQL, redis-server, a JDK and
// nodejs (Debian's packages); what is missing is an error that says what to install.
//
//	go run ./lab/bench/memory --service redis,go --trials 50
package main
