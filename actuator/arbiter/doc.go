// Package arbiter keeps the sum of the allocations of all pools of one host within the host's
// capacity.
//
// Several processes may set knobs of one host, each for a pool of its own. Each is a claimant. For
// each resource it claims the sum of its limits now, and the largest sum that they may reach
// without asking again, for example when a lease expires and the baselines are restored:
//
//	now ≤ may
//
// A claimant may raise its knobs to n together while
//
//	n ≤ capacity − Σ may of the others,  or
//	n ≤ may and n ≤ capacity − Σ now of the others
//
// (see [Headroom]). While the sum of all baselines fits the host, so does the sum of all limits at any
// instant, whichever process dies. If the baselines alone exceed the host, limits are still not
// raised beyond it. The arbiter never lowers a limit; it only refuses raises.
//
// Work that gives way, such as speculative tasks, runs on capacity that others claim and leave idle.
// A claimant claims it as idle. Idle claims take no room from the others; the sum of all of them is
// bounded instead, by what the claimant that asks may promise of the host:
//
//	Σ idle ≤ ratio · capacity
//
// [Arbiter] keeps the claims in a directory that the processes share, one file per claimant. The
// claimant locks its file as long as it lives. A claim is written before a knob is raised and after
// one is lowered. The claim of a dead claimant counts at its maximum until another claimant finds
// that its journal has nothing left to restore, or, if it claimed for processes, until their group
// is empty.
//
// It knows no knob and no plan.
//
//	a := arbiter.New(dir, arbiter.Claimant{Journal: journal, Pool: "shop", PID: pid, Boot: boot})
//	err := a.Settle(ctx, claims)                       // at each heartbeat
//	granted, err := a.Ask(ctx, claims, "cpu", wanted)  // before a rise
package arbiter
