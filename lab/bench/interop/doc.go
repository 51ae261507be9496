// Command interop runs real senders beside trimtab, and prints what each sent
// beside what trimtab counted: docs/interop.md.
//
// Each sender is a service with the tracing library of its table row and that
// library's defaults: it serves a constant number of requests a second, asks a
// dependency in each, and polls that dependency once a second besides. So each
// request makes a SERVER and a CLIENT span, and each poll a CLIENT span without a
// parent, which is no request. The dependency answers after 10 to 50 ms.
//
//	make interop
//	go run ./lab/bench/interop --only 'OpenTelemetry Go' --for 30s
//
// What is installed goes below ~/.cache/trimtab-interop: packages of npm by
// the locks in internal/tools/interop/node, Go programs from the module
// internal/tools/interop. What cannot be had is a row that says why.
package main
