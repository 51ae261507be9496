// Command fleet measures what a fleet costs the processes in its middle: a
// NATS server, `trimtab planner`, `trimtab analyzer` and `trimtab console` as
// processes of their own, with the files and permissions that `trimtab init
// cluster` writes, and one more process that plays all agents.
//
//	go run ./lab/bench/fleet --agents 1000 --workloads 10000 --round 10s --for 60s
//	go run ./lab/bench/fleet --agents 100,300,1000 --workloads 1000,3000,10000
//
// It prints, per size, whether the plans were executed and answered within their
// round, and what each process takes: CPU, memory, bytes stored, the size of
// /metrics and the time of the console's first view.
//
// With --cgroups one more agent is a real process, with real cgroups, which are
// empty; what it takes is printed each minute. With --jobs as well, so many of them
// are best-effort jobs, which it decides on every 2 s by what is published of a
// service whose slack and load go up and down (with --instances 1, so that the file
// says where the other services are):
//
//	go run ./lab/bench/fleet --agents 2 --workloads 2 --instances 1 --cgroups 100 --jobs 50 --report 1s --leaves 0 --for 62m
//
// With --tasks the real agent also runs so many speculative tasks, which the job manager
// of the planner places on it, and measures its services each second (mode RP); what its
// helpers take, the watchdogs and the process that counts, is printed beside it:
//
//	go run ./lab/bench/fleet --agents 2 --workloads 2 --cgroups 100 --tasks 50 --report 1s --leaves 0 --for 3m
//
// What is real of an agent: its connection with its own certificate, or its
// leaf node; the actuator with journal, lease, heartbeat and answers; its
// samples of use. What is not: its knobs are numbers in memory, no cgroups; the
// journals are in memory too where there is /dev/shm, since a thousand hosts
// have a thousand disks; there are no watchdogs; and all agents share one
// process. Load and performance come from a model of a queue behind each knob
// (see model.go), published with the certificate of a collector.
package main
