// Command real measures what trimtab's defaults do for real software: nginx
// (gzip), Redis (a Lua script) and PostgreSQL (a query), each in a cgroup of
// its own, under open-loop load, with a pool of CPU that only suffices when it
// goes where it is needed.
//
// A run has scenarios (how the load moves) and policies (who sets the quotas).
// All policies of a run see the same arrival times. Load is given as a share
// of the pool: a service with load x needs x * pool cores, by the CPU cost of
// its requests, which is measured at the start,
//
//	rate(t) = load(t) * pool / cost    [requests per second],
//
// and which is held at that while a row runs (price.go), since neighbours on the
// machine change it.
//
// Latency is counted from the moment at which a request was meant to be sent,
// so that a slow service cannot hide behind a slow client. The main figure is
//
//	share in time = requests answered within the SLO's latency / requests sent.
//
// The policies that trimtab is compared with: equal shares; the best fixed
// split, found by search in a small model of the queues (queue.go); a
// threshold rule like that of a horizontal or vertical autoscaler; and the
// reference, a rule that knows every cost and every arrival and shares the
// pool in proportion to them each second. trimtab runs as an operator would
// run it, with nothing in its file that has a default.
//
// Oracles know what comes and what it costs, and set the weights that serve an objective best
// by the queues of package lab/services. In scenario two-hosts two groups play hosts with half
// of the pool each, and nginx has an instance on both behind a load balancer. Scenarios mixed and
// mixed150 have other services: Node.js in one thread, a JVM whose heap of 64 MiB is collected often
// and which each row finds just started, and Apache with PHP in eight processes. Their loads are
// those of peaks, which fit the pool, and one and a half times that.
//
// The package measures and prints, and says at the end for whom trimtab is worth it; it fails
// for safety alone: a sum of quotas above the pool and a quota that is not given back are
// errors.
// Figures from a machine that is busy with something else mean little: the
// table says how busy it was. Memory, disk and network are not measured.
//
// It needs root or a delegated cgroup, nginx, redis-server and postgresql
// (Debian's packages of these names), and for promql rows prometheus and
// prometheus-alertmanager. Scenario mixed needs nodejs, default-jdk-headless, apache2 and
// libapache2-mod-php instead; where one is missing, it says so and is skipped.
//
//	go run ./lab/bench/real --minutes 3 --scenario peaks --policy equal,proportional,trimtab:njc
package main
