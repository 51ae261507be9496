// Package spanfile reads recorded traces from files into span frames, the
// same that receivers make of live ones. It reads what trace stores let people
// download: docs/traces.md has the list. The format is found by looking.
//
// A file is unpacked (gzip, zstd) and read as UTF-8, a part at a time. It has one
// document a line, or documents one after the other. An object is known by its
// keys ([shape]): one that holds lists of others, whatever its length, is walked
// element by element; one that is a span, a trace or a resource with its spans is
// in memory as a whole, and has a small reader of its own. What is known and not
// read is called by its name.
//
// What is missing stays missing: a span without duration ends at 0, one
// without time also starts at 0, and the analyzer flags both.
//
// In Zipkin a client and the servers that answer it may share one id, also where
// the spans were put into a store of another format. Here the
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
