// Package poll reads sources at an interval and publishes their samples, of the host as a whole and
// of the control groups of workloads.
//
// A source is a value of type [Source]. Each folder below collector/ has a function that returns
// its source, and collector/sources lists all of them. Configuration, metrics and the table of
// sources follow from the list.
//
// The poller finds the groups, sets source and time in every sample and counts it. When a source
// stops reporting a value, the poller publishes once that the value is missing. A missing value has
// a reason, and is never 0. The package does not interpret values and changes nothing on the host.
//
//	p, err := poll.Open(psi.Source(), poll.Config{Host: "h", Bus: b})
//	…
//	err = p.Run(ctx)
package poll
