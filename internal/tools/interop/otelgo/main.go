// Command otelgo is a service in Go with OpenTelemetry as its guide sets it up: the
// batch span processor with its defaults, otelhttp around server and client, and an
// OTLP exporter that the environment points somewhere. OTEL_EXPORTER_OTLP_PROTOCOL
// says which of the two. It is a module of its own: nothing of it reaches trimtab's
// go.mod.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/trimtab/trimtab/internal/tools/interop/service"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "otelgo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var exporter trace.SpanExporter
	var err error
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return fmt.Errorf("open exporter: %w", err)
	}
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithBatcher(exporter)))
	client := &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport), Timeout: 10 * time.Second}
	return service.Run(client, func(h http.Handler) http.Handler { return otelhttp.NewHandler(h, "serve") })
}
