package gate

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is an OTLP collector that keeps the spans of each service.
type receiver struct {
	mu sync.Mutex
	of map[string][]*spans.Span
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var m collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range m.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				for _, ss := range rs.ScopeSpans {
					c.of[a.Value.GetStringValue()] = append(c.of[a.Value.GetStringValue()], ss.Spans...)
				}
			}
		}
	}
}

func TestEachRequestHasASpanBetweenTheClientsAndTheServices(t *testing.T) {
	c := &receiver{of: map[string][]*spans.Span{}}
	endpoint := httptest.NewServer(c)
	defer endpoint.Close()
	seen := make(chan string, 2)
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Traceparent") }))
	defer behind.Close()
	g, stop := runTo(t, behind.URL, func(cfg *Config) { cfg.OTLP = endpoint.URL + "/v1/traces" })
	const traceID, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	get(t, g.url("/"), "Traceparent", "00-"+traceID+"-"+parent+"-01")
	get(t, g.url("/"), "Traceparent", "00-"+traceID+"-"+parent+"-00") // which the client does not sample
	passed := <-seen
	stop() // sends what is left
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of["shop"]) != 1 {
		t.Fatalf("%d spans", len(c.of["shop"]))
	}
	s := c.of["shop"][0]
	attributes := map[string]string{}
	for _, a := range s.Attributes {
		attributes[a.Key] = strings.Trim(fmt.Sprint(a.Value.Value), "&{}")
	}
	if fmt.Sprintf("%x", s.TraceId) != traceID || fmt.Sprintf("%x", s.ParentSpanId) != parent || s.Kind != spans.Span_SPAN_KIND_SERVER ||
		attributes["http.response.status_code"] != "200" || attributes["trimtab.gate.outcome"] != "in_time" || attributes["trimtab.gate.shed"] != "false" {
		t.Errorf("%v", s)
	}
	if want := fmt.Sprintf("00-%s-%x-01", traceID, s.SpanId); passed != want {
		t.Errorf("the service saw %s, want %s", passed, want)
	}
}

func TestBeyondItsRateASpanSaysForHowManyItStands(t *testing.T) {
	s := &sampler{perSecond: 20}
	for total := uint64(0); total <= 8000; total += 80 { // 800 per second: one in 40
		s.observe(total, 100*time.Millisecond)
	}
	const n = 40000
	kept, state := 0, ""
	for i := range n {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[8:], uint64(i)*(1<<56/n)) // evenly over the low 56 bits
		if r := s.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}); r.Decision == sdktrace.RecordAndSample {
			kept++
			state = r.Tracestate.Get("ot")
		}
	}
	digits := strings.TrimPrefix(state, "th:")
	stands := 1 / (1 - float64(fraction(digits))/(1<<56))
	if kept == 0 || math.Abs(float64(kept)*stands/n-1) > 0.1 || stands < 38 || stands > 42 {
		t.Errorf("%d of %d kept, each stands for %.1f (%s)", kept, n, stands, state)
	}
}

func TestAThresholdThatCameStaysIfItIsHigher(t *testing.T) {
	came, err := trace.ParseTraceState("ot=th:8;rv:ffffffffffffff,vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, TraceState: came, Remote: true})
	s := &sampler{perSecond: 1}
	p := sdktrace.SamplingParameters{ParentContext: trace.ContextWithRemoteSpanContext(context.Background(), parent), TraceID: trace.TraceID{1}}
	if r := s.ShouldSample(p); r.Decision != sdktrace.RecordAndSample || r.Tracestate.String() != came.String() {
		t.Errorf("%v %s", r.Decision, r.Tracestate)
	}
	s.rejected.Store(0xc << 52)
	if r := s.ShouldSample(p); r.Tracestate.Get("ot") != "rv:ffffffffffffff;th:c" || r.Tracestate.Get("vendor") != "1" {
		t.Error(r.Tracestate)
	}
}
