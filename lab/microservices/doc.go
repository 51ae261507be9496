// Package microservices is the hotel-reservation application of DeathStarBench,
// 19 services that share CPUs, as a queueing network that is evaluated once per
// window of 30 s, not once per request. Each CPU of a service is a replica that
// serves one request at a time; per replica, with λ visits/s, μ = 1/work, and
// clients that give up after θ = 8 s on average,
//
//	dq/dt = λ − μ q/(1+q) − q/θ           what waits; carries over
//	T     = (1+q)/μ                        sojourn time, exponential
//	P99   = floor + q99(Σ_class share · Σ_path T_i)
//
// the pointwise stationary fluid flow of M/M/1: its stationary point is that of
// M/M/1 below saturation, and it grows by λ − μ above. The latency of a class is
// the sum along its calls, which follow each other; its tail that of the gamma
// distribution with the same two moments. Everything after frontend sees the
// offered load, also when the frontend is slow.
//
//	frontend ─ search ─ geo ─ mongodb-geo           60% of requests: search,
//	         │        └ rate ─ memcached-rate ─ mongodb-rate      then
//	         ├ reservation ─ memcached-reserve ─ mongodb-reservation,
//	         ├ profile ─ memcached-profile ─ mongodb-profile
//	         ├ recommendation ─ mongodb-recommendation    39%, and profile
//	         └ user ─ mongodb-user                  .5%, and .5% with reservation
//	consul, jaeger: asked for every request, waited for by none
//
// A cache does not know a fifth of what it is asked; the databases of geo,
// recommendation and user are read as good as never once these have started.
// The machines' speed wanders by 1.5% (first order, .9 a window), and is half
// in the beginning and full after 450 s, as in the recorded runs, all of which
// begin so. Spans give mean sojourn times with 3% noise; the P99 has 8%.
//
// Calibration. Works per visit (see services), floor and speeds were fitted
// offline by random search, so that the allocations of the four recorded runs,
// played at the rate that their client offered (2,973/s: what all windows
// without overload complete), give their mean P99 over six hours; they are
// frozen since. The Resource-Fair run needs machines 2.6 times slower than the
// other three, which share one speed. No network of one speed can do without:
// if equal shares are to give 2,971 ms, some service that has 8 CPUs there is
// short of them, but in the Cilantro run, of 534 ms, every service has no more
// than 8 for at least 67% of the time. What is matched are means alone: which
// windows of a run were slow the network does not say (the rank correlations
// that `trimtab-lab sim microservices --data DIR` prints are -.08 to -.15), and the
// policies themselves, run in it at speed 1, are slower than they were recorded
// on faster machines (EvoAlg 2,660 ms). Speed 1 is that of the Resource-Fair
// run, in which there is most to gain.
//
// What the P99 alone can reach. With equal shares it is that of clients who give
// up in the first ten windows, whoever is short: nothing can be learnt from it.
// Policy first-sight makes the trials of end-to-end until the first P99 that is
// not, and then has the best static allocation: over a whole run, no learner that
// makes these trials and then stays with one allocation can do better. Others may:
// by trials that end sooner, or by following the machines.
//
// Source: Cilantro (OSDI'23), section 7.2, figure 12, and its published logs;
// Y. Gan et al., "An open-source benchmark suite for microservices" (ASPLOS'19);
// W. Wang, D. Tipper, S. Banerjee, "A simple approximation for modeling
// nonstationary queues" (INFOCOM'96).
//
// The package has no event per request, no failures, and no replica that takes
// time to start.
package microservices
