// Package gate is a reverse proxy that admits what its service can answer within the SLO and
// refuses the rest at once (`trimtab gate`). The rules are those of planner/admission; this package
// has the sockets, the clock and the responses to clients.
//
// For each class it counts the outcomes of its requests: answered in time, late, failed (a server
// error, or no service), abandoned by the client, refused. A request is answered when its response
// is complete; a stream is answered when its response begins, and from then on it no longer counts
// against the limit. Streams are upgraded connections, server-sent events, and requests or
// responses whose body still comes after ten times the SLO.
//
// The gate answers a refused request with 503 and Retry-After, or RESOURCE_EXHAUSTED over gRPC,
// before it sends anything to the service, so a client may safely retry. It cuts a response
// that has begun only if its client reads nothing of it for 30 s, and at the end of a drain.
//
// It does not balance over several services, end TLS, cache, retry or change what it passes on.
//
//	g, err := gate.Open(gate.Config{Listen: ":8080", To: "http://127.0.0.1:9000", Workload: "shop", Within: 200 * time.Millisecond})
//	err = g.Run(ctx) // until ctx ends and what is in flight is answered
package gate
