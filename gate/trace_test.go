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

	"github.com/trimtab/trimtab/codes"
)

// receiver is an OTLP collector that keeps the spans of each service.
type receiver struct {
	mu sync.Mutex
	of map[string][]*spans.Span
	// refused has the spans of requests that were not passed on, by class.
	refused map[string][]*spans.Span
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
			if a.Key == codes.RefusedAttribute {
				for _, ss := range rs.ScopeSpans {
					c.refused[a.Value.GetStringValue()] = append(c.refused[a.Value.GetStringValue()], ss.Spans...)
				}
			}
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

func TestASpanOfARequestThatIsNotPassedOnSaysSoInItsResource(t *testing.T) {
	c := &receiver{of: map[string][]*spans.Span{}, refused: map[string][]*spans.Span{}}
	endpoint := httptest.NewServer(c)
	defer endpoint.Close()
	service := newBlocked()
	behind := httptest.NewServer(service)
	defer behind.Close()
	g, stop := runTo(t, behind.URL, func(cfg *Config) {
		cfg.OTLP, cfg.Class, cfg.Within = endpoint.URL+"/v1/traces", "x-priority=critical,normal,low", 300*time.Millisecond
	})
	control(t, g, http.MethodPut, `{"max":1,"lease_ms":60000}`)
	first := make(chan string, 1)
	go func() { _, body := get(t, g.url("/")); first <- body }()
	<-service.come
	leaves := send(t, g, "GET / HTTP/1.1\r\nHost: a\r\nX-Priority: critical\r\n\r\n")
	await(t, g, "waits", func(d Document) bool { return d.Queued == 1 })
	_ = leaves.Close()
	await(t, g, "left", func(d Document) bool { return d.Queued == 0 })
	if resp, _ := get(t, g.url("/"), "x-priority", "low"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatal(resp.Status)
	}
	close(service.go_)
	<-first
	stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for class, want := range map[string]int{"critical": 1, "normal": 0, "low": 1} {
		if got := c.refused[class]; len(got) != want || want == 1 && got[0].Status.Code != spans.Status_STATUS_CODE_ERROR {
			t.Errorf("%s: %v", class, got)
		}
	}
	if n := len(c.of["shop"]); n != 3 {
		t.Errorf("%d spans", n)
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
