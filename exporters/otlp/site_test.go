package otlp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// endpoint is a site's own OTLP endpoint, over gRPC and HTTP.
type endpoint struct {
	coltrace.UnimplementedTraceServiceServer
	grpc, http string

	mu      sync.Mutex
	spans   []*trace1.Span
	metrics map[string]*metrics1.Metric
	service string
	own     bool
	headers map[string]bool
}

type metricsService struct {
	colmetrics.UnimplementedMetricsServiceServer
	*endpoint
}

// openEndpoint starts real servers, which end with the test.
func openEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{metrics: map[string]*metrics1.Metric{}, headers: map[string]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	coltrace.RegisterTraceServiceServer(server, e)
	colmetrics.RegisterMetricsServiceServer(server, metricsService{endpoint: e})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	web := httptest.NewServer(e)
	t.Cleanup(func() { server.Stop(); <-done; web.Close() })
	e.grpc, e.http = "http://"+l.Addr().String(), web.URL
	return e
}

func (e *endpoint) Export(ctx context.Context, r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	e.takeSpans(r, md.Get("x-tenant"))
	return &coltrace.ExportTraceServiceResponse{}, nil
}

func (e *endpoint) takeSpans(r *coltrace.ExportTraceServiceRequest, tenant []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range tenant {
		e.headers[h] = true
	}
	for _, rs := range r.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			switch a.Key {
			case "service.name":
				e.service = a.Value.GetStringValue()
			case trimtab.OwnAttribute:
				e.own = true
			}
		}
		for _, s := range rs.ScopeSpans {
			e.spans = append(e.spans, s.Spans...)
		}
	}
}

func (m metricsService) Export(_ context.Context, r *colmetrics.ExportMetricsServiceRequest) (*colmetrics.ExportMetricsServiceResponse, error) {
	m.takeMetrics(r)
	return &colmetrics.ExportMetricsServiceResponse{}, nil
}

func (e *endpoint) takeMetrics(r *colmetrics.ExportMetricsServiceRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.metrics)
	for _, rm := range r.ResourceMetrics {
		for _, s := range rm.ScopeMetrics {
			for _, m := range s.Metrics {
				e.metrics[m.Name] = m
			}
		}
	}
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	switch r.URL.Path {
	case "/v1/traces":
		var req coltrace.ExportTraceServiceRequest
		if proto.Unmarshal(body, &req) == nil {
			e.takeSpans(&req, r.Header.Values("X-Tenant"))
		}
	case "/v1/metrics":
		var req colmetrics.ExportMetricsServiceRequest
		if proto.Unmarshal(body, &req) == nil {
			e.takeMetrics(&req)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func ptr(v float64) *float64 { return &v }

// decide returns the values of one decision: what is taken from calm in step
// 1 goes to hungry in step 2.
func decide() []trimtab.Value {
	estimate := func(name string, p, age float64, x ...trimtab.Exemplar) *trimtab.Estimate {
		return &trimtab.Estimate{
			Workload: name, Time: after(1), Performance: ptr(p), Model: "bintree/1", Reports: 9, Exemplars: x,
			Load:   &trimtab.LoadForecast{Now: 40, Mean: 41, Upper: 44, Level: .9, Model: "arma/1"},
			Inputs: []trimtab.Input{{Name: "load", Value: 40, Age: trimtab.Seconds(age), Source: "spans"}, {Name: "usage", Missing: "none yet"}},
		}
	}
	action := func(name string, from, to float64) trimtab.Action {
		return trimtab.Action{KnobID: trimtab.KnobID{Pool: "shop", Host: "h", Workload: name, Resource: "cpu"}, Expect: trimtab.Units(from), Set: trimtab.Units(to), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: name + " moved", Binding: trimtab.Binding{Kind: "step"}, Target: ptr(to * 2), Demand: ptr(to)}}
	}
	plan := func(step int, at float64, actions ...trimtab.Action) *trimtab.Plan {
		return &trimtab.Plan{Pool: "shop", Epoch: 3, Sequence: 17, Step: step, Last: step == 2, Time: after(at), Objective: "njc",
			Capacity: 8, Lease: 90, Cause: trimtab.Cause{Kind: codes.CauseTick}, Actions: actions}
	}
	outcome := func(step int, at float64, r trimtab.Result) *trimtab.Outcome {
		return &trimtab.Outcome{Pool: "shop", Host: "h", Epoch: 3, Sequence: 17, Step: step, Time: after(at), Took: .01, Results: []trimtab.Result{r}}
	}
	result := func(name string, from, to float64) trimtab.Result {
		return trimtab.Result{KnobID: trimtab.KnobID{Pool: "shop", Host: "h", Workload: name, Resource: "cpu"}, Status: trimtab.Written, Before: trimtab.Units(from), Asked: trimtab.Units(to), Found: trimtab.Units(to), Known: true}
	}
	return []trimtab.Value{
		estimate("calm", 1, .4),
		estimate("hungry", .5, .8, trimtab.Exemplar{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331", Latency: .3}),
		plan(1, 1.5, action("calm", 4, 3)),
		outcome(1, 1.6, result("calm", 4, 3)),
		plan(2, 1.7, action("hungry", 2, 3)),
		outcome(2, 1.8, result("hungry", 2, 3)),
	}
}
