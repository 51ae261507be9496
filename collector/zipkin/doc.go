// Package zipkin reads spans in Zipkin's v2 format: JSON, a list of spans or of
// lists of them, and protobuf, ListOfSpans. It reads for live senders
// (collector/otlp serves POST /api/v2/spans) and for files (collector/spanfile).
//
// A client and the servers that answer it may share one id. Here they keep it:
// the analyzer tells the two sides apart by their kinds, and a span that says it
// is shared and has no kind is a server's. The service name of the local endpoint
// gives the resource, and the remote endpoint whom the span calls. The tags error, span.kind and w3c.tracestate are read, as the
// OpenTelemetry Collector's exporter writes them.
//
// Version 1 (annotations with endpoints, Thrift) is refused by its name: its spans
// mix what two services saw.
//
//	err := zipkin.ScanJSON(body, &cache, packer)
//
// Source: Zipkin API v2, zipkin2-api.yaml; zipkin-api, zipkin.proto.
package zipkin
