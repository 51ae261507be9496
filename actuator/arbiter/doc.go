// Package arbiter keeps what all pools of one host have together within what the
// host has.
//
// Several processes may turn knobs of one host, each for a pool of its own. Each
// is a claimant. It claims, by resource, what its knobs are limited to now, and the
// most that they may come to by themselves, which counts the baselines that come
// back when a lease ends:
//
//	now ≤ may
//
// A claimant may raise its knobs to n together while
//
//	n ≤ capacity − Σ may of the others,  or
//	n ≤ may and n ≤ capacity − Σ now of the others
//
// (see [Room]). While the baselines of all fit the host, the limits of all do, at
// any instant and whoever dies. Where the baselines alone are more than the host,
// which is nobody's doing here, the limits that are in force still are not raised
// beyond it. Nobody is ever lowered: what is not granted is not raised.
//
// [Arbiter] keeps the claims in a directory that the processes share, one file per
// claimant. The claimant locks its file as long as it lives. A claim is written
// before a knob is raised and after one is lowered. The claim of a dead claimant
// counts, with all that it may come to, until somebody finds that its journal has
// nothing left to restore.
//
// It knows no knob and no plan.
//
//	a := arbiter.New(dir, arbiter.Claimant{Journal: journal, Pool: "shop", PID: pid, Boot: boot})
//	err := a.Settle(ctx, claims)                       // at each heartbeat
//	granted, err := a.Ask(ctx, claims, "cpu", wanted)  // before a rise
package arbiter
