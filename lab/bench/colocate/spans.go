package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spans sends two spans for each request with OpenTelemetry's own SDK, as the
// services would: that of nginx, from when the request was meant to be sent, and
// within it that of Redis.
type spans struct{ front, back *sdk.TracerProvider }

func (s *spans) open(ctx context.Context, address string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("send spans to trimtab: %w", err)
	}
	for _, p := range []struct {
		name string
		to   **sdk.TracerProvider
	}{{"nginx", &s.front}, {"redis", &s.back}} {
		out, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
		if err != nil {
			return fmt.Errorf("send spans to trimtab: %w", err)
		}
		*p.to = sdk.NewTracerProvider(
			sdk.WithBatcher(out, sdk.WithMaxQueueSize(1<<14)),
			sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", p.name), attribute.String("service.namespace", "shop"), attribute.String("host.name", host))))
	}
	return nil
}

func (s *spans) tell(begin time.Time, o *outcome) {
	from := begin.Add(o.At)
	ctx, front := s.front.Tracer("bench").Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if o.Failed {
		front.SetStatus(codes.Error, "no answer in time")
	} else {
		asked := begin.Add(o.BackAt)
		_, back := s.back.Tracer("bench").Start(ctx, "script", trace.WithTimestamp(asked), trace.WithSpanKind(trace.SpanKindServer))
		back.End(trace.WithTimestamp(asked.Add(o.Back)))
	}
	front.End(trace.WithTimestamp(from.Add(o.Took)))
}

func (s *spans) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, p := range []*sdk.TracerProvider{s.front, s.back} {
		if p != nil {
			_ = p.Shutdown(ctx) // the row is over: nothing depends on these
		}
	}
}
