package otlp

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/trimtab/trimtab/internal/metric"
)

// complainer logs a repeated problem at most once a minute.
type complainer struct {
	logger *slog.Logger

	mu     sync.Mutex
	last   time.Time
	silent int // problems since the last that was logged
}

func (c *complainer) complain(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent++
	if !c.last.IsZero() && time.Since(c.last) < time.Minute {
		return
	}
	c.logger.Warn("OTLP export does not get through", "what", what, "times", c.silent, "err", err)
	c.last, c.silent = time.Now(), 0
}

// spanGate wraps the SDK's batching, which drops silently: it drops and counts the spans that
// would find the queue full.
type spanGate struct {
	sdktrace.SpanProcessor // the batching
	next                   sdktrace.SpanExporter
	metrics                *metric.Set
	complainer             *complainer
	budget                 int64
	inside                 atomic.Int64
	bytes                  atomic.Int64 // of what is inside
}

// OnEnd passes a span on if the queue has space.
func (g *spanGate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	weight := weighSpan(s)
	inside, bytes := g.inside.Add(1), g.bytes.Add(weight)
	if inside > g.budget || bytes > maxSpanBytes {
		g.inside.Add(-1)
		g.bytes.Add(-weight)
		g.metrics.Counter("trimtab_otlp_spans_total", "dropped").Inc()
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// abandon counts the spans that were not sent when the processor was shut down.
func (g *spanGate) abandon() {
	g.bytes.Store(0)
	if n := g.inside.Swap(0); n > 0 {
		g.metrics.Counter("trimtab_otlp_spans_total", "dropped").Add(float64(n))
	}
}

// batchExporter is the exporter to which the batch processor sends spans.
type batchExporter struct{ *spanGate }

// ExportSpans sends a batch and counts the result. It returns no error, since the SDK would only
// print it.
func (b batchExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := b.next.ExportSpans(ctx, spans)
	b.inside.Add(-int64(len(spans)))
	for _, s := range spans {
		b.bytes.Add(-weighSpan(s))
	}
	result := "sent"
	if err != nil {
		result = "failed"
		b.complainer.complain("spans", err)
	}
	b.metrics.Counter("trimtab_otlp_spans_total", result).Add(float64(len(spans)))
	return nil
}

// Shutdown ends the exporter beneath.
func (b batchExporter) Shutdown(ctx context.Context) error { return b.next.Shutdown(ctx) }

// pushGate counts the pushes of metrics.
type pushGate struct {
	sdkmetric.Exporter
	metrics    *metric.Set
	complainer *complainer
}

// Export sends metrics and counts the result.
func (g *pushGate) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	result := "sent"
	if err := g.Exporter.Export(ctx, m); err != nil {
		result = "failed"
		g.complainer.complain("metrics", err)
	}
	g.metrics.Counter("trimtab_otlp_pushes_total", result).Inc()
	return nil
}

// queueSize is the length of the queue of spans, by the variable of the
// specification.
func queueSize() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return min(n, 1<<16)
	}
	return 2048
}
