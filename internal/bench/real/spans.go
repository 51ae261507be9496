package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/sim/services/shape"
)

// spans sends one server span for each request, with OpenTelemetry's own SDK,
// as a service with it would.
type spans struct {
	providers [3]*sdk.TracerProvider
	tracers   [3]trace.Tracer
}

func (*spans) open(context.Context, *trial, addresses) error { return nil }

func (*spans) lines(addresses) string { return "" }

func (*spans) service(s *service) string {
	return fmt.Sprintf("    slo: {latency: %v, fraction: %v}\n    match:\n      spans: {service.name: %s}\n", s.SLO.Latency, s.SLO.Fraction, s.Name)
}

func (p *spans) begin(ctx context.Context, a addresses) error {
	for i, name := range shape.Names() {
		out, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(a.GRPC), otlptracegrpc.WithInsecure())
		if err != nil {
			return fmt.Errorf("send spans to trimtab: %w", err)
		}
		p.providers[i] = sdk.NewTracerProvider(
			sdk.WithBatcher(out),
			sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", name))))
		p.tracers[i] = p.providers[i].Tracer("bench")
	}
	return nil
}

func (p *spans) observe(i int, from time.Time, took time.Duration, failed bool) {
	_, s := p.tracers[i].Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if failed {
		s.SetStatus(codes.Error, "no answer in time")
	}
	s.End(trace.WithTimestamp(from.Add(took)))
}

func (p *spans) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, provider := range p.providers {
		if provider != nil {
			_ = provider.Shutdown(ctx) // the run is over: nothing depends on these
		}
	}
}

func (*spans) close() {}
