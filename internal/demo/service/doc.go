// Package service is the small HTTP service that trimtab's demo runs as real
// processes: each request queues for the processor, burns CPU time, waits as
// if for a disk, and may call the next component.
//
// A request's latency is
//
//	queue + CPU time / share of a core + wait + latency of the call
//
// so that it falls with the share that the process is given, until only CPU
// time and wait are left. CPU time is measured on the thread's own clock: a
// request costs the same CPU time on a busy or slow machine as on an idle,
// fast one. The queue is bounded and drops whoever has gone or waited too
// long, so that an overloaded service recovers when the overload ends.
//
// It sends one server span per request and one client span per call, with
// trace context propagated, to an OTLP receiver, and serves /metrics and
// /healthz. A process that a quota has stopped cannot see a request arrive;
// so the span starts when the router in front stamped the request
// (X-Request-Start, see [RequestStart]) and shows what the client waited.
//
//	err := service.Run(ctx, service.Config{Name: "search", Listen: "127.0.0.1:8081",
//		OTLP: "127.0.0.1:4317", CPU: service.Draw{Mean: 5 * time.Millisecond, CoV: 0.5}})
package service
