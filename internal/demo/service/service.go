package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/internal/listen"
	"github.com/trimtab/trimtab/internal/pause"
)

// LeafPath is answered without calling the next component, so that two
// components can call each other without end.
const LeafPath = "/leaf"

// statusGone is the code that is counted when the client hung up.
const statusGone = 499

// server is one running component.
type server struct {
	cfg        *Config
	queue      *queue
	tracer     trace.Tracer
	propagator propagation.TraceContext
	client     *http.Client
	meters     *meters

	mu   sync.Mutex // guards rand
	rand *rand.Rand
}

// Run serves until ctx ends, then answers what is in flight (at most 2 s),
// flushes the spans and returns nil. It returns an error that is
// trimtab.ErrInvalid for a bad configuration, and any other when the address
// or the exporter cannot be opened.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	listener, err := open(ctx, &cfg)
	if err != nil {
		return err
	}
	defer listener.Close()
	tracing, err := newTracing(ctx, &cfg)
	if err != nil {
		return err
	}
	// The context has ended by then; the flush has its own time.
	defer func() {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = tracing.Shutdown(flush) // the receiver may be gone first
	}()
	registry := prometheus.NewRegistry()
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, DisableKeepAlives: cfg.Inherit != ""}
	defer transport.CloseIdleConnections()
	s := &server{
		cfg: &cfg, queue: newQueue(cfg.Slots, cfg.Queue), tracer: tracing.Tracer("trimtab/demo"),
		client: &http.Client{Transport: transport}, meters: newMeters(registry, &cfg),
		// Workers of one command must not all draw the same.
		rand: rand.New(rand.NewPCG(cfg.Seed, workerIndex())),
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { s.handle(w, r, cfg.Calls) })
	mux.HandleFunc("GET "+LeafPath, func(w http.ResponseWriter, r *http.Request) { s.handle(w, r, "") })
	if cfg.Ready != nil {
		cfg.Ready(listener.Addr().String())
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	// A worker that takes one connection at a time must not keep an idle one.
	srv.SetKeepAlivesEnabled(cfg.Inherit == "")
	return serve(ctx, srv, listener)
}

// workerIndex is the number of this process among those that a supervisor starts from one
// command.
func workerIndex() uint64 {
	n, err := strconv.ParseUint(os.Getenv("TRIMTAB_WORKER"), 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// serve runs srv until ctx ends.
func serve(ctx context.Context, srv *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	// Shutdown drops a connection whose request it has not read: so accept no more, and answer
	// the open one first.
	_ = listener.Close() // closed again by Shutdown
	if l, ok := listener.(*listen.Limited); ok {
		l.Drain(drain)
	}
	if srv.Shutdown(drain) != nil {
		_ = srv.Close() // cuts requests that did not end in time
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// handle wraps one request in its span and its metrics.
func (s *server) handle(w http.ResponseWriter, r *http.Request, next string) {
	s.meters.inFlight.Inc()
	defer s.meters.inFlight.Dec()
	start := RequestStart(r.Header, time.Now())
	ctx := s.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.tracer.Start(ctx, "GET "+r.URL.Path, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	status, err := s.work(ctx, start, next)
	w.WriteHeader(status)
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
	s.meters.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	s.meters.duration.Observe(time.Since(start).Seconds())
}

// work does the work of one request and returns the status of its answer.
func (s *server) work(ctx context.Context, start time.Time, next string) (int, error) {
	cpu, wait := s.draw()
	if err := s.queue.enter(ctx, start.Add(s.cfg.Patience)); err != nil {
		if ctx.Err() != nil {
			return statusGone, err
		}
		return http.StatusServiceUnavailable, err
	}
	Burn(cpu)
	s.queue.leave()
	if wait > 0 && !pause.For(ctx, wait) || ctx.Err() != nil { // as if for a disk
		return statusGone, ctx.Err()
	}
	if next == "" {
		return http.StatusOK, nil
	}
	return s.call(ctx, next)
}

func (s *server) draw() (cpu, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.CPU.Sample(s.rand), s.cfg.Wait.Sample(s.rand)
}

// call asks the next component, within a client span.
func (s *server) call(ctx context.Context, url string) (int, error) {
	ctx, span := s.tracer.Start(ctx, "GET", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("call %s: %w", url, err)
	}
	s.propagator.Inject(ctx, propagation.HeaderCarrier(req.Header))
	SetRequestStart(req.Header, time.Now())
	resp, err := s.client.Do(req)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		return http.StatusBadGateway, fmt.Errorf("call %s: %w", url, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // read to the end, so that the connection is reused
	if resp.StatusCode != http.StatusOK {
		span.SetStatus(codes.Error, resp.Status)
		return resp.StatusCode, fmt.Errorf("call %s: %s", url, resp.Status)
	}
	return http.StatusOK, nil
}
