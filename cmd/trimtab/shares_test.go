package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"os"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/site"
)

// instancesConfig is one workload whose instances share a core.
func instancesConfig(t *testing.T, root string) *config.Config {
	t.Helper()
	c, err := config.Parse("instances.yaml", fmt.Appendf(nil, `
pool: {cpu: 1, unit: 0.01, step: 0.1}
objective: egalitarian
round: 1s
lease: 1m
guard: {max_fall: 0.5, max_lowered: 1, max_moved: 0.5, dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 2}
actuator: {cgroup_root: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "127.0.0.1:0", http: "off"}
jaeger: {grpc: "off"}
workloads:
  - {name: shop, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: shop@*, cpu: {min: 0.05, max: 0.9}}, mode: act}
`, root, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// uneven is the requests of a tenth of a second that a host's instances serve. Each
// is as fast as its limit allows: with 0.75 cores one serves 15 of them in time.
func uneven(host string, q quotas, requests map[string]int) *coltrace.ExportTraceServiceRequest {
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	req := &coltrace.ExportTraceServiceRequest{}
	for name, n := range requests {
		spans := &trace.ScopeSpans{}
		fast := float64(n) * min(1, q.read("shop@"+name)/float64(n)/0.05)
		for i := range n {
			end, duration := time.Now(), 20*time.Millisecond
			if float64(i) >= fast {
				duration = 300 * time.Millisecond
			}
			id := make([]byte, 24)
			_, _ = rand.Read(id)
			spans.Spans = append(spans.Spans, &trace.Span{TraceId: id[:16], SpanId: id[16:], Kind: trace.Span_SPAN_KIND_SERVER,
				StartTimeUnixNano: uint64(end.Add(-duration).UnixNano()), EndTimeUnixNano: uint64(end.UnixNano())})
		}
		req.ResourceSpans = append(req.ResourceSpans, &trace.ResourceSpans{ScopeSpans: []*trace.ScopeSpans{spans},
			Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "shop"), text("host.name", host), text("service.instance.id", name)}}})
	}
	return req
}

func TestSpansThatNameTheirInstanceGiveItItsPartOfTheCores(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	q := groupsWith(t, 0.45, "shop@a", "shop@b")
	s, err := site.Open(ctx, instancesConfig(t, q.root), site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	client := newSender(t, s.OTLPAddress(), q).client
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.Export(ctx, uneven(host, q, map[string]int{"a": 15, "b": 5}))
		if err != nil && status.Code(err) != codes.Unavailable && ctx.Err() == nil {
			t.Fatal(err)
		}
		var e view.Explanation
		getJSON(t, s, "/api/v1/workloads/shop", &e)
		shares := map[string]float64{}
		for _, k := range e.Knobs {
			if k.Share != nil {
				shares[k.Instance] = *k.Share
			}
		}
		told := math.Abs(shares["a"]-0.75) < 0.02 && math.Abs(shares["b"]-0.25) < 0.02
		if a, b := q.read("shop@a"), q.read("shop@b"); told && a > 0.6 && a > 1.7*b {
			return
		}
		select {
		case err := <-s.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("shares %v, limits %v and %v: %s", shares, q.read("shop@a"), q.read("shop@b"), statusOf(t, s))
		case <-tick.C:
		}
	}
}
