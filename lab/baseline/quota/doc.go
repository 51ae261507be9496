// Package quota holds published rules that set CPU quotas (cores) of the services of one
// application, beside which the loop of planner/local is judged. Each sees per tick of
// 100 ms what a service used and in how many periods its quota stopped it.
//
//	k8s-cpu       every 15 s  use / threshold, the highest of 300 s
//	k8s-cpu-fast  every 1 s   use / threshold, the highest of 20 s
//	captain       Autothrottle's per-service controller with a throttle target
//	tower         Autothrottle's bandit over the captains' targets, every 60 s
//	escra         a pool, moved from who leaves runtime unused to who is throttled
//	weights       no quotas: cpu.weight in proportion to the targets
//
// Source: Z. Wang et al., "Autothrottle" (NSDI'24), repository microsoft/autothrottle,
// commit d237d7f: worker-daemon.py, utils.py; G. Cusack et al., "Escra" (ICDCS'22),
// gregcusack/ec_gcm, commit 1bacc8d.
//
// Tower differs from the source in one part: its model of the cost is Vowpal Wabbit with
// a hidden layer of three units per action there; here it is such a layer, trained by
// AdaGrad on the same 10,000 draws of the medians.
package quota
