// Package guard bounds what any policy may do in one round, whatever it was
// told: the last word before a plan.
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
// Safe is the least allocation at which the workload is expected to meet its SLO
// by what its requests cost: falls that end there are proven, and the bounds per
// round do not count them. Evidence for a reversal is a load that left the
// forecast of the last move, a missed SLO, or somebody else's, if that is news; or
// somebody else's Lack, of more standard errors the more recent the last move is.
//
// Where the room is not enough for all rises, those that are needed come first; equals
// share it in proportion to what they ask.
//
// A rise into spare capacity is otherwise free. A workload that misses its SLO
// may rise in spite of a reversal; where the rise is expected to meet the SLO
// the dead band does not stop it either, and falls inside the dead band may pay
// for it: a guard must not keep a service from recovering.
//
// Source: the promises R9 to R12 of this project; the idea of a slow way down
// and a fast way up is that of every autoscaler that survived an outage.
//
// The package keeps no state: the planner keeps each workload's [Move] and
// hands it back. It does not decide where units should go.
//
//	grants := guard.Config{}.Apply(guard.Round{Now: now, Unit: 0.1, …})
package guard
