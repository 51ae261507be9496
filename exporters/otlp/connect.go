package otlp

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"

	"github.com/trimtab/trimtab"
)

// connect sets up the SDK for the signals that are wanted. No connection is
// waited for.
func (e *Exporter) connect(ctx context.Context, c *Config) error {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "trimtab"), attribute.String("service.version", c.Version)),
		resource.WithFromEnv(), resource.WithAttributes(attribute.String(trimtab.OwnAttribute, "true")))
	if about == nil {
		return fmt.Errorf("export OTLP: describe this process: %w", err)
	}
	complainer := &complainer{logger: c.Logger}
	for _, s := range []signal{traces, metrics} {
		if !s.wanted() {
			continue
		}
		protocol, err := s.protocol(c)
		if err != nil {
			return err
		}
		host, port := s.address(c, protocol)
		if err := refuseLoop(ctx, host, port, c.Own); err != nil {
			return err
		}
		if s == traces {
			err = e.openTraces(ctx, c, protocol, about, complainer)
		} else {
			err = e.openMetrics(ctx, c, protocol, about, complainer)
		}
		if err != nil {
			return fmt.Errorf("export OTLP %s: %w", s, err)
		}
	}
	return nil
}

func (e *Exporter) openTraces(ctx context.Context, c *Config, protocol string, about *resource.Resource, complain *complainer) error {
	next, err := spanExporter(ctx, c, protocol)
	if err != nil {
		return err
	}
	gate := &spanGate{next: next, metrics: c.Metrics, complainer: complain, budget: int64(queueSize())}
	batch := []sdktrace.BatchSpanProcessorOption{sdktrace.WithMaxQueueSize(queueSize())}
	if c.Timeout > 0 {
		batch = append(batch, sdktrace.WithExportTimeout(c.Timeout))
	}
	gate.SpanProcessor = sdktrace.NewBatchSpanProcessor(batchExporter{gate}, batch...)
	e.gate = gate
	e.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(gate), sdktrace.WithResource(about), sdktrace.WithIDGenerator(e.ids))
	e.tracer = e.traces.Tracer(scope)
	return nil
}

func (e *Exporter) openMetrics(ctx context.Context, c *Config, protocol string, about *resource.Resource, complain *complainer) error {
	next, err := metricExporter(ctx, c, protocol)
	if err != nil {
		return err
	}
	var rhythm []sdkmetric.PeriodicReaderOption
	if c.Interval > 0 {
		rhythm = append(rhythm, sdkmetric.WithInterval(c.Interval))
	}
	if c.Timeout > 0 {
		rhythm = append(rhythm, sdkmetric.WithTimeout(c.Timeout))
	}
	reader := sdkmetric.NewPeriodicReader(&pushGate{Exporter: next, metrics: c.Metrics, complainer: complain}, rhythm...)
	// The bound on workloads is ours; the SDK's own default is lower.
	e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about), sdkmetric.WithCardinalityLimit(2*maxWorkloads))
	e.figures, err = newFigures(e.meters.Meter(scope), c.Utility)
	return err
}

// settings has the common settings of both signals and protocols; each SDK package has its own
// option types.
type settings[O any] struct {
	endpoint func(string) O
	headers  func(map[string]string) O
	timeout  func(time.Duration) O
	tls      func() O
}

func (s settings[O]) of(c *Config, path string) (out []O) {
	if c.Endpoint != FromEnvironment {
		endpoint := c.Endpoint
		if u, err := url.Parse(endpoint); err == nil && path != "" {
			endpoint = u.JoinPath(path).String()
		}
		out = append(out, s.endpoint(endpoint))
	}
	if len(c.Headers) > 0 {
		out = append(out, s.headers(c.Headers))
	}
	if c.Timeout > 0 {
		out = append(out, s.timeout(c.Timeout))
	}
	if c.TLS != nil {
		out = append(out, s.tls())
	}
	return out
}

func spanExporter(ctx context.Context, c *Config, protocol string) (sdktrace.SpanExporter, error) {
	if protocol == HTTP {
		s := settings[otlptracehttp.Option]{otlptracehttp.WithEndpointURL, otlptracehttp.WithHeaders, otlptracehttp.WithTimeout,
			func() otlptracehttp.Option { return otlptracehttp.WithTLSClientConfig(c.TLS) }}
		return otlptracehttp.New(ctx, s.of(c, "v1/traces")...)
	}
	s := settings[otlptracegrpc.Option]{otlptracegrpc.WithEndpointURL, otlptracegrpc.WithHeaders, otlptracegrpc.WithTimeout,
		func() otlptracegrpc.Option { return otlptracegrpc.WithTLSCredentials(credentials.NewTLS(c.TLS)) }}
	return otlptracegrpc.New(ctx, s.of(c, "")...)
}

func metricExporter(ctx context.Context, c *Config, protocol string) (sdkmetric.Exporter, error) {
	if protocol == HTTP {
		s := settings[otlpmetrichttp.Option]{otlpmetrichttp.WithEndpointURL, otlpmetrichttp.WithHeaders, otlpmetrichttp.WithTimeout,
			func() otlpmetrichttp.Option { return otlpmetrichttp.WithTLSClientConfig(c.TLS) }}
		return otlpmetrichttp.New(ctx, s.of(c, "v1/metrics")...)
	}
	s := settings[otlpmetricgrpc.Option]{otlpmetricgrpc.WithEndpointURL, otlpmetricgrpc.WithHeaders, otlpmetricgrpc.WithTimeout,
		func() otlpmetricgrpc.Option { return otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(c.TLS)) }}
	return otlpmetricgrpc.New(ctx, s.of(c, "")...)
}
