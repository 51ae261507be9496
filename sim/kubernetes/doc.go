// Package kubernetes plays a day of ten services on a cluster whose pods take 5 to 60 s
// to start, on three recorded loads, and says what each autoscaler makes of it: minutes
// with the SLO missed and core-hours.
//
// Time goes in ticks of 5 s; everybody looks every 15 s, at what the last 15 s (of an HPA:
// 30 s) were. The first day of a load is for learning, the second is scored. A service has
// n pods of a cores, each of which serves an n-th of the load λ; a request costs c
// core-seconds:
//
//	late = ρ exp(−κ (a/c − λ/n) D),  ρ = λ c / (n a)      within one pod
//	q'   = max(0, q + (λ − n a/c) · 5 s)                  late, too, where q c/(n a) > D
//
// A minute is missed where fewer than 95% of its requests were in time. Core-hours are of
// all pods, those that start included. A pod's size changes at the next tick.
//
//	trimtab  analyzer/learn (gp and queue), analyzer/forecast, planner/replicas with its
//	         margin, which counts misses from the second hour on, and slack
//	hpa      CPU utilisation, pods of 1 core
//	keda     requests per second and pod, pods of 1 core
//	oracle   knows λ and the formula, sizes without delay
//
// Of hpa and keda every threshold of a list is played. Each service then has its best one
// in hindsight: the one of the fewest core-hours with no more missed minutes than trimtab
// has there, or, where there is none, the one of the fewest missed minutes.
//
// Where a pool is given and is full, pods wait for room; trimtab divides it by the NJC
// procedure over the needs.
//
// Left out: nodes, images, network, several containers, costs of a resize.
//
// Source: ours; loads of the Internet Traffic Archive (ClarkNet-HTTP 29 and 30 August 1995,
// WorldCup98 17 and 18 June 1998, per minute; NASA-HTTP 5 and 6 July 1995, means of 5
// minutes). The formula is an M/M/1 queue's with κ for what varies less or more.
package kubernetes
