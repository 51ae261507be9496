// Package guard limits how much one round may change, whatever the policy decided: it is applied
// last, before a decision becomes a plan.
//
//	fall       a_now − set <= Fall · a_now, but down to Safe at once
//	lowered    |{j lowered}| <= max(1, ⌊Lowered · n⌋)      per round
//	moved      Σ (a_now − set)+ <= Moved · capacity        per round
//	dead band  |target − a_now| <= Band · a_now: no action; at most
//	           0.5% where an objective weighed the move
//	reversal   a workload changes direction at most once in a Window, unless
//	           there is evidence
//	harm       no fall while an alert on the workload fires, nor to where it is
//	           expected to miss its SLO while nobody who is worse off gains
//	return     what was lent for an alert that is over may fall back at once,
//	           by at most that much and once in a Window
//	proof      no fall without a fresh estimate
//	room       Σ (set − a_now)+ <= spare capacity + Σ (a_now − set)+
//
// Safe is the least allocation at which the workload is expected to meet its SLO, from the cost of
// its requests. Falls that end at or above it are safe, and the limits per round do not count them.
// A reversal needs evidence: the load left the forecast of the last move, the workload misses its
// SLO, another one newly misses its SLO, or another one has a Lack, which must be larger the more
// recent the last move is.
//
// If the free capacity is not enough for all rises, needed ones come first. Within each kind,
// capacity is shared in proportion to the requests.
//
// A rise into spare capacity is otherwise free. A workload that misses its SLO may rise in spite of
// a reversal; if the rise is expected to meet the SLO, the dead band does not stop it either, and
// falls inside the dead band may free capacity for it: the guard must not keep a service from
// recovering.
//
// Source: the promises R9 to R12 of this project; the idea of a slow way down and a fast way up is
// that of every autoscaler that survived an outage.
//
// The package keeps no state: the planner keeps each workload's [Move] and hands it back. It does
// not decide where units should go.
//
//	grants := guard.Config{}.Apply(guard.Round{Now: now, Unit: 0.1, …})
package guard
