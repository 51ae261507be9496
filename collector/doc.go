// Package collector passes spans from receivers to the bus without losing or inventing any.
//
// A receiver (collector/otlp, collector/jaeger, or a file decoder) fills a
// [Packer]: it packs spans into frames, one or more per partition, where
//
//	partition(trace) = ⌊mix(trace id) · Partitions / 2⁶⁴⌋
//
// so that all spans of a trace meet in one analyzer. [Source.Send] publishes
// the frames and returns nil when the analyzer has handled every one of them:
// only then may the sender be told OK. For each source, at any time,
//
//	received = accepted + Σ rejected(reason)
//
// Flow control: at most InFlightBytes of frames wait for an answer, and at most the same amount
// waits to be sent, each for at most MaxWait. Send refuses what does not fit with a [Refusal],
// which says when to retry. A sender that repeats a refused request may repeat frames that were
// handled already: the analyzer recognises spans that it has seen.
//
// The package reads no wire format, checks of a span only that it has IDs, and stores nothing
// between requests.
//
//	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
//	from := sink.Source("otlp_grpc")
//	p := from.Packer()
//	p.SetResource(collector.NewResource([]trimtab.Attr{{Key: "service.name", Value: "cart"}}))
//	p.Add(&span)
//	err = from.Send(ctx, p)
//	from.Recycle(p)
package collector
