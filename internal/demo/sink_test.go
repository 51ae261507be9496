package demo

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/trimtab/trimtab/quantile"
)

// sink receives spans and keeps what their workloads' entry spans say.
type sink struct {
	collectorpb.UnimplementedTraceServiceServer

	mu       sync.Mutex
	spans    int
	entries  map[string]*entries // by namespace
	services map[string]int      // spans by service.name
}

// entries are the root server spans of one workload.
type entries struct {
	latency quantile.Histogram // of all
	good    quantile.Histogram // of those without error
}

// within is the share that ended without error within d.
func (e *entries) within(d time.Duration) float64 {
	below, _ := e.good.FractionBelow(d.Seconds())
	return below * e.good.Count() / e.latency.Count()
}

// openSink listens at addr until the test ends.
func openSink(t *testing.T, addr string) (*sink, string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{entries: map[string]*entries{}, services: map[string]int{}}
	srv := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(srv, s)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	return s, l.Addr().String()
}

func (s *sink) Export(_ context.Context, req *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range req.ResourceSpans {
		attrs := map[string]string{}
		for _, a := range rs.Resource.GetAttributes() {
			attrs[a.Key] = a.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			for _, span := range ss.Spans {
				s.spans++
				s.services[attrs["service.name"]]++
				if span.Kind == tracepb.Span_SPAN_KIND_SERVER && len(span.ParentSpanId) == 0 {
					s.entry(attrs["service.namespace"], span)
				}
			}
		}
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (s *sink) entry(namespace string, span *tracepb.Span) {
	e := s.entries[namespace]
	if e == nil {
		e = new(entries)
		s.entries[namespace] = e
	}
	d := float64(span.EndTimeUnixNano-span.StartTimeUnixNano) / 1e9
	e.latency.Add(d, 1)
	if span.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		e.good.Add(d, 1)
	}
}

// read calls f while nothing is added.
func (s *sink) read(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
