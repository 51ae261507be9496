// Package overload decides whom a pool serves while its workloads want more CPU time than
// it has, where amounts are shares by weight below one limit.
//
// While the needs fit there is nothing to decide: the kernel gives each workload its share
// at every instant at which it wants that, and what others leave idle besides. The same
// holds in an overload if the objective is about entitlements. An objective that sums
// utilities gains by serving some workloads in full where not all can be: the objective
// itself decides whom, over what a queue makes of a share s,
//
//	performance(s) = SLO  where s >= wants / full,  0 below: the queue grows without end
//	wants          = cost of a request · requests that arrive, over the last seconds
//
// They are served by priority, one after the other. Of what is left the first has most: what
// waits for it is worked off first, and what it does not need goes to the next at once. A
// workload that is not served has a crumb, and what they leave. So a wrong estimate of what
// somebody wants costs the last one alone.
//
// Reports tell of the time before. Where the kernel counts who is stopped at a limit, it says at
// once that needs fit again, since nobody was stopped for 3 s and some of the pool is idle; that a
// workload has no queue any more, since nothing stops it; and what such a workload wants, which is
// what it uses. Nobody is given up before the pool was used up for 5 s.
//
// Each change of the choice costs a whole backlog: a workload that is served stays served
// while the pool can serve it. Of a workload that starves few requests are seen; it is taken
// to want no less than when it was given up, until it meets its SLO again.
//
// Where shares alone do not serve those who are chosen in time, since others use the limit up on
// CPUs on which those do not work, the others get a limit of their own (Capped): a crumb until
// those who are served are in time, then what these leave. Where far more is wanted than there is,
// they have it at once, and the second in turn until the first is in time. Then it is known what
// that one wants, and the objective is asked again. Who cannot be served even so makes room, and
// is not chosen again for some time.
//
// Source: the domination of quotas by weights in proportion to the same amounts, for a
// weighted max-min fair scheduler; docs/operations.md, "CPU by weight".
//
// The package reads no clock and keeps nothing: [Decide] takes the state and the turns of the
// last round and returns those of this one.
package overload
