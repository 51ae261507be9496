package gate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/hint"
)

// tracer writes one server span for each request, as the service would if it had instrumentation.
type tracer struct {
	providers []*sdktrace.TracerProvider
	// passed traces the requests that the gate passes on, unserved the others, by class: the resource
	// of their spans says so ([codes.RefusedAttribute]), so that trimtab counts them as load, but not
	// as work of the service.
	passed            trace.Tracer
	unserved          []trace.Tracer
	answered, refused *sampler
	carrier           propagation.TraceContext
}

// span is the span of one request.
type span struct {
	ctx     context.Context
	span    trace.Span
	carrier propagation.TraceContext
}

// newTracer creates an exporter for an OTLP endpoint: OTLP over HTTP if the port is 4318 or the URL
// has a path, else over gRPC. It does not wait for the connection.
func newTracer(ctx context.Context, c *parsed) (*tracer, error) {
	const advice = "write the address of a collector, such as --otlp http://127.0.0.1:4317 (gRPC) or http://127.0.0.1:4318 (HTTP)"
	u, err := url.Parse(c.OTLP)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, hint.Add(fmt.Errorf("read --otlp %q: not an address", c.OTLP), advice)
	}
	var exporter sdktrace.SpanExporter
	if strings.Trim(u.Path, "/") != "" || u.Port() == "4318" {
		if strings.Trim(u.Path, "/") == "" {
			u.Path = "/v1/traces"
		}
		exporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	} else {
		exporter, err = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(u.String()))
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("export spans to %s: %w", u.Redacted(), err), advice)
	}
	about := resource.NewSchemaless(attribute.String("service.name", c.Workload), attribute.String("telemetry.distro.name", "trimtab"), attribute.String("telemetry.distro.version", c.Version))
	t := &tracer{answered: &sampler{perSecond: answeredSpans}, refused: &sampler{perSecond: refusedSpans}}
	batch := sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(8192))
	tracer := func(s *sampler, of *resource.Resource) trace.Tracer {
		p := sdktrace.NewTracerProvider(batch, sdktrace.WithResource(of), sdktrace.WithSampler(s))
		t.providers = append(t.providers, p)
		return p.Tracer("github.com/trimtab/trimtab/gate")
	}
	t.passed = tracer(t.answered, about)
	for _, class := range c.classes.names {
		of := resource.NewSchemaless(append(about.Attributes(), attribute.String(codes.RefusedAttribute, class))...)
		t.unserved = append(t.unserved, tracer(t.refused, of))
	}
	return t, nil
}

// start begins the span of an admitted request, as a child of the span that the client sent.
func (t *tracer) start(r *http.Request, v *visit, class string) *span {
	return t.begin(t.passed, r, v, class)
}

func (t *tracer) begin(by trace.Tracer, r *http.Request, v *visit, class string) *span {
	ctx := t.carrier.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	method, name := methodOf(r)
	ctx, s := by.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(v.arrived), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("trimtab.gate.class", class)))
	return &span{ctx: ctx, span: s, carrier: t.carrier}
}

// methodOf returns the method of a request and the name of its span. All unknown methods have one
// name, so that a client cannot create any number of operations.
//
// Source: OpenTelemetry semantic conventions, HTTP spans, "Name" and http.request.method.
func methodOf(r *http.Request) (method, name string) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method, r.Method
	}
	return "_OTHER", "HTTP"
}

// inject makes the span the parent of the service's spans.
func (s *span) inject(h http.Header) { s.carrier.Inject(s.ctx, propagation.HeaderCarrier(h)) }

// end ends the span of a finished request. A request that was never passed on gets its span here, with
// an error, also if it was not refused but its client left while it waited.
func (t *tracer) end(r *http.Request, v *visit, class string, o outcome) {
	s, unserved := v.span, v.span == nil
	if unserved {
		s = t.begin(t.unserved[v.Class], r, v, class)
	} else {
		s.span.SetAttributes(attribute.Float64("trimtab.gate.wait_s", v.Wait().Seconds()))
	}
	s.span.SetAttributes(attribute.String("trimtab.gate.outcome", o.String()), attribute.Bool("trimtab.gate.shed", o == refused))
	if v.response != nil {
		s.span.SetAttributes(attribute.Int("http.response.status_code", v.response.StatusCode))
	}
	if o == refused {
		s.span.SetAttributes(attribute.Int("http.response.status_code", http.StatusServiceUnavailable))
	}
	if unserved || o == failed {
		s.span.SetStatus(otelcodes.Error, o.String())
	}
	s.span.End()
}

// close sends the spans that are still buffered.
func (t *tracer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, p := range t.providers {
		_ = p.Shutdown(ctx)
	}
}
