package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// between starts what stands between a sender and trimtab, and returns where it
// listens: gRPC, HTTP.
func (p *player) between(ctx context.Context, dir string, way route, t *product) (*rig.Process, []string, error) {
	at, err := rig.FreeAddresses(5)
	if err != nil {
		return nil, nil, err
	}
	name, text := "collector", collectorFile(at, t.grpc)
	if way == byJaeger {
		name, text = "jaeger", jaegerFile(at, t.grpc)
	}
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write the configuration of %s: %w", name, err)
	}
	process, err := rig.Start(rig.Program{Args: []string{p.home.binary(name), "--config", file}, Dir: dir, Log: filepath.Join(dir, "between.log"), Stop: syscall.SIGTERM}, nil)
	if err != nil {
		return nil, nil, err
	}
	err = process.Await(ctx, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", at[1])
		if err != nil {
			return fmt.Errorf("reach %s: %w", name, err)
		}
		c.Close()
		return nil
	})
	if err != nil {
		process.Close()
		return nil, nil, err
	}
	return process, at, nil
}

// collectorFile is the Collector's configuration: what its guide says, and a
// sampler that keeps a quarter of the traces and says so in the tracestate.
func collectorFile(at []string, to string) string {
	return fmt.Sprintf(`receivers:
  otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}
processors:
  batch: {}
  probabilistic_sampler: {sampling_percentage: 25, mode: proportional}
exporters:
  otlp_grpc: {endpoint: %q, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [probabilistic_sampler, batch], exporters: [otlp_grpc]}
`, at[0], at[1], to)
}

// jaegerFile is Jaeger's: its storage in memory, as its all-in-one has it, and
// trimtab beside it.
func jaegerFile(at []string, to string) string {
	return fmt.Sprintf(`receivers:
  otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}
processors:
  batch: {}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
  otlp: {endpoint: %q, tls: {insecure: true}}
extensions:
  jaeger_storage: {backends: {memory: {memory: {max_traces: 100000}}}}
  jaeger_query: {storage: {traces: memory}, http: {endpoint: %q}, grpc: {endpoint: %q}}
service:
  telemetry: {metrics: {level: none}}
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [jaeger_storage_exporter, otlp]}
`, at[0], at[1], to, at[2], at[3])
}

// sink takes Zipkin's JSON, as a Zipkin does, and keeps it.
type sink struct {
	*http.Server
	address, file string

	lock  sync.Mutex
	lists []json.RawMessage
}

// record starts a sink for a file.
func record(file string) (*sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for Zipkin: %w", err)
	}
	s := &sink{address: l.Addr().String(), file: file}
	s.Server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		s.lock.Lock()
		s.lists = append(s.lists, body)
		s.lock.Unlock()
		w.WriteHeader(http.StatusAccepted)
	})}
	go func() { _ = s.Serve(l) }() // ends with Close
	return s, nil
}

// write writes what came, as a list of lists.
func (s *sink) write() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	text, err := json.Marshal(s.lists)
	if err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	if err := os.WriteFile(s.file, text, 0o600); err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	return nil
}

// installBetween gets what stands between.
func (h *home) installBetween(ctx context.Context, way route) error {
	switch way {
	case byCollector:
		return h.build(ctx, "collector")
	case byJaeger:
		return h.buildJaeger(ctx)
	default:
		return nil
	}
}

// jaegerModule has Jaeger v2 in cmd/jaeger: releases of v2 are tags that no module
// version can have, and v1.76.0 is the commit of v2.13.0.
const jaegerModule = "github.com/jaegertracing/jaeger@v1.76.0"

// buildJaeger builds Jaeger as its own module, which alone may have its replacements.
func (h *home) buildJaeger(ctx context.Context) error {
	if _, err := os.Stat(h.binary("jaeger")); err == nil {
		return nil
	}
	source := filepath.Join(h.cache, "jaeger")
	defer func() { _ = os.RemoveAll(source) }()
	return execute(ctx, h.tools, "bash", "-euc", `dir=$(cd / && go mod download -json "$1" | sed -n 's/^.*"Dir": "\(.*\)",$/\1/p')
rm -rf "$2" && mkdir -p "$2" && cp -r "$dir"/. "$2" && chmod -R u+w "$2" && cd "$2"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o "$3" ./cmd/jaeger`, "jaeger", jaegerModule, source, h.binary("jaeger"))
}
