// Package planner turns estimates into plans: each round it solves the pool's objective for a
// target, moves a bounded step towards it, passes the step through the guard, and publishes it as a
// plan whose shrinks come first and whose grows are released only against confirmed shrinks.
//
//	target   a* = argmax objective(a),  Σ a_j <= R        (a Policy, without B)
//	step     a_j = clip(a*_j, now_j − B, now_j + B)
//	demand   d_j = clip(β d̂_j + (1−β) d̄_j, d_j' − B, d_j' + B)
//	ledger   Σ_j max(read back_j, released and unanswered_j) <= R
//
// The inequality "ledger" holds before any grow is released, whichever messages were lost, repeated
// or reordered. A host that receives no plans restores its baselines when its lease ends; before
// that, the planner takes back what the host lent to others (recall.go). A knob counts as its
// maximum if its value is uncertain: if it is unlimited, if it was not read since its host accepted
// a plan of this leader term, or if no host has reported it while the term is younger than a lease.
//
// If the objective ends at the SLO and the pool has enough, every workload gets what it needs and a
// share of the leftover capacity, and none is moved while all have what they need (package need).
// If the pool has not enough, the policy decides. A workload with less than it needs may start an
// early round. Every executed move is judged by the reports after it, and a fall that broke an SLO
// is undone (package verdict).
//
// A workload that is not planned for keeps exactly what it has. The reasons are: its mode is off,
// it has no knob, its knob has a problem, or its estimate is missing, held, stale, from the future
// or not a number. After three rounds without a good estimate its declared default may raise it.
// Plan.Held names the workload and the reason. A workload in mode recommend counts with its real
// allocation, and no other is lowered for what is only recommended to it. A workload that meets its
// SLO without a limit is recommended one from its measured use, if the policy does not change its
// allocation:
//
//	limit = 1.5 · max(use) · max(1, load to come / max(load))
//
// A pool may share several resources: [Config.Others]. All of the above then holds for each
// resource, and the policy, which needs [policy.Traits].Share, divides all of them at once. A
// workload is planned for in all resources or in none: if one is unknown, it is held in all. Every
// round is audited (package audit).
//
// Source: Cilantro (OSDI'23), sections 4.1.1 and 4.1.2, equations (1) to (6); solving without B and
// then stepping is ours: within ±B of the current allocation a solver would stop at the first flat
// part of a curve.
//
// For workloads with [Count], size and number of instances are planned together: see number.go.
//
// The package reads no clock, writes no knob and learns no curve. Its subfolders hold the policies
// (fair, welfare, dominant), the guard, the choice of workloads to serve in an overload (overload),
// the capacity that knobs take (ledger) and the steps by which a decision becomes plans (issue).
//
//	p, err := planner.New(planner.Config{Pool: "main", Resource: "cpu",
//		Capacity: 8, Unit: 0.1, Policy: fair.NJCPolicy{}, Workloads: …})
//	p.Step(now, &trimtab.Leader{Pool: "main", Epoch: 3})
//	p.Step(now, holding)            // the values of the knobs
//	p.Step(now, estimate)           // load, performance and curve of a workload
//	plans := p.Step(now, nil)       // a tick: shrinks, as step 1
//	plans = p.Step(now, outcome)    // the answer: grows, as step 2
package planner
