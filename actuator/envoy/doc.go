// Package envoy limits how many requests an Envoy has in service at a cluster, through the admin API:
//
//	requests in service ≤ circuit_breakers.CLUSTER.PRIORITY.max_requests
//
// Envoy refuses the others at once, with status 503. With max_connections in place of max_requests
// they wait, as many as the cluster's max_pending_requests allows. These keys of Envoy's runtime
// override the thresholds of the cluster's configuration. Without an override that configuration
// holds. The runtime does not list it, so trimtab reads no limit then.
//
// What a reader would not expect:
//
//   - The runtime is a stack of layers, in which a later layer wins. The admin API sets values in the
//     layer of type admin_layer, of which an Envoy has at most one. GET /runtime lists the
//     names of layers and not their types, so each write also sets a marker of its own, trimtab.KEY:
//     the layer that has it is the admin layer.
//   - A restart of Envoy forgets the admin layer and the marker with it. A person who puts back a
//     limit leaves the marker. [actuator.Traits].Forgot tells the two apart by that.
//   - A value that is no whole number is listed, and Envoy ignores it: here it is an error.
//   - Envoy 1.26 had versions that list keys without their values (its issue 27376): that is an
//     error here, since a missing value is not the absence of a limit.
//
// Source: Envoy's documentation of the administration interface (GET /runtime, POST
// /runtime_modify), of runtime layers, and of circuit breakers; source/server/admin/runtime_handler.cc
// and source/common/runtime/runtime_impl.cc. It was never run against a real Envoy: the tests have an
// admin server that answers in the documented form.
//
//	knob, err := envoy.Open(envoy.Config{Admin: "http://127.0.0.1:9901", Key: "circuit_breakers.shop.default.max_requests"})
//	…
//	err = knob.Write(ctx, trimtab.Units(40))
package envoy
