// Package actuator carries out plans on one host, and restores the former limits when plans stop
// coming.
//
// For one step of a plan it checks the epoch and the sequence, clamps each
// value to the target's declared bounds, compares what it finds with what the
// plan expects, makes the journal durable, writes once, and reads back:
//
//	grow to g is released  ⇔  Σ now(t) − now(target) + g ≤ capacity
//
// over the host's targets that may act, now(t) being what was last read back: a reduction that
// failed frees nothing, and raises that depend on it are refused.
//
// No plan is trusted with the host's limits: [Limits] come from the host's own configuration, and
// so does the mode of each target. Only one process at a time controls a knob (Config.LockDir). A
// process that finds the lock of a dead owner also takes over its baseline.
//
// The allocation is on lease, counted on the boot clock from receipt. When the lease runs out, the
// recorded baselines are restored, shrinks first, and only where the knob still holds what trimtab
// wrote. If a plan says so, a knob above its baseline is lowered to it earlier, counted from the
// time of the plan: other hosts lend the difference, and their leases may expire first. A knob with
// [Traits].Restore restores more than an amount, or reports that nothing can restore it. If another
// program changed a knob, even to its baseline, the actuator reports this and does not write the
// knob until Resume. [Restore] does the same from the journal alone, and [Watchdog], of which two
// run and guard each other, does it for an actuator that was killed.
//
// Instances of a workload come and go: at every heartbeat a [Finder] lists them. The actuator
// forgets an instance that is gone; one that comes later under the same name is a new one. If the
// limit of a gone instance still exists, it is restored first. The actuator measures and reports
// the pool's capacity on this host; if the pool has other hosts, this limits plans as Limits do.
//
// The package makes no plans and knows no kernel files. The subfolders implement the kinds of
// knobs, each as a [Kind]; knobtest tests the contract that all of them meet.
//
//	a, err := actuator.Open(ctx, actuator.Config{Host: "n1", Pool: "shop", Dir: dir, Targets: targets, Reopen: reopen})
//	…
//	err = a.Run(ctx, bus) // until ctx ends
//	err = a.Close(ctx)    // restores, unless KeepOnStop
package actuator
