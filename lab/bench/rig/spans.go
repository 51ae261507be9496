package rig

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracers send spans with OpenTelemetry's own SDK, as services with it do.
type Tracers struct{ providers []*sdk.TracerProvider }

// Add returns a tracer of a service about which the attributes tell. It sends to an
// address by gRPC, in batches with these options.
func (t *Tracers) Add(ctx context.Context, address string, about []attribute.KeyValue, batches ...sdk.BatchSpanProcessorOption) (trace.Tracer, error) {
	out, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, fmt.Errorf("send spans to trimtab: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(out, batches...), sdk.WithResource(resource.NewSchemaless(about...)))
	t.providers = append(t.providers, p)
	return p.Tracer("bench"), nil
}

// Close sends what is still held back, for at most 2 s.
func (t *Tracers) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, p := range t.providers {
		_ = p.Shutdown(ctx) // the run is over: nothing depends on these
	}
}
