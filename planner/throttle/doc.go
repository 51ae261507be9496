// Package throttle decides, on one host, which speculative tasks start, which end and
// which are throttled for the long-running applications (LRAs) beside them.
//
// Admission (6.1), in both modes. A task leaves the bounded queue and starts when
//
//	metric_i < threshold_i                              of every metric i
//	Σ held_r + wanted_r <= ratio_r · capacity_r         of every resource r
//
// by priority, then by arrival; one that does not fit lets a bounded number pass. A
// metric, a capacity or a holding that is missing starts nothing. A grant is a lease:
// it ends unless it is renewed. Regular tasks take back what they ask for.
//
// Cores (6.2) are of two classes, by number; which ones is the actuator's choice:
//
//	first = min(cores, ⌈Σ requested by LRAs⌉ + slack), second = cores − first
//
// Tasks go to the second class while it has room.
//
// Throttle (6.2), in mode RP. With e = value / boundary − 1 of each signal (CPI, MPKI,
// PSI, run-queue delay, latency) of an LRA, an anomaly that the analyzer reports stops all
// starts. The paper then throttles tasks until it is over; here each step is a trial
// of which the outcome is known before the next (ours, but for the order):
//
//  1. Suspects are ordered by evidence, in natural logarithms of odds rounded to whole
//     numbers: that of the correlation of their activity with the signal, and that of
//     former verdicts on their job. Of equals those on cores of the first class come
//     first, then those with the least progress, as in the paper.
//
//  2. The first of them are throttled, frozen or cut: as many as the learned sensitivity
//     of the victim says are needed, and before that a fraction of all; where the
//     evidence against one stands out, that one.
//
//  3. The victims watch: a sequential test of samples taken wholly afterwards,
//
//     Λ = Σ over the boundary: ln(ε/q), below: ln((1−ε)/(1−q))
//
//     recovered at Λ >= ln((1−β) n / α), not at Λ <= ln(β / (1−α)) or after a set number
//     of samples, with q their share over the boundary before, ε = 0.05, n victims.
//
//  4. Not recovered: the accused are released, each a false accusation, and the next
//     are tried. Recovered: of several, half are let go at a time to see if the victim
//     stays well; one alone is let go once more, unless its job was guilty before. The
//     guilty is the one without which the victim is well and with which it is not; of
//     two halves that both hurt, seen twice, all.
//
//  5. When each was tried in vain, all are at once, then halved as in 4. When that is
//     in vain, too, the anomaly is not theirs: nobody is accused for a while, a longer
//     one each time, and then all at once first.
//
// A guilty task stays throttled for a time that doubles with each proof against its
// job, of which no queued task starts meanwhile; on its release it is watched again.
// One trial runs at a time on a host, and all victims watch it: two would say nothing
// of either. A victim that recovers before anybody was accused is counted as noise.
//
// Sensitivity: the fall of e in each trial is regressed on what was freed of each
// resource that a throttled task does not keep (sensitivity.go): slopes with their
// deviation, per victim.
//
// Nothing stays throttled for ever: every throttling has an end that is renewed, at
// most MaxHold after it began, and a decision lists all that are throttled, so that a
// policy that is gone or has forgotten releases them. Where the time goes back, or
// stands still, all are released: no lease can end then.
//
// Source: "ROSE" (IEEE TPDS 2020), 3.3, 6.1 and 6.2. Left open there, and chosen here:
// thresholds are strict, the ratio is not; all of steps 1 to 5 but the order.
//
// What it does not do: tasks that exit at once again and again, and where else a task
// may run, are the job manager's; LLC ways and memory bandwidth (CAT, MBA) it does not
// turn; what is an anomaly, the analyzer says.
//
//	p, err := throttle.New(throttle.Config{Metrics: bounds, Resources: ratios})
//	why := p.Offer(now, request) // "": accepted
//	d := p.Decide(&observation)  // every second or so
//	state := p.Snapshot()        // verdicts and sensitivities, to be kept
package throttle
