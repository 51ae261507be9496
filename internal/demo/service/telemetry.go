package service

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// StartHeader carries when the router in front of a service took a request:
// "t=" and Unix seconds with a fraction, as routers and load balancers send it.
const StartHeader = "X-Request-Start"

// maxQueued is how long ago the start of a request in a header may be to be accepted.
const maxQueued = 30 * time.Second

// SetRequestStart marks a request as received at t.
func SetRequestStart(h http.Header, t time.Time) {
	us := t.UnixMicro()
	h.Set(StartHeader, fmt.Sprintf("t=%d.%06d", us/1e6, us%1e6))
}

// RequestStart reads the stamp. Without one, or with one that is not a number,
// in the future or more than 30 s old, it is now: a stamp never makes a
// request look faster than the service saw it.
func RequestStart(h http.Header, now time.Time) time.Time {
	v, err := strconv.ParseFloat(strings.TrimPrefix(h.Get(StartHeader), "t="), 64)
	if err != nil || !(v > 0 && v < 1e11) {
		return now
	}
	ago := now.Sub(time.UnixMicro(int64(v * 1e6)))
	if ago < 0 || ago > maxQueued {
		return now
	}
	// Subtracting keeps the monotonic clock reading.
	return now.Add(-ago)
}

// newTracing builds a provider that exports to cfg.OTLP, or to where the
// OTEL_ variables say. The sampler is theirs too, every request by default, and how
// long spans are collected, 5 s by default.
func newTracing(ctx context.Context, cfg *Config) (*sdktrace.TracerProvider, error) {
	var opts []otlptracegrpc.Option
	if cfg.OTLP != "" {
		opts = append(opts, otlptracegrpc.WithEndpoint(cfg.OTLP), otlptracegrpc.WithInsecure(),
			// The receiver starts long after this: by default a batch would be tried again for a
			// minute, and the connection less and less often.
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 2 * time.Second, MaxElapsedTime: 5 * time.Second}),
			otlptracegrpc.WithDialOption(grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}, MinConnectTimeout: 2 * time.Second})))
	}
	exporter, err := otlptracegrpc.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open OTLP exporter to %q: %w", cfg.OTLP, err)
	}
	res, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", cfg.Name),
		attribute.String("service.namespace", cfg.Workload),
		attribute.String("service.instance.id", strconv.Itoa(os.Getpid()))))
	if err != nil {
		return nil, fmt.Errorf("describe service %s: %w", cfg.Name, err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res)), nil
}

// meters are the service's own metrics, under the names that dashboards and
// queries commonly expect.
type meters struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	inFlight prometheus.Gauge
}

func newMeters(reg prometheus.Registerer, cfg *Config) *meters {
	labels := prometheus.Labels{"service": cfg.Name, "workload": cfg.Workload}
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total",
			Help: "Requests answered, by status code.", ConstLabels: labels}, []string{"code"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "http_request_duration_seconds",
			Help: "From the request's start, as the router in front stamped it, to its answer.", ConstLabels: labels,
			Buckets: []float64{.005, .01, .02, .03, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 2}}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "http_requests_in_flight",
			Help: "Requests that wait or are being served.", ConstLabels: labels}),
	}
	reg.MustRegister(m.requests, m.duration, m.inFlight)
	return m
}
