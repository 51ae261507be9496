// Package issue turns decisions into plans: the planner says which amounts are to fall, to rise and
// to be recommended, and the issuer sends that in steps such that the capacity is never exceeded,
// not even in between.
//
//	step 1   shrinks and advice; grows too, where there is no shrink to wait for
//	step 2   grows, once every host has answered, or after Confirm: each cut to
//	         what is free by the ledger, Σ reserve <= R and Σ_{on host h} reserve <= C_h
//
// It numbers the plans of a leader term (epoch and sequence), lets only one plan be carried out at
// a time, knows whether the pool is paused, and keeps the recommendations that a person may still
// apply.
//
// Source: ours; the promises R4, R5, R13 and R14. The package decides nothing: no curve, no
// objective, no guard on moves.
//
//	i := issue.New(issue.Config{Pool: "main", Resources: resources, Ledger: l, …})
//	i.Begin(epoch, now)
//	plan := i.Issue(now, issue.Decision{Plan: head, Shrinks: s, Grows: g})
//	if i.Answer(outcome) {
//		plan = i.Release(now) // nil: there is more to wait for
//	}
package issue
