// Package overload decides which workloads a pool serves while they want more CPU time than it has,
// if they share CPU by weight below one limit.
//
// While the needs fit there is nothing to decide: the kernel gives each workload its share whenever
// it wants that, and in addition what others leave idle. The same holds in an overload if the
// objective is about entitlements. An objective that sums utilities gains by serving some workloads
// in full if it cannot serve all. The objective itself chooses them. It sees each workload's
// performance as a queue makes it from a share s,
//
//	performance(s) = SLO  where s >= wants / full,  0 below: the queue grows without end
//	wants          = cost of a request · requests that arrive, over the last seconds
//
// The chosen workloads are served in order of rank. The first gets most of the pool: its
// backlog is worked off first, and what it does not need goes to the next at once. A workload that
// is not served gets a crumb, and what the others leave. A wrong estimate of a demand thus only
// costs the last by rank.
//
// Reports describe the past. The kernel's count of throttled time says three things at once: needs
// fit again, if no workload was stopped for 3 s and some of the pool is idle; a workload has no queue
// any more, if nothing stops it; and what such a workload wants, namely what it uses. No workload
// is given up before the pool was used up for 5 s.
//
// Each change of the choice costs a whole backlog: a workload that is served stays served while the
// pool can serve it. A starved workload answers few requests, from which its demand would look
// small. Until it meets its SLO again, it counts as wanting at least as much as when it was given
// up.
//
// Weights alone may not be enough for the chosen workloads to meet their SLOs, if the others use up
// the limit on CPUs on which the chosen ones do not run. The others then get a limit of their own
// (Capped): a crumb until the chosen ones meet their SLOs, then what these leave. If far more is
// wanted than there is, the others are capped at once, and the second by rank until the first meets
// its SLO. Then the demand of the first is known, and the objective is asked again. A workload that
// still cannot be served is given up, and not chosen again for some time.
//
// If a gate or proxy before the members refuses requests (Limited), no queue grows, and with any
// share s a member answers a part of its requests,
//
//	performance(s) = SLO · min(1, full · s / wants)
//
// Every objective then divides the pool. A share falls from the entitlement a quarter at a time, and
// stops where requests of the most important class are refused. The share of a member that is served in
// part determines how many of its requests may be in service. An objective that weighs no utilities
// divides by entitlement, as the kernel does; the shares then only determine these limits. All members
// that want more than their entitlement must be Limited: the queue of any other would grow, even if the
// Limited ones refuse requests.
//
// Source: the domination of quotas by weights in proportion to the same amounts, for a weighted
// max-min fair scheduler; docs/operations.md, "CPU by weight".
//
// The package reads no clock and keeps nothing: [Decide] takes the states that the previous round
// returned, of the pool and of its workloads, and returns those of this round.
package overload
