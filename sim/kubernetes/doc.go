// Package kubernetes simulates a day of ten services on a cluster whose pods take 5 to 60 s to
// start, with three recorded loads. For each autoscaler it computes the minutes with a missed SLO
// and the core-hours.
//
// Time advances in ticks of 5 s. Every autoscaler decides every 15 s, on the measurements of the
// last 15 s (an HPA: 30 s). The first day of a load is for learning, the second is scored. A
// service has n pods of a cores, each of which serves an n-th of the load λ; a request costs c
// core-seconds:
//
//	late = ρ exp(−κ (a/c − λ/n) D),  ρ = λ c / (n a)      within one pod
//	q'   = max(0, q + (λ − n a/c) · 5 s)                  late, too, where q c/(n a) > D
//
// A minute counts as missed if fewer than 95% of its requests were in time. Core-hours include pods
// that are starting. A pod's size changes at the next tick.
//
//	trimtab  analyzer/learn (gp and queue), analyzer/forecast, planner/replicas with its
//	         margin, which counts misses from the second hour on, and slack
//	hpa      CPU utilisation, pods of 1 core
//	keda     requests per second and pod, pods of 1 core
//	oracle   knows λ and the formula, sizes without delay
//
// hpa and keda are played with every threshold of a list. Each service then counts with its best
// threshold in hindsight: that with the fewest core-hours and no more missed minutes than trimtab,
// or, if there is none, that with the fewest missed minutes.
//
// If a pool is given and is full, pods wait for capacity; trimtab divides it over the needs by the
// NJC procedure.
//
// Left out: nodes, images, network, several containers, costs of a resize.
//
// Source: ours; loads of the Internet Traffic Archive (ClarkNet-HTTP 29 and 30 August 1995,
// WorldCup98 17 and 18 June 1998, per minute; NASA-HTTP 5 and 6 July 1995, means of 5
// minutes). The formula is an M/M/1 queue's with κ for what varies less or more.
package kubernetes
