// Package colocate decides, on one host and every few seconds, which resources best-effort jobs may
// have beside the Servpods of latency-critical services there.
//
// With slack = (SLO − T_tail) / SLO of a service and its two limits, the first
// that holds (algorithm 2):
//
//	slack < 0                              StopBE           free what the top level of the reclamation queue holds
//	load > loadlimit                       SuspendBE        freeze all jobs, they keep their memory
//	slack < slacklimit / 2                 CutBE            one step from each job of the top level
//	slack < slacklimit                     DisallowBEGrowth
//	otherwise                              AllowBEGrowth    one step more, one job more
//
// With several services on the host the strictest verdict counts. Reductions are made on the tick
// on which their rule is true, and repeated only for measurements that began after them. Resumption
// and growth wait for a calm period, and for measurements from after the last growth. A job that
// would lose its last core is suspended. The weight of each job is the least that there is. Missing or stale numbers stop growth, and after the same
// time again suspend all jobs, unless the kernel counts that the service uses and waits for nothing.
//
// If limits are unknown, rhythm-indiscriminate searches for them ([Search], algorithm 1) under an
// error budget. rhythm takes a loadlimit of 0.85, a slacklimit of 0.03, and the margin of edge.go,
// which the same budget bounds.
//
// Both variants of Rhythm extend the algorithm:
//
//	ceiling.go  jobs stay below what was too much at a load before, until that is tried
//	            again, one step of one resource at a time, cores first. Load is smoothed,
//	            and room left for two standard deviations and for peaks
//	blame.go    a miss soon after such a step is blamed on that resource, and it waits
//	            twice as long for the next; any other on each Servpod by its part of the
//	            contribution, and when that is not enough on all of them twice as much
//	edge.go     growth, steps and proof ask for slack beyond its noise, by 2 to 8 standard
//	            deviations as misses have taught, and for half of the error budget
//	proven.go   jobs get at once what was proven at that load, instead of a step at a
//	            time. Their cores double while half of the SLO is left and none were too
//	            many yet
//
// Both variants of Rhythm differ from the paper in more, all ours: a job that runs grows
// before another starts; a slacklimit of 1, which allows nothing, counts as not known. A
// load over its loadlimit suspends jobs at once, as the paper has it; when it stays there
// for a minute and slack is measured all the while, that is better evidence, and jobs are
// tried from the least on, up to what is proven at that load. Which jobs go, and how, is
// the second part of Rhythm, which the indiscriminate variant lacks: there StopBE suspends
// the top level of the queue, which frees all but memory and loses no work, and kills, the
// first of the level, only when the SLO is missed three measurements in a row; without,
// it kills all.
//
// The policies to compare it with differ in what must go and in the limits:
//
//	none                    nothing runs
//	heracles                loadlimit 0.85 and slacklimit 0.10 for all, all jobs go
//	rhythm-indiscriminate   limits per Servpod, all jobs go
//	rhythm                  limits per Servpod, the jobs that lose least go, a level at a time
//	deflation               10% of each job goes a tick while the SLO is missed, none is killed
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, sections 3.5 and 3.6.
//
// A [Policy] is pure: an [Observation] goes in, a [Decision] comes out. A [Step] is
// one with the ledger and the issuer of a host's best-effort pool: it makes the
// observation of holdings, contributions and what jobs tell, and plans of the decision.
//
//	p, err := colocate.New("rhythm", colocate.Config{Period: 2 * time.Second})
//	d := p.Decide(&o)
package colocate
