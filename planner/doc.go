// Package planner turns estimates into plans: each round it solves the pool's objective for a
// target, moves a bounded step towards it, passes the step through the guard, and publishes it as a
// plan whose shrinks come first and whose grows are released only against confirmed shrinks.
//
//	target   a* = argmax objective(a),  Σ a_j <= R        (a Policy, without B)
//	step     a_j = clip(a*_j, now_j − B, now_j + B)
//	demand   d_j = clip(β d̂_j + (1−β) d̄_j, d_j' − B, d_j' + B)
//	ledger   Σ_j max(read back_j, released and unanswered_j) <= R
//
// The inequality "ledger" holds before any grow is released, whatever was lost, repeated or
// reordered. A host that hears no plans gets its baselines back when its lease ends: what it lent
// to others is taken back before (recall.go). What a knob may be doing unseen counts as its
// maximum: an unlimited one, one that was not read since its host accepted a plan of this leader's
// term, one that nobody has told of while the term is younger than a lease.
//
// Where the objective ends at the SLO and the pool has enough, everybody gets what it needs and a
// part of the rest, and nobody is moved while everybody has what it needs (package need); the
// policy decides where it has not. A workload with less than it needs starts a round before its
// time. Every executed move is judged by what is reported after it, and a fall that broke an SLO is
// taken back (package verdict).
//
// A workload that is not planned for keeps exactly what it has: mode off, no knob, a problem with
// the knob, an estimate that is missing, held, stale, from the future or not a number. After three
// rounds without a good estimate its declared default may raise it. Plan.Held says which and why. A
// workload in mode recommend counts at what it really has, and nobody is lowered for what is only
// recommended to it. One that meets its SLO without a limit is advised a limit by what it was seen
// to use, where the policy leaves it as it is:
//
//	limit = 1.5 · max(use) · max(1, load to come / max(load))
//
// A pool may share several resources: [Config.Others]. All of the above then holds for each of them
// by itself, and the policy, which has [policy.Traits].Share, shares them at once. A workload is
// planned for as a whole: what is unknown of one of its resources holds it with all. Every round is
// audited (audit).
//
// Source: Cilantro (OSDI'23), sections 4.1.1 and 4.1.2, equations (1) to (6); solving without B and
// then stepping is ours: inside the box of ±B a solver stops at the first stair of a curve.
//
// Of workloads with [Count], size and number of instances are one plan: see number.go.
//
// The package reads no clock, writes no knob and learns no curve. Its subfolders hold the policies
// (fair, welfare, dominant), the guard, whom an overload serves (overload), what knobs give
// (ledger) and how a decision becomes plans (issue).
//
//	p, err := planner.New(planner.Config{Pool: "main", Resource: "cpu",
//		Capacity: 8, Unit: 0.1, Policy: fair.NJCPolicy{}, Workloads: …})
//	p.Step(now, &trimtab.Leader{Pool: "main", Epoch: 3})
//	p.Step(now, holding)            // what the knobs stand at
//	p.Step(now, estimate)           // what is known of a workload
//	plans := p.Step(now, nil)       // a tick: shrinks, as step 1
//	plans = p.Step(now, outcome)    // the answer: grows, as step 2
package planner
