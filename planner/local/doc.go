// Package local moves the CPU quotas of one host every 100 ms, within what the planner
// allows. It goes by two counters of each control group that only the host has in time:
// the CPU time used, and how long the quota stopped the group. A plan gives each group
// an envelope [trimtab.Envelope] and says how much the host may lend; the loop learns
// nothing and plans nothing.
//
// Demand observer and headroom, per group, over the time T since the last tick, with
// used and stalled the differences of two counters:
//
//	φ = stalled / T                              share of the time that it stood still
//	d = max(0, used − B) / ((1 − φ) T)           rate at which work came, seen while it ran
//	B = min(d φ, most) T                         what came while it stood still, and waits
//	m = m + (d − m)/10
//	h = clamp(h + .05 (min(.3, max(0, φ − w/T)/(1 − w/T)) − α), −.5, 2)
//	want = clamp(m (1 + h) + .3 B/T, least, most)
//
// h is a running quantile with the error budget α ([trimtab.Envelope] Late) of stalls
// beyond w (Budget), as in adaptive conformal inference. One period counts with .3 at most:
// a period that a step of the load stalls as a whole would have stalled with more headroom,
// too. A quota is written only when want is below .82 or above 1.1 of the quota in force,
// since each write gives the group a new period's runtime. That runtime works off a part of
// the backlog: with .3 B/T instead of B/T there are fewer writes, and 5 to 6% fewer cores
// where loads are smooth, at the same recovery. A step of the load is answered in the same
// tick. A mean that follows five times faster while the group is stopped was tried: it costs
// 13 to 17% more cores and recovers no sooner.
//
// Division. Where Σ want exceeds the limit L = min(capacity, Σ target + lendable), each
// group gets up to its share L · target/Σ target. The rest is divided in proportion to what
// each still lacks. Tick returns the quotas to lower; Grow returns quotas to raise by
// exactly what was read back as freed, groups below their target first. Where it is not
// known whether a write came into force, a group counts with the larger of its former quota
// and the written one.
//
// A loan ends when demand falls (the rule above); when the lender needs its own again (in
// the same tick); after three ticks without a fresh reading, a tick that is more than three
// periods late or before the last one, the end of the lease (back to the target). A loan
// that lasts 5 s asks for a round, as does a rise that a full host forbids: at most once
// in 10 s per group. A value that neither trimtab nor the envelope explains is an
// operator's: it is left alone, and counted.
//
// Source: two-level design of this project; the observer's idea is that of the backlog
// in H. Wang et al., "Autothrottle" (NSDI'24), for which throttles are the signal; the
// quantile is that of Gibbs and Candès, "Adaptive conformal inference under distribution
// shift" (NeurIPS'21). Constants were tuned on the loads diurnal-2 and steps (seed 101) of
// `trimtab-lab sim microservices --fast`.
//
// What it does not do: no clock, no I/O, no journal. The parent group that holds the
// capacity, and the order of quota and burst, are the caller's.
//
//	h := local.New()
//	err := h.SetPlan(&local.Plan{Groups: groups, Capacity: 8, Lendable: 2, Until: until})
//	d := h.Tick(&look)          // every 100 ms: write d.Shrinks, read back
//	grows := h.Grow(readBack)   // then write these
package local
