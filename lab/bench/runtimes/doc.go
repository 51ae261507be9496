// Command runtimes measures what it costs real services if trimtab lowers their memory limit and tells
// their runtime first: a JVM (Shenandoah by default) and a Go program, each with a cache behind HTTP,
// in a control group of its own, under load that moves.
//
//	untouched → cycles of (limit × 0.7, then limit) through an actuator with journal → untouched
//
// p99 and the CPU time of the collector are compared with the untouched parts, which see the same
// load. At the end each service is started anew, once with the runtime and once without: while it has
// little load the limit falls to 0.7, then the load rises.
//
//	share of the collector = CPU time of its threads / CPU time of the process
//
// A kill is what the kernel counts (oom_kill), or a process that ended. The command needs root, java
// and javac.
//
//	go run ./lab/bench/runtimes --cycles 100
package main
