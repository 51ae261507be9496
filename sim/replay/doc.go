// Package replay computes the result that another policy would have had on a recorded day. It runs
// the recording through the analyzer again, and learns in hindsight one curve for each workload
// from all reports. Then it runs the control loop with the given policy: the loads are those of the
// recording, and the performance is that of the curve at the allocation that the policy chose,
//
//	p(t) = p̄(a(t), l(t)),   SLO minutes = Σ Δt [p(t) >= SLO],   resource-hours = Σ Δt a(t)
//
// and analyzer and planner are the steps of production, which know nothing of
// hindsight. The band of the curve gives the range of the SLO minutes.
//
// The curve is only an estimate: its band is wide at allocations that the recording does not have.
// To show its error, the package also evaluates the recorded allocations on the curve, for
// comparison with the measurements. Loads are taken as given: work that a workload would have
// delayed is not carried over.
//
// Source: the idea of judging a policy off-line on a recorded run is that of
// Cilantro (OSDI'23), section 7, whose simulator replays profiles.
//
// The package reads no file: see exporters/record for what a recording holds.
package replay
