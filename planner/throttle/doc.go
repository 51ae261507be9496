// Package throttle decides, on one host, which speculative tasks start, which end, and which are
// throttled to protect the long-running applications (LRAs) there.
//
// Admission (6.1), in both modes. A task leaves the bounded queue and starts when
//
//	metric_i < threshold_i                              of every metric i
//	Σ held_r + wanted_r <= ratio_r · capacity_r         of every resource r
//
// by priority, then by arrival. A task that does not fit lets a limited number of later ones start
// before it. While a metric, a capacity or the resources of a task are unknown, nothing starts. A
// task runs on a lease, which ends unless it is renewed. Tasks are ended when regular tasks ask for
// their resources.
//
// Cores (6.2) are of two classes, by number; which ones is the actuator's choice:
//
//	first = min(cores, ⌈Σ requested by LRAs⌉ + slack), second = cores − first
//
// Tasks go to the second class while it has room.
//
// Throttle (6.2), in mode RP. With e = value / boundary − 1 of each signal (CPI, MPKI, PSI,
// run-queue delay, latency) of an LRA, an anomaly that the analyzer reports stops all starts. The
// paper then throttles tasks until it is over. Here each step is a trial whose outcome is known
// before the next begins (ours, except for the order of tasks):
//
//  1. Suspects are ordered by evidence, in natural logarithms of odds, rounded to whole
//     numbers. It is the sum of two: the correlation of their activity with the signal,
//     and former verdicts on their job. If it is equal, suspects on cores of the first
//     class come first, then those with the least progress, as in the paper.
//
//  2. The first suspects are throttled (frozen or given fewer cores): as many as the
//     learned sensitivity of the victim says are needed, or a fraction of all while that
//     is unknown. If the evidence against one stands out, only that one is throttled.
//
//  3. A sequential test of the victims' samples that began after the throttling,
//
//     Λ = Σ over the boundary: ln(ε/q), below: ln((1−ε)/(1−q))
//
//     decides: recovered at Λ >= ln((1−β) n / α), not recovered at Λ <= ln(β / (1−α)) or
//     after a set number of samples. q is the fraction of samples over the boundary
//     before, ε = 0.05, and n the number of victims.
//
//  4. If no victim recovered, the accused are released, which counts as false
//     accusations, and the next suspects are tried. If a victim recovered, half of
//     several accused are released to see whether it stays well, and so on; a single one
//     is released once as a control, unless its job was found guilty before. A task is
//     guilty if the victim is well without it and not with it. If each of two halves
//     harms the victim by itself, twice, all of them are guilty.
//
//  5. If no suspect alone was the cause, all are throttled at once, and then halved as
//     in 4. If that has no effect either, speculative tasks are not the cause: none is
//     accused for some time, which doubles each time, and then all are tried first.
//
// A guilty task stays throttled for a time that doubles with each guilty verdict on its job; no
// queued task of that job starts meanwhile. After its release it is watched again. Only one trial
// runs at a time on a host, and all victims are measured in it: the effects of two could not be
// told apart. A victim that recovers before any task was accused counts as noise.
//
// Sensitivity (sensitivity.go): for each victim, the fall of e in each trial is regressed on how
// much was freed of each resource that a throttled task does not keep. The result is slopes with
// their standard deviations.
//
// Nothing stays throttled for ever. Every throttling has an end; renewals extend it to at most
// MaxHold after it began. A decision lists all throttled tasks, so that a policy which stops or
// loses its state releases them. If the clock goes back or stands still, all tasks are released,
// since no lease could end.
//
// Source: "ROSE" (IEEE TPDS 2020), 3.3, 6.1 and 6.2. The paper leaves open, and we chose:
// thresholds are strict inequalities, the ratio is not; all of steps 1 to 5 except the order of
// tasks.
//
// The package does not handle tasks that crash again and again, nor where else a task may run (the
// job manager does). It does not set LLC ways or memory bandwidth (CAT, MBA). The analyzer decides
// what is an anomaly.
//
//	p, err := throttle.New(throttle.Config{Metrics: bounds, Resources: ratios})
//	why := p.Offer(now, request) // "": accepted
//	d := p.Decide(&observation)  // every second or so
//	state := p.Snapshot()        // verdicts and sensitivities, to be kept
package throttle
