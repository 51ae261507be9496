package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// spans sends one server span for each request, with OpenTelemetry's own SDK,
// as a service with it would.
type spans struct {
	rig.Tracers
	names   [3]string
	tracers [3]trace.Tracer
	// web is the service with two instances, whose second one has a tracer of its own; nil: none.
	web    *balanced
	second trace.Tracer
}

func (p *spans) open(_ context.Context, t *trial, _ addresses) error {
	p.names = t.names()
	p.web, _ = t.services[0].software.(*balanced)
	return nil
}

func (*spans) lines(addresses) string { return "" }

func (*spans) service(s *service) string {
	return fmt.Sprintf("    slo: {latency: %v, fraction: %v}\n    match:\n      spans: {service.name: %s}\n", s.SLO.Latency, s.SLO.Fraction, s.Name)
}

func (p *spans) begin(ctx context.Context, a addresses) (err error) {
	first := ""
	if p.web != nil {
		first = hostName()
	}
	for i, name := range p.names {
		on := first
		if i == 2 && p.web != nil {
			on = secondHost
		}
		if p.tracers[i], err = p.tracer(ctx, a, name, on); err != nil {
			return err
		}
	}
	if p.web != nil {
		p.second, err = p.tracer(ctx, a, p.names[0], secondHost)
	}
	return err
}

// tracer sends the spans of a service on a host; "": it is on the only one.
func (p *spans) tracer(ctx context.Context, a addresses, name, host string) (trace.Tracer, error) {
	about := []attribute.KeyValue{attribute.String("service.name", name)}
	if host != "" {
		about = append(about, attribute.String("host.name", host))
	}
	return p.Add(ctx, a.GRPC, about)
}

func (p *spans) observe(i int, from time.Time, took time.Duration, failed bool) {
	tracer := p.tracers[i]
	if i == 0 && p.web != nil && p.web.instance(from) == 1 {
		tracer = p.second
	}
	_, s := tracer.Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if failed {
		s.SetStatus(codes.Error, "no answer in time")
	}
	s.End(trace.WithTimestamp(from.Add(took)))
}

// gateSpans are those that gates send: the benchmark sends none.
type gateSpans struct{ spans }

func (*gateSpans) begin(context.Context, addresses) error      { return nil }
func (*gateSpans) observe(int, time.Time, time.Duration, bool) {}

func (p *spans) flush() { p.Close() }

func (*spans) close() {}
