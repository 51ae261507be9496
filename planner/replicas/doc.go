// Package replicas plans size and number of a workload's instances together: its need is an
// effective allocation, and the cheapest knob that suffices is changed first.
//
//	e = n · min_i a_i                                  effective allocation, even load
//	S = min(max size, (free_h + held_h)/k_h, T/n)      the largest size in place
//	T = held + what pool and quota leave               all that it can have
//	a = need(round) / instances that serve             1. size, while a <= S
//	n = ⌈min(need(start), T)/S⌉ + spare                2. more, where size does not suffice
//	n = ⌈need(start)/(0.95 S)⌉ + spare                 3. fewer, where those suffice
//
// need(round) is the least effective allocation that meets the SLO at the upper bound of the load
// in the coming round, need(start) that over the time that a start takes, since an instance that is
// asked for now serves only then. A fall leaves a twentieth of the size in reserve, so that the
// next rise is one of size.
//
// The number changes within the rules of planner/behavior, which the user sets. Instances are
// removed only after the remaining ones have grown, for which pool, quota and hosts must have room
// while all still run. Disruption budgets are respected. Nothing is lowered while input is missing
// or a rollout runs. [Startup] learns how long a start takes, with a bound for the quantile that
// holds from few observations.
//
// KEDA's fallback settings are accepted as they are, or refused ([Fallback]).
//
// Source: ours; design section 9. The words: Kubernetes, KEDA 2.21, as cited in planner/behavior.
// The package knows no Kubernetes API, and does not choose which instance is removed.
//
//	d := w.Decide(now, &state, &replicas.Room{Pool: 12})
//	// write d.Size, then d.Replicas; when it was written:
//	state.Count.Changed(now, w.Count.Behavior, before, d.Replicas)
package replicas
