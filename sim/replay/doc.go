// Package replay asks what another policy would have made of a recorded day.
// It runs what was recorded through the analyzer once more to see every
// report, learns one curve per workload from all of them in hindsight, and
// then closes the loop with the policy asked for: the loads are those of the
// recording, the performance is that of the curve at the allocation which the
// policy chose,
//
//	p(t) = p̄(a(t), l(t)),   SLO minutes = Σ Δt [p(t) >= SLO],   resource-hours = Σ Δt a(t)
//
// and analyzer and planner are the steps of production, which know nothing of
// hindsight. The band of the curve gives the range of the SLO minutes.
//
// The curve is no truth: where the recording never went, its band is wide. So
// the recorded allocations are put through the same curve as well; how far
// that is from what was measured is how far the rest can be trusted. Loads are
// taken as given: work that a workload would have put off is not carried over.
//
// Source: the idea of judging a policy off-line on a recorded run is that of
// Cilantro (OSDI'23), section 7, whose simulator replays profiles.
//
// The package reads no file: see exporters/record for what a recording holds.
package replay
