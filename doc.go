// Package trimtab holds the words that the stages exchange: spans, samples,
// sketches, estimates, plans, outcomes, and the units they are counted in.
//
// The stages form one loop,
//
//	collector ──► analyzer ──► planner ──► actuator
//	    ▲                                     │
//	    └─────────── the workloads ◄──────────┘
//
// and meet only in the values of this package, and in those of packages
// speculation (tasks that run in what services leave) and colocation (best-effort
// jobs beside services). Every value validates itself (NaN, Inf and negative
// amounts are refused at the border). Package quantity names what a [Sample]
// measures, codes the causes and reasons in a [Plan], and quantile has the histogram
// in a [Sketch]. Package topic is the one table of what travels, on which subject and
// with which guarantee, and codec has the form in which it travels.
//
// The package computes almost nothing: [Curve] interpolates. It does no I/O,
// reads no clock, starts no goroutine and holds no package variable but the
// error kinds.
//
//	v := trimtab.Sample{Workload: "checkout", Quantity: quantity.Load, Value: 42, …}
//	if err := v.Validate(); err != nil { … } // errors.Is(err, trimtab.ErrInvalid)
package trimtab
