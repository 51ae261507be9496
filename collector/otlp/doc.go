// Package otlp receives OpenTelemetry traces: OTLP/gRPC, and OTLP/HTTP with
// protobuf or JSON bodies, gzip, TLS. It answers OK when an analyzer has
// handled every span of the request, and otherwise as the protocol says:
//
//	                        gRPC                            HTTP
//	some spans malformed    OK, partial_success             200, partialSuccess
//	body malformed          INVALID_ARGUMENT                400
//	body too large          RESOURCE_EXHAUSTED, no retry    413
//	overloaded, no analyzer UNAVAILABLE with RetryInfo      503 with Retry-After
//	no span, but unknown keys                               200, partialSuccess
//	metrics, logs           UNIMPLEMENTED                   501
//	other paths                                             404, or 501 for a protocol known by its path
//
// A request without spans, and one at another path, is counted. HTTP errors carry a google.rpc.Status in the encoding of the request.
//
// The HTTP port also takes Zipkin's version 2 (collector/zipkin) at /api/v2/spans:
// most of its senders name a whole address.
//
// Requests are scanned, not unmarshalled: of each span the ids, times, kind,
// error status and sampling threshold are read from the wire form; names,
// attributes, events and links are skipped. So bytes that generated code would
// refuse inside a skipped field (text that is not UTF-8, a cut-off attribute)
// pass. Of a resource the attributes with text, integer or boolean values are
// kept, and remembered by their raw bytes.
//
// The adjusted count of a span sampled with threshold th (tracestate
// "ot=th:…") is 2⁵⁶/(2⁵⁶ − th).
//
// Source: OTLP specification 1.x; opentelemetry-proto trace/v1; OpenTelemetry
// specification, "TraceState: Probability Sampling".
//
//	r, err := otlp.Open(otlp.Config{Sink: sink, GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318"})
//	err = r.Serve(ctx) // until ctx ends
package otlp
