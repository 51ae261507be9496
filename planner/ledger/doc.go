// Package ledger keeps how much each knob of a pool gives its workload, and how much it may come to
// give by plans and restores that are still under way.
//
//	believed = max(read back, in force, released and not answered)
//	         + what comes back to it with its baseline, when its host is lost
//	reserve  = believed, and Most while a former leader's plan may set the knob
//	Σ reserve <= R,  Σ_{on host h} reserve <= C_h     before any grow is released
//	Σ max(reserve, baseline) <= R, or what knobs have above their baselines is on a
//	         lease that ends before those of the hosts that have less than theirs
//
// The invariant holds if messages are lost, late, repeated or out of order: only a
// result of the same knob answers its grows, a refusal answers nothing, and a
// holding shows the effect of all plans up to the one that its host has accepted.
//
// Source: ours; the promises R4 and R5. The package decides nothing, knows no
// curve and publishes nothing.
//
//	l := ledger.New(ledger.Config{Pool: "main", Lease: time.Minute, Most: most})
//	l.Begin(epoch, now)
//	l.Hold(now, holding)
//	free := l.Count("cpu", func(k *ledger.Knob) float64 { return l.Reserve(k, now) }).Left(capacity)
package ledger
