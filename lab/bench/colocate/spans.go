package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// spans sends two spans for each request with OpenTelemetry's own SDK, as the
// services would: that of nginx, from when the request was meant to be sent, and
// within it that of Redis.
type spans struct {
	rig.Tracers
	front, back trace.Tracer
}

func (s *spans) open(ctx context.Context, address string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("send spans to trimtab: %w", err)
	}
	for _, p := range []struct {
		name string
		to   *trace.Tracer
	}{{"nginx", &s.front}, {"redis", &s.back}} {
		about := []attribute.KeyValue{attribute.String("service.name", p.name), attribute.String("service.namespace", "shop"), attribute.String("host.name", host)}
		if *p.to, err = s.Add(ctx, address, about, sdk.WithMaxQueueSize(1<<14)); err != nil {
			return err
		}
	}
	return nil
}

func (s *spans) tell(begin time.Time, o *outcome) {
	from := begin.Add(o.At)
	ctx, front := s.front.Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if o.Failed {
		front.SetStatus(codes.Error, "no answer in time")
	} else {
		asked := begin.Add(o.BackAt)
		_, back := s.back.Start(ctx, "script", trace.WithTimestamp(asked), trace.WithSpanKind(trace.SpanKindServer))
		back.End(trace.WithTimestamp(asked.Add(o.Back)))
	}
	front.End(trace.WithTimestamp(from.Add(o.Took)))
}
