// Package poll reads sources of samples at an interval and publishes what they tell, of the
// host as a whole and of the control groups of workloads.
//
// A source is a value, [Source]: its folder below collector/ has a function that returns it,
// and collector/sources lists those that the program has. Configuration, metrics and the
// table of sources follow from the list.
//
// The poller finds the groups, names source and time in every sample, counts it, and says
// once that a value is absent which was told before and is told no more. A value that is
// missing has the reason, and is never 0. The package judges nothing and writes nothing.
//
//	p, err := poll.Open(psi.Source(), poll.Config{Host: "h", Bus: b})
//	…
//	err = p.Run(ctx)
package poll
