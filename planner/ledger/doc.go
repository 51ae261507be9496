// Package ledger is what the knobs of a pool give, and what they may yet give.
//
//	believed = max(read back, in force, released and not answered)
//	         + what comes back to it with its baseline, when its host is lost
//	reserve  = believed, and Most while a former leader's plan may turn the knob
//	Σ reserve <= R,  Σ_{on host h} reserve <= C_h     before any grow is released
//	Σ max(reserve, baseline) <= R, or what knobs have above their baselines is on a
//	         lease that ends before those of the hosts that have less than theirs
//
// The invariant holds whatever is lost, late, repeated or out of order: only a
// result of the very knob answers its grows, a refusal answers nothing, and a
// holding proves what became of plans before the one that its host has accepted.
//
// Source: ours; the promises R4 and R5. The package decides nothing, knows no
// curve and publishes nothing.
//
//	l := ledger.New(ledger.Config{Pool: "main", Lease: time.Minute, Most: most})
//	l.Begin(epoch, now)
//	l.Hold(now, holding)
//	free := l.Count("cpu", func(k *ledger.Knob) float64 { return l.Reserve(k, now) }).Left(capacity)
package ledger
