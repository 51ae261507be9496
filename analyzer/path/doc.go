// Package path assembles spans into traces and summarizes each workload: how many requests ended in
// an interval, how long they took, and where the time was spent.
//
// The sojourn time of a span is the part of it in which no child of it ran,
//
//	sojourn(s) = |s| - | ⋃ (c ∩ s) |   over the children c of s,
//
// so that parallel children count once, and a child that outlives its parent is clipped. The
// sojourn time counts for the component that sent the span (service.name). A workload has one or
// more components.
//
// A request of a workload is a SERVER span, or a CONSUMER span that processes a message, and that
// is not within another request of the workload. Other spans without a parent in the workload
// (CLIENT, PRODUCER, INTERNAL, and those without a kind) count as requests only if their component
// has never sent one of those, not even before a restart: otherwise they are pollers, heartbeats
// and jobs. A CLIENT or PRODUCER span below a span of another workload passes on a call, and a
// CONSUMER span that waits for messages serves none; neither is ever a request. The latency of a
// request is its duration, and its interval is the one in which it ended. If its resource names the
// instance that served it, it also counts for that instance.
//
// A span that its parent did not wait for takes none of its parent's time, and is a request of its
// own if it serves one. Such spans are: the consumer of a message, whose producer only waits for
// the broker; a span that follows from its parent (FOLLOWS_FROM); and one that began on the same
// host after its parent had ended.
//
// If no other component has a span below a CLIENT or PRODUCER span, and that span names its target
// (a database, a broker), the target is a peer: a component that belongs to no workload. The span's
// duration counts as time in the peer.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, sections 3.3 (request tracer) and 5.4 (spans in the
// place of the tracer).
//
// Sketches of the same interval from several partitions merge to exactly the sketch that one
// partition with all traces would have made, once each partition knows which components serve
// requests. Neither duplicates nor the order of arrival change them. Broken spans are corrected or
// ignored, counted by kind of fault, and do not affect other traces. Memory is bounded: beyond the
// limits the oldest traces are finished early, and further components and instances are not
// distinguished.
//
// Senders collect spans before they send them, OpenTelemetry's SDKs for 5 s. With Config.Lateness
// the package learns how late the spans of each sender arrive, and how far out of order:
//
//	mark(sender) = max(newest end seen − disorder, now − lateness)
//	mark(kin)    = min over the senders of the workloads that share traces
//
// where disorder and lateness are quantiles of the observed values. All spans that ended before the
// mark have arrived. An interval is closed, and a trace finished, once the mark of its kin has
// passed its end; Config.Timeout limits the wait. A request whose interval was already closed is
// not counted, but reported as late ([trimtab.Sketch].Late). If a trace was finished too early, the
// sojourn time of a parent does not exclude children that arrive later. With Config.Requests the
// package also reports where the time of each request was spent, visit by visit, and how much of it
// is on the critical path ([Request], [Visit]). The package cannot detect spans that were never
// sent.
//
//	p, err := path.New(path.Config{Discover: true})
//	…
//	sketches := p.Step(now, frame) // and p.Step(now, nil) from time to time
package path
