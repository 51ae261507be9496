// Package spanfile reads recorded traces from files into span frames, the
// same that receivers make of live ones: Jaeger's JSON (API and UI exports,
// also the UI's enriched one), Zipkin v2 JSON, and OTLP JSON (one request, or
// one a line, as the OpenTelemetry Collector's file exporter writes), plain or
// gzipped. The format is found by looking.
//
// What is missing stays missing: a span without duration ends at 0, one
// without time also starts at 0, and the analyzer flags both.
//
// In Zipkin a client and the servers that answer it may share one id. Here the
// client keeps it; each server gets an id of its own, made of the shared one,
// with the client as its parent. Children of a shared id go to the half that
// has their service, the server's before the client's, else to the server.
//
// The package does not sort spans by time and does not judge them beyond
// "it has ids".
//
// Source: jaeger-idl model/v1 as JSON; Zipkin API v2 (zipkin2-api.yaml); OTLP
// specification, "JSON Protobuf Encoding".
//
//	recording, err := spanfile.Open("traces.json.gz", spanfile.Options{})
//	for _, frame := range recording.Frames { … }
package spanfile
