package otlp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/trimtab/trimtab/exporters/otlp"

// queued is how many values may wait for the exporter.
const queued = 4096

// waiting is a value in the queue and its weight.
type waiting struct {
	value  trimtab.Value
	weight int64
}

// Exporter pushes decisions. Its methods are safe for concurrent use.
type Exporter struct {
	ids      ids
	metrics  *metric.Set
	traces   *sdktrace.TracerProvider // nil: not wanted
	meters   *sdkmetric.MeterProvider // nil: not wanted
	tracer   trace.Tracer
	gate     *spanGate
	figures  *figures
	assemble *assembler

	queue chan waiting
	// waits is the size of the queued values, in bytes.
	waits atomic.Int64
	quit  chan struct{}
	once  sync.Once
	done  chan struct{}
}

// Open starts an exporter, also while the endpoint is down. The error is trimtab.ErrInvalid for
// settings, and trimtab.ErrRefused for an endpoint that is one of c.Own.
func Open(ctx context.Context, c Config) (*Exporter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{metrics: c.Metrics, assemble: newAssembler(),
		queue: make(chan waiting, queued), quit: make(chan struct{}), done: make(chan struct{})}
	if _, err := rand.Read(e.ids.salt[:]); err != nil {
		return nil, fmt.Errorf("export OTLP: %w", err)
	}
	if err := e.connect(ctx, &c); err != nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return nil, errors.Join(err, e.shutdown(ctx))
	}
	go e.run()
	return e, nil
}

// Follow subscribes to the values that it exports; stop ends it.
func (e *Exporter) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, false, e.Observe,
		trimtab.KindEstimate, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome)
}

// Observe queues one value and never blocks: a value that finds the queue full is dropped and
// counted.
func (e *Exporter) Observe(v trimtab.Value) {
	w := waiting{v, weigh(v)}
	if e.waits.Add(w.weight) <= maxQueuedBytes {
		select {
		case e.queue <- w:
			return
		default:
		}
	}
	e.waits.Add(-w.weight)
	e.metrics.Counter("trimtab_exporter_dropped_total", "otlp").Inc()
}

// TraceID returns the id of the trace that a decision gets, in 32 hexadecimal
// digits; "" when no traces are exported.
func (e *Exporter) TraceID(pool string, epoch, sequence uint64) string {
	if e.traces == nil {
		return ""
	}
	return e.ids.trace(key{pool, epoch, sequence}).String()
}

// run is the one goroutine that assembles decisions.
func (e *Exporter) run() {
	defer close(e.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case w := <-e.queue:
			e.accept(time.Now(), w)
		case now := <-tick.C:
			e.expire(now)
		case <-e.quit:
			for len(e.queue) > 0 {
				e.accept(time.Now(), <-e.queue)
			}
			e.expire(time.Now().Add(Wait))
			return
		}
	}
}

func (e *Exporter) accept(now time.Time, w waiting) {
	e.waits.Add(-w.weight)
	if e.figures != nil {
		e.figures.observe(now, w.value)
	}
	e.write(e.assemble.observe(now, w.value))
}

func (e *Exporter) expire(now time.Time) {
	for _, d := range e.assemble.expire(now) {
		e.write(d)
	}
	if e.figures != nil {
		e.figures.expire(now)
	}
}

// write writes the trace of d, if any, and counts its duration.
func (e *Exporter) write(d *decision) {
	if d == nil {
		return
	}
	ctx := context.Background()
	if e.traces != nil {
		ctx = d.write(e.tracer)
	}
	if e.figures != nil && len(d.outcomes) > 0 {
		e.figures.decided(ctx, d.pool, d.ended().Sub(d.began()))
	}
}

// Close writes open decisions and waits, until ctx ends, for the endpoint. Call Follow's stop
// first. What an endpoint that is down does not accept is counted, and no error.
func (e *Exporter) Close(ctx context.Context) error {
	e.once.Do(func() { close(e.quit) })
	<-e.done
	return e.shutdown(ctx)
}

func (e *Exporter) shutdown(ctx context.Context) error {
	var errs []error
	if e.meters != nil {
		errs = append(errs, e.meters.Shutdown(ctx))
	}
	if e.traces != nil {
		errs = append(errs, e.traces.Shutdown(ctx))
		e.gate.abandon()
	}
	err := errors.Join(errs...)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("close OTLP export: %w", err)
}
