// Package path assembles spans into traces and sums up what they say about
// each workload: how many requests ended in an interval, how long they took,
// and where the time went.
//
// The sojourn time of a span is the part of it in which no child of it ran,
//
//	sojourn(s) = |s| - | ⋃ (c ∩ s) |   over the children c of s,
//
// so parallel children count once, and a child that outlives its parent is
// clipped. It belongs to the component that sent the span (service.name); a
// workload has one or several of them.
//
// A request of a workload is a SERVER span, or a CONSUMER span that processes a
// message, that lies in no other request of the workload. Other spans without a
// parent in the workload (CLIENT, PRODUCER, INTERNAL, and those of no kind) are
// requests only of a component that was never seen to send one of the former, also
// before a restart: else they are pollers, heartbeats and jobs. A CLIENT or PRODUCER span below a
// span of another workload passes a call on, and a CONSUMER span that waits for
// messages serves none; neither is ever a request. The latency of a request is its
// duration, and its interval is the one in which it ended. Where its resource names
// the instance that served it, it counts there too.
//
// Whom its parent did not wait for takes none of its parent's time, and is a request
// of its own if it serves one: the consumer of a message, whose producer waits for the
// broker alone; what follows from its parent (FOLLOWS_FROM); and what began on the same
// host when its parent was over.
//
// A CLIENT or PRODUCER span below which no other component has a span calls a peer, if it
// names one: a database, a broker. The peer is a component of no workload, and the span a
// stay in it.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, sections 3.3 (request tracer)
// and 5.4 (spans in the place of the tracer).
//
// Sketches of the same interval from several partitions merge to the sketch
// that one partition with all traces would have made, bit for bit, once each has
// seen which components serve requests; neither duplicates nor the order of arrival
// changes them. Broken spans are mended or set aside, counted by kind, and change no
// other trace. Memory is bounded: over the limits the oldest traces are finished
// early, and components and instances are not told apart.
//
// Senders collect spans before they send them, OpenTelemetry's SDKs for 5 s. With
// Config.Lateness the package learns of each sender how late its spans come, and in
// which order:
//
//	mark(sender) = max(newest end seen − disorder, now − lateness)
//	mark(kin)    = min over the senders of the workloads that share traces
//
// where disorder and lateness are quantiles of what was seen. An interval is closed,
// and a trace finished, when the mark of its kin has passed its end; Config.Timeout
// bounds the wait. Requests of an interval that was closed before count nowhere, and
// are told ([trimtab.Sketch].Late). Of a trace that was finished too early, the parent's
// sojourn time lacks the children that come later. With Config.Requests
// it also tells where the time of each request went, visit by visit, and how much
// of it lies on the critical path ([Request], [Visit]). The package cannot tell
// whether what it was not sent exists.
//
//	p, err := path.New(path.Config{Discover: true})
//	…
//	sketches := p.Step(now, frame) // and p.Step(now, nil) from time to time
package path
