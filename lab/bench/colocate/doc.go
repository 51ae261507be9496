// Command colocate measures what best-effort jobs get done beside a
// latency-critical service on this machine, under different controllers, and what
// that costs the service.
//
// The service is nginx in front, which compresses every answer, and Redis behind
// it, which runs a script: two components, each in a cgroup. Its load follows a
// recorded trace (ClarkNet, a day of it in a minute or two), open loop: each
// request has a time at which it is meant to be sent, its latency counts from then,
// and no request waits for another one's answer. The best-effort jobs are two of
// stress-ng, which lose the task that they are at when they are killed, and two
// of our own, which write their progress to a file and go on from their last
// checkpoint.
//
// A run measures first, with the service alone, how fast it is and how much it can
// carry, and what the jobs get done alone:
//
//	SLO  = factor × p99 at half of the rate at which a component is saturated
//	max  = the highest rate at which 99% of the requests are within the SLO
//
// The trace is scaled to 20% to 95% of max. Then each controller has the same
// arrivals, one after the other, in another order at each repetition:
//
//	idle                    all best-effort jobs in idle groups (cpu.idle), and nobody controls them:
//	                        the kernel runs them while nobody else wants a CPU
//	weights                 all best-effort jobs at their weight, and nobody controls them: the
//	                        kernel alone
//	none                    no best-effort job
//	heracles, rhythm-indiscriminate, rhythm, deflation    trimtab's policies
//
// The figures:
//
//	BE throughput = mean over the jobs of (work done / s) / (work done / s alone)
//	EMU           = requests answered / s / max + BE throughput
//	SLO share     = 2-s periods in which 99% of the requests were within the SLO
//
// Before the first row trimtab sees the service alone at several loads, as it would
// have elsewhere for days; each row begins with a copy of what it learnt. The search
// for a slacklimit takes longer than a row, so that it is declared (-limits).
//
// Work that was lost by a kill does not count as done. "alone" is all jobs at the
// same time on a machine without the service.
//
// It needs root or a delegated cgroup, and Debian's nginx-light, redis-server and
// stress-ng.
//
//	go run ./lab/bench/colocate --seconds 150 --repeat 2
package main
