// Package guard bounds what any policy may do in one round, whatever it was
// told: the last word before a plan.
//
//	fall       a_now − set <= Fall · a_now                 per workload and round
//	lowered    |{j lowered}| <= max(1, ⌊Lowered · n⌋)      per round
//	moved      Σ (a_now − set)+ <= Moved · capacity        per round
//	dead band  |target − a_now| <= Band · a_now: no action
//	reversal   a workload changes direction at most once in a Window
//	return     what was lent for an alert that is over may fall back at once,
//	           by at most that much and once in a Window
//	proof      no fall without a fresh estimate
//	room       Σ (set − a_now)+ <= spare capacity + Σ (a_now − set)+
//
// A rise into spare capacity is otherwise free. A workload that misses its SLO
// may rise in spite of a reversal; where the rise is expected to meet the SLO
// the dead band does not stop it either, and falls inside the dead band may pay
// for it: a guard must not keep a service from recovering. The fall that
// follows waits for the window.
//
// Source: the promises R9 to R12 of this project; the idea of a slow way down
// and a fast way up is that of every autoscaler that survived an outage.
//
// The package keeps no state: the planner keeps each workload's [Move] and
// hands it back. It does not decide where units should go.
//
//	grants := guard.Config{}.Apply(guard.Round{Now: now, Unit: 0.1, …})
package guard
