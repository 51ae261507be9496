// Package issue turns decisions into plans: whoever decides for a pool says what is
// to fall, to rise and to be advised, and the issuer sends it in steps that no
// moment finds over a capacity.
//
//	step 1   shrinks and advice; grows too, where there is no shrink to wait for
//	step 2   grows, once every host has answered, or after Confirm: each cut to
//	         what is free by the ledger, Σ reserve <= R and Σ_{on host h} reserve <= C_h
//
// It counts the plans of a term (epoch and sequence), holds one plan under way at
// a time, knows whether the pool is paused, and keeps the recommendations that a
// person may still have carried out (apply).
//
// Source: ours; the promises R4, R5, R13 and R14. The package decides nothing: no
// curve, no objective, no guard on moves.
//
//	i := issue.New(issue.Config{Pool: "main", Resources: resources, Ledger: l, …})
//	i.Begin(epoch, now)
//	plan := i.Issue(now, issue.Decision{Plan: head, Shrinks: s, Grows: g})
//	if i.Answer(outcome) {
//		plan = i.Release(now) // nil: there is more to wait for
//	}
package issue
