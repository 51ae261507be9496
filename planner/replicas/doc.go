// Package replicas plans size and number of a workload's instances as one: what it needs
// is an effective allocation, and the cheapest knob that suffices goes first.
//
//	e = n · min_i a_i                                  effective allocation, even load
//	S = min(max size, (free_h + held_h)/k_h, T/n)      the largest size in place
//	T = held + what pool and quota leave               all that it can have
//	a = need(round) / instances that serve             1. size, while a <= S
//	n = ⌈min(need(start), T)/S⌉ + spare                2. more, where size does not suffice
//	n = ⌈need(start)/(0.95 S)⌉ + spare                 3. fewer, where those suffice
//
// need(round) is the least effective allocation that meets the SLO at the upper bound of
// the load in the coming round, need(start) that over the time that a start takes, since
// an instance that is asked for now serves only then. A fall leaves a twentieth of the size
// in reserve, so that the next rise is one of size.
//
// The number moves under the rules of planner/behavior, in the user's words and bounds.
// A fall is made once the others were grown, and only where pool, quota and hosts have
// room for all of them while those that go are still there; it respects disruption
// budgets. Missing input or a rollout lowers nothing. [Startup] learns how long
// a start takes, with a bound for the quantile that holds from few observations.
//
// The words of KEDA's fallback are taken or refused as a whole ([Fallback]).
//
// Source: ours; design section 9. The words: Kubernetes, KEDA 2.21, as cited in
// planner/behavior. The package knows no Kubernetes API, and says nothing of which
// instance goes.
//
//	d := w.Decide(now, &state, &replicas.Room{Pool: 12})
//	// write d.Size, then d.Replicas; when it was written:
//	state.Count.Changed(now, w.Count.Behavior, before, d.Replicas)
package replicas
