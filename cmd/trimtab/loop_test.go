package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/site"
)

// loopConfig is two workloads that share one core, in a tree of cgroups.
func loopConfig(t testing.TB, root string) *config.Config {
	t.Helper()
	text := fmt.Sprintf(`
pool: {cpu: 1, unit: 0.01, step: 0.1}
objective: egalitarian
round: 1s
lease: 1m
guard: {max_fall: 0.5, max_lowered: 1, max_moved: 0.5, dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "127.0.0.1:0", http: "off"}
jaeger: {grpc: "off"}
workloads:
  - {name: hungry, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}}, mode: act}
  - {name: modest, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: modest, cpu: {min: 0.05, max: 0.9}}, mode: act}
`, root, t.TempDir())
	c, err := config.Parse("loop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// quotas is where the test's workloads have their limits.
type quotas struct {
	root string
	read func(name string) float64
}

// both reads both limits as they were at one time: twice the same, since a
// plan may be between the two files.
func both(read func(name string) float64) (hungry, modest float64) {
	for {
		hungry, modest = read("hungry"), read("modest")
		if read("hungry") == hungry {
			return hungry, modest
		}
	}
}

// fixtureQuotas is a tree of files in the form of version 2, for machines
// where no hierarchy is writable.
func fixtureQuotas(t testing.TB) quotas {
	t.Helper()
	return groupsWith(t, 0.5, "hungry", "modest")
}

// groupsWith is a tree of files in the form of version 2, in which each of the
// named groups may use so many cores.
func groupsWith(t testing.TB, cores float64, names ...string) quotas {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"cpu.max": fmt.Sprintf("%.0f 100000\n", cores*100000), "cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return quotas{root, func(name string) float64 {
		b, err := os.ReadFile(filepath.Join(root, name, "cpu.max"))
		if err != nil {
			t.Error(err)
		}
		v, err := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
		if err != nil {
			t.Error(err)
		}
		return v / 100000
	}}
}

// ownGroup is the name of a control group that no other test has: tests run side by side.
func ownGroup(prefix string) string {
	return fmt.Sprintf("%s-%d-%s", prefix, os.Getpid(), rand.Text()[:8])
}

// kernelQuotas are real groups of version 1.
func kernelQuotas(t testing.TB) quotas {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		t.Skipf("no cgroup hierarchy with the cpu controller: %v", err)
	}
	if err := cgroup.Writable(root); err != nil {
		t.Skipf("cgroup hierarchy is not writable: %v", err)
	}
	top := ownGroup("trimtab-test")
	paths := map[string]string{}
	base, err := cgroup.Create(root, top)
	if err != nil {
		t.Fatal(err)
	}
	groups := []*cgroup.Group{base}
	for _, name := range []string{"hungry", "modest"} {
		g, err := cgroup.Create(filepath.Join(root, top), name)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
		paths[name] = filepath.Join(root, top, g.Path(), "cpu.cfs_quota_us")
		if err := os.WriteFile(paths[name], []byte("50000"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := len(groups) - 1; i >= 0; i-- {
			if err := groups[i].Remove(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return quotas{filepath.Join(root, top), func(name string) float64 {
		b, err := os.ReadFile(paths[name])
		if err != nil {
			t.Error(err)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			t.Error(err)
		}
		return v / 100000
	}}
}

// sender plays a service: requests whose latency depends on the quota.
type sender struct {
	client coltrace.TraceServiceClient
	q      quotas
	// need is the quota at which the workload meets its SLO.
	need map[string]float64
	// also, when not nil, is how much of its performance another resource
	// allows a workload.
	also func(name string) float64
}

func newSender(t testing.TB, address string, q quotas) *sender {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &sender{client: coltrace.NewTraceServiceClient(conn), q: q, need: map[string]float64{"hungry": 0.65, "modest": 0.2}}
}

// send sends the requests of a tenth of a second. A receiver that is busy says
// so, and the next ones come anyway.
func (s *sender) send(ctx context.Context) error {
	req := &coltrace.ExportTraceServiceRequest{}
	for name, need := range s.need {
		fast := min(1, s.q.read(name)/need)
		if s.also != nil {
			fast = min(fast, s.also(name))
		}
		spans := &trace.ScopeSpans{}
		for i := range 20 {
			duration := 20 * time.Millisecond
			if float64(i) >= 20*fast {
				duration = 300 * time.Millisecond
			}
			end := time.Now()
			id := make([]byte, 24)
			_, _ = rand.Read(id)
			spans.Spans = append(spans.Spans, &trace.Span{
				TraceId: id[:16], SpanId: id[16:], Name: "GET /", Kind: trace.Span_SPAN_KIND_SERVER,
				StartTimeUnixNano: uint64(end.Add(-duration).UnixNano()), EndTimeUnixNano: uint64(end.UnixNano()),
			})
		}
		req.ResourceSpans = append(req.ResourceSpans, &trace.ResourceSpans{
			Resource: &resource.Resource{Attributes: []*common.KeyValue{{Key: "service.name",
				Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: name}}}}},
			ScopeSpans: []*trace.ScopeSpans{spans},
		})
	}
	if _, err := s.client.Export(ctx, req, grpc.WaitForReady(true)); status.Code(err) != codes.Unavailable {
		return err
	}
	return nil
}

func TestTheLoopRunsFromSpansToAChangedCPULimit(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) quotas{"files in the form of v2": fixtureQuotas, "real v1": kernelQuotas} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runLoop(t, open(t))
		})
	}
}

func runLoop(t *testing.T, q quotas) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg := loopConfig(t, q.root)
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = s.Close()
		}
	}()
	load := newSender(t, s.OTLPAddress(), q)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	// It needs 0.65; how near it comes depends on what is risked on modest.
	for q.read("hungry") < 0.55 {
		select {
		case err := <-s.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("hungry still has %v, modest %v: %s", q.read("hungry"), q.read("modest"), statusOf(t, s))
		case <-tick.C:
		}
		if err := load.send(ctx); err != nil {
			t.Fatal(err)
		}
		if h, m := both(q.read); h+m > 1+1e-6 {
			t.Fatalf("the sum is %v + %v: over the capacity of 1", h, m)
		}
	}
	var e view.Explanation
	// What came of the newest decision arrives a little later.
	for e.Result == nil && ctx.Err() == nil {
		getJSON(t, s, "/api/v1/workloads/hungry?history=3", &e)
	}
	if e.Decision == "" || len(e.Inputs) == 0 || e.Result == nil || len(e.Bounds) != 2 {
		t.Errorf("explanation is thin: %+v", e)
	}
	closed = true
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if h, m := q.read("hungry"), q.read("modest"); h != 0.5 || m != 0.5 {
		t.Errorf("after the end hungry has %v and modest %v, want the baselines 0.5", h, m)
	}
}

func statusOf(t *testing.T, s *site.Site) string {
	var v any
	getJSON(t, s, "/api/v1/status", &v)
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

func getJSON(t *testing.T, s *site.Site, path string, into any) {
	t.Helper()
	resp, err := http.Get("http://" + s.WebAddress() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
