// Package kubernetes replays recorded loads on a cluster under autoscalers. For each of them it
// computes the minutes with a missed SLO, the core-hours requested, used and needed, and the resizes.
//
// Time advances in ticks of 5 s. Every autoscaler decides every 15 s, on the measurements of the
// last 15 s (an HPA: 30 s). A service has n pods of a cores, each of which serves an n-th of the
// load λ; a request costs c core-seconds. Without a curve that was learnt,
//
//	late = ρ exp(−κ (a/c − λ/n) D),  ρ = λ c / (n a)      within one pod
//	q'   = max(0, q + (λ − n a/c) · 5 s)                  late, too, where q c/(n a) > D
//
// A minute counts as missed if fewer than the SLO's share of its requests were in time. Core-hours
// include pods that are starting. A pod's size changes at the next tick.
//
//	trimtab                   analyzer/learn (gp and queue), analyzer/forecast, planner/replicas with its
//	                          margin, which counts misses from the second hour on, and slack
//	hpa, keda, vpa, eks, dpa  sim/autoscale
//	nodes                     planner/packing, of the requests of all pods
//
// If a pool is given and is full, pods wait for capacity; trimtab divides it over the needs by the
// NJC procedure.
//
// Left out: on which node a pod runs, images, network, several containers, costs of a resize.
//
// The formula is an M/M/1 queue's with κ for what varies less or more.
package kubernetes
