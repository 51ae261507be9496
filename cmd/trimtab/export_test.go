package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/planner"
)

// collectorOfSite is a site's own OTLP endpoint.
type collectorOfSite struct {
	coltrace.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*trace.Span
}

func (c *collectorOfSite) Export(_ context.Context, r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.ResourceSpans {
		for _, s := range rs.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	return &coltrace.ExportTraceServiceResponse{}, nil
}

func openCollector(t *testing.T) (c *collectorOfSite, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &collectorOfSite{}
	server := grpc.NewServer()
	coltrace.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return c, l.Addr().String()
}

// runLoaded runs cfg under load until hungry got more.
func runLoaded(t *testing.T, cfg *config.Config, q quotas, until func(*site.Site) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	load := newSender(t, s.OTLPAddress(), q)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !until(s) {
		select {
		case err := <-s.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("too slow: %s", statusOf(t, s))
		case <-tick.C:
		}
		if err := load.send(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// exemplarIn finds the trace that /metrics points to, in the form that
// Prometheus asks for.
func exemplarIn(t *testing.T, s *site.Site) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.WebAddress()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(body), "# EOF\n") {
		t.Fatalf("no OpenMetrics, but %s", resp.Header.Get("Content-Type"))
	}
	m := regexp.MustCompile(`trimtab_action_duration_seconds_bucket.* # {trace_id="([0-9a-f]{32})"}`).FindSubmatch(body)
	if m == nil {
		return ""
	}
	return string(m[1])
}

func TestALoadedSiteIsTracedAndItsRecordingGivesTheSameBytes(t *testing.T) {
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	collector, address := openCollector(t)
	cfg.Exporters.OTLP.Endpoint = "http://" + address
	cfg.Exporters.Record.Path = t.TempDir()
	// Small segments, so that the recording goes over several.
	cfg.Exporters.Record.SegmentBytes = 64 << 10
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	var pointed string
	looks := 0
	runLoaded(t, cfg, q, func(s *site.Site) bool {
		if pointed == "" {
			pointed = exemplarIn(t, s)
		}
		if looks++; looks%600 == 0 {
			t.Logf("after a minute more: trace %q, hungry has %v, %d segments, %d rounds", pointed, q.read("hungry"), len(segments(t, cfg)), s.View().Rounds())
		}
		// Rounds, not the number of the last plan with actions: two may be enough for all moves.
		return pointed != "" && q.read("hungry") >= 0.55 && len(segments(t, cfg)) >= 3 && s.View().Rounds() >= 4
	})
	t.Run("traces", func(t *testing.T) { checkSpans(t, collector.spans, pointed) })
	for i := range 3 { // R23: the same each time
		t.Run(fmt.Sprint("recording ", i+1), func(t *testing.T) { checkReplay(t, cfg) })
	}
	t.Run("another policy", func(t *testing.T) { checkAnotherPolicy(t, cfg) })
	t.Run("autoscalers", func(t *testing.T) { checkAutoscalers(t, cfg) })
}

// checkAutoscalers compares autoscalers on the same recording: each is scored over the
// same minutes, beside what was recorded.
func checkAutoscalers(t *testing.T, cfg *config.Config) {
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, cfg.Redacted(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := []string{"replay", cfg.Exporters.Record.Path, "--config.file", file, "--policy", "hpa,keda,vpa,trimtab", "--cost", "5ms", "-o", "json"}
	if code := Main(t.Context(), args, &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var got podsAnswer
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Policies) != 4 || len(got.Recorded) != 2 || len(got.Played) != 2 || got.Recorded[0].CoreHours <= 0 {
		t.Fatalf("%s", out.String())
	}
	for _, p := range got.Policies {
		for _, w := range p.Workloads {
			if w.CoreHours <= 0 || w.LeastMissed > w.Missed || w.Missed > w.MostMissed || w.MostMissed > w.Minutes {
				t.Errorf("%s: %+v", p.Policy, w)
			}
		}
	}
}

// segments are the files of a recording.
func segments(t *testing.T, cfg *config.Config) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cfg.Exporters.Record.Path, "trimtab-*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkAnotherPolicy asks `trimtab replay` what equal shares would have made
// of the same recording: hungry keeps what it had at first, and misses more.
func checkAnotherPolicy(t *testing.T, cfg *config.Config) {
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, cfg.Redacted(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"replay", cfg.Exporters.Record.Path, "--config.file", file, "--policy", "resource-fair", "-o", "json"}, &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var got replayAnswer
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Workloads) != 2 || got.Rounds == 0 || got.Recording.Damaged != 0 || got.Workloads[0].Workload != "hungry" {
		t.Fatalf("%s", out.String())
	}
	for _, w := range got.Workloads {
		m, p := w.Measured, w.Replayed
		if m.Minutes <= 0 || m.ResourceHours <= 0 || p.ResourceHours <= 0 || p.Low > p.SLOMinutes || p.SLOMinutes > p.High || p.High > p.Minutes+1e-9 {
			t.Errorf("%+v", w)
		}
	}
	// Equal shares of what the pool has are half a core, at most.
	if p := got.Workloads[0].Replayed; p.ResourceHours > 0.51*p.Minutes/60 {
		t.Errorf("hungry used %v core-hours in %v minutes of equal shares", p.ResourceHours, p.Minutes)
	}
}

// checkSpans looks for whole traces, for the one that /metrics pointed to, and
// for links to slow requests.
func checkSpans(t *testing.T, spans []*trace.Span, pointed string) {
	names, links, found := map[string]int{}, 0, false
	for _, s := range spans {
		names[s.Name]++
		links += len(s.Links)
		found = found || hex.EncodeToString(s.TraceId) == pointed
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	for _, name := range []string{"decision", "sample", "estimate", "plan", "effect"} {
		if names[name] == 0 {
			t.Errorf("no span %s in %v", name, names)
		}
	}
	if links == 0 {
		t.Error("no decision links a slow request")
	}
	if !found {
		t.Errorf("trace %s of /metrics was not exported", pointed)
	}
}

// checkReplay runs fresh steps on the recorded inputs and compares every
// estimate and plan with what was recorded.
func checkReplay(t *testing.T, cfg *config.Config) {
	in, err := record.Open(cfg.Exporters.Record.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	steps := freshSteps(t, cfg)
	due, same := map[string][]trimtab.Value{}, map[trimtab.Kind]int{}
	seen := map[trimtab.Kind]int{}
	for {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Role != record.Out {
			if n := len(due[l.Stage]); n > 0 {
				t.Fatalf("at %v %s gives %d values more than were recorded", l.Received, l.Stage, n)
			}
			seen[l.Kind]++
			if due[l.Stage], err = l.Apply(steps[l.Stage]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(due[l.Stage]) == 0 {
			t.Fatalf("at %v %s gives nothing, recorded was %s", l.Received, l.Stage, l.Raw)
		}
		got, err := json.Marshal(due[l.Stage][0])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, l.Raw) {
			t.Fatalf("at %v %s gives\n%s\nrecorded was\n%s", l.Received, l.Stage, got, l.Raw)
		}
		due[l.Stage] = due[l.Stage][1:]
		same[l.Kind]++
	}
	if c := in.Counts(); c.Damaged != 0 || c.Lost != 0 || c.Segments < 2 {
		t.Errorf("recording: %+v", c)
	}
	if same[trimtab.KindEstimate] == 0 || same[trimtab.KindPlan] == 0 || in.Header().Config != site.Digest(cfg) {
		t.Errorf("the same: %v, header %+v", same, in.Header())
	}
	for _, k := range []trimtab.Kind{trimtab.KindSketch, trimtab.KindHolding, trimtab.KindOutcome, trimtab.KindEstimate, trimtab.KindLeader, ""} {
		if seen[k] == 0 {
			t.Errorf("no input of kind %q in %v", k, seen)
		}
	}
	t.Logf("the same bytes: %v", same)
}

func freshSteps(t *testing.T, cfg *config.Config) map[string]trimtab.Step {
	t.Helper()
	ac, err := site.AnalyzerConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	learn, err := analyzer.New(ac)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := site.PlannerConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.New(pc)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]trimtab.Step{"learn": learn, "planner": plan}
}

func TestAnExportToOurselvesIsRefusedAtTheStart(t *testing.T) {
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the receiver is never reached: exporters start first
	cfg.OTLP.GRPC = l.Addr().String()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+cfg.OTLP.GRPC)
	cfg.Exporters.OTLP.Endpoint = "env"
	s, err := site.Open(t.Context(), cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("%v", err)
	}
	if s != nil {
		_ = s.Close()
	}
}
