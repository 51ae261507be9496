// Command ingest measures span ingestion: OTLP/gRPC in → over NATS → sojourn
// sketches out, with the load generator on the same cores.
//
// It starts processes of itself: a sender that builds ExportTraceServiceRequest
// messages with the generated types, gives every trace new ids and marshals
// per call; a receiver that is collector/otlp, embedded NATS, the path stage
// and a subscriber to its sketches; and a receiver that throws the bytes away,
// which is the ceiling. The figure to judge by is
//
//	receiver CPU per span / sender CPU per span, in one run.
//
// After each run the receiver is drained, and
//
//	sent = analysed + dropped,  received = sent + duplicates
//
// are checked with the program's own counters. One run slows the analyzer
// down. It does not judge: `make bench` prints, people read.
//
//	go run ./lab/bench/ingest -for 10s -o json
package main
