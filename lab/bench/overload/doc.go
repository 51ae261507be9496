// Command overload measures what is answered in time when more arrives than a service can
// answer, side by side for what may stand before the service: nothing, the kernel's weights,
// HAProxy with the best fixed limit in hindsight, gradient limiters as Netflix and Envoy
// published them, HAProxy with the limit that trimtab sets, and trimtab's gate. At the end it says
// which of the figures asked of trimtab this run has.
//
// The services are real: nginx (gzip), Node.js (JSON), and PostgreSQL behind PgBouncer and a
// small HTTP service. Each stands behind a CPU quota, so that its capacity is small and known,
//
//	capacity = highest rate at which 99% of the requests are answered within the SLO   [requests/s],
//
// and is measured first. Load is open (Poisson, with a seed: clients do not wait for each
// other): low, then a step to a multiple of the capacity, then low again. All rows of a run see
// the same arrivals. The main figure is
//
//	goodput = requests of the step answered within the SLO / (seconds of the step * capacity),
//
// where latency counts from the moment at which a request was meant to be sent to the end of its
// last try. Clients give up at a time-out and may try again. Each has a connection of its own;
// with --reuse they share kept ones, as behind a load balancer. Classes stand in the header
// x-priority.
//
// In the row of weights the service has no quota, but shares twice as much with a neighbour of
// equal weight that never has enough: its capacity is the same. HAProxy has a queue with a
// time-out, serves critical requests first, and gets for each load the maxconn that a sweep over
// the same arrivals found best. Where trimtab sets that limit, it learns from spans and the control
// group of the service, before the first load and from each.
//
// With --proxy it measures instead what a proxy takes of itself: CPU time for each request, what
// it adds at the median, requests per core, and memory at many connections.
//
// It does not measure HTTP/2, large bodies, more than one instance of a service, or several services in one pool.
//
// It needs root or a delegated cgroup, nginx, nodejs, postgresql, pgbouncer and haproxy (Debian's
// packages); what is missing is an error that says what to install.
//
//	go run ./lab/bench/overload --service node --load 0.8,2 --seconds 12
package main
