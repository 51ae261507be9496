// Package colocate decides, on one host and every few seconds, how much
// best-effort jobs may have beside the Servpods of latency-critical services
// that run there.
//
// With slack = (SLO − T_tail) / SLO of a service and its two limits, the first
// that holds (algorithm 2):
//
//	slack < 0                              StopBE           kill the top level of the reclamation queue
//	load > loadlimit                       SuspendBE        freeze all jobs, they keep their memory
//	slack < slacklimit / 2                 CutBE            one step from each job of the top level
//	slack < slacklimit                     DisallowBEGrowth
//	otherwise                              AllowBEGrowth    one step more, one job more
//
// Of several services on the host the strictest decides.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, sections 3.5 and 3.6.
//
// The package reads no counter and turns no knob: an [Observation] goes in, a
// [Decision] comes out.
//
//	p, err := colocate.New("rhythm", colocate.Config{Period: 2 * time.Second})
//	d := p.Decide(&o)
package colocate
