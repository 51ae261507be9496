// Package actuator carries out plans on one host, and puts everything back
// when nobody renews them.
//
// For one step of a plan it checks the epoch and the sequence, clamps each
// value to the target's declared bounds, compares what it finds with what the
// plan expects, makes the journal durable, writes once, and reads back:
//
//	grow to g is released  ⇔  Σ now(t) − now(target) + g ≤ capacity
//
// over the host's targets that may act, now(t) being what was last read back:
// a shrink that failed frees nothing, and what depends on it is refused.
//
// No plan is trusted with the host's limits: [Limits] come from the host's own
// configuration, and so does the mode of each target. One process at a time
// turns a knob (Config.LockDir); one that finds a dead owner's lock takes over
// the baseline, too.
//
// The allocation is on lease, counted on the boot clock from receipt. When
// the lease runs out, the recorded baselines are restored, shrinks first, and
// only where the knob still holds what trimtab wrote. Where a plan says so, what is above
// its baseline goes back earlier: other hosts lend it, and their leases may end first.
// That is counted from when the plan was made. A knob with [Traits].Restore puts back more than
// an amount, or says that nothing can. What another program set
// meanwhile, the baseline too, is reported and left alone until Resume. [Restore] does the same
// from the journal alone, and [Watchdog], of which two run and guard each other,
// does it for an actuator that was killed.
//
// Instances of a workload come and go while it runs: a [Finder] is asked at every
// heartbeat. One that is gone is forgotten, one that comes again under its name is
// another. Where one leaves behind what was turned, it gets its baseline back
// first. What the pool may give out of this host is measured and reported, and
// bounds plans as Limits do where the pool has other hosts.
//
// The package plans nothing and knows no kernel file: the subfolders hold the
// knobs, each kind of them as a [Kind], knobtest the contract that they all meet.
//
//	a, err := actuator.Open(ctx, actuator.Config{Host: "n1", Pool: "shop", Dir: dir, Targets: targets, Reopen: reopen})
//	…
//	err = a.Run(ctx, bus) // until ctx ends
//	err = a.Close(ctx)    // restores, unless KeepOnStop
package actuator
