// Package jaeger receives spans by Jaeger's own protocol, api_v2
// CollectorService.PostSpans over gRPC, which Jaeger agents and older clients
// speak. It registers with the server of collector/otlp, whose bounds hold:
//
//	r, err := otlp.Open(otlp.Config{GRPC: "127.0.0.1:14250", …,
//		Register: func(s grpc.ServiceRegistrar) { jaeger.Register(s, service) }})
//
// A span's parent is its first CHILD_OF reference in the same trace, else its
// first FOLLOWS_FROM, as Jaeger has it. Its process gives the resource:
// service.name, and the tags with text, integer or boolean values. The tags
// span.kind and error give kind and status, w3c.tracestate the adjusted count.
// Trace ids of 8 bytes are padded on the left. Jaeger's own sampling tags are not
// read: they stand on the root span only.
//
// Requests are scanned as in collector/otlp. PostSpans has no partial success:
// spans without ids are counted, and a request that has no others is
// INVALID_ARGUMENT.
//
// Source: jaeger-idl, proto/api_v2/{collector,model}.proto.
package jaeger
