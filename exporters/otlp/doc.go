// Package otlp pushes what was decided to a site's own OTLP endpoint: one
// trace per decision, and the figures of every workload as metrics.
//
// The trace of a decision goes from the newest sample that it was made on to
// the last value that was read back:
//
//	decision                 newest sample … last outcome
//	├─ sample    a workload   newest sample … estimate
//	├─ estimate  a workload   estimate … plan
//	├─ plan      a step       estimate or step before … this step
//	└─ effect    a host       plan received … read back
//
// so its length is the reaction time of the loop. The root links the traces
// of the slow requests that the estimates point to. Times are those of the
// values; a trace is written when the last host has answered, or [Wait] after
// its plan. A plan without actions renews a lease: it has no trace.
//
// Nothing here can slow or stop the pipeline: values that find the queue full
// are dropped and counted, spans and pushes that the endpoint does not take
// are counted and logged once a minute. Settings left out of [Config] are
// those of the OTEL_ variables of the OpenTelemetry specification. An endpoint
// that is one of our own receivers is refused: it would feed on itself.
// Traces that a site's collector sends on to us carry [trimtab.OwnAttribute] and
// are no service's requests.
//
//	e, err := otlp.Open(ctx, otlp.Config{Endpoint: "http://collector:4317", Own: []string{"127.0.0.1:4317"}, Metrics: set})
//	stop, err := e.Follow(ctx, bus)
//	…
//	stop()
//	err = e.Close(ctx)
package otlp
