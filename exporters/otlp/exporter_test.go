package otlp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	common1 "go.opentelemetry.io/proto/otlp/common/v1"
	metrics1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestMain(m *testing.M) { leak.Main(m) }

func open(t *testing.T, c Config) *Exporter {
	t.Helper()
	if c.Metrics == nil {
		c.Metrics = metric.NewSet()
	}
	e, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// send hands values over and closes, which sends all of it.
func send(t *testing.T, e *Exporter, values ...trimtab.Value) {
	t.Helper()
	for _, v := range values {
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
		e.Observe(v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func attributesOf(list []*common1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		out[kv.Key] = kv.Value.String()
		if s := kv.Value.GetStringValue(); s != "" {
			out[kv.Key] = s
		}
		if a := kv.Value.GetArrayValue(); a != nil {
			var parts []string
			for _, v := range a.Values {
				parts = append(parts, v.GetStringValue())
			}
			out[kv.Key] = strings.Join(parts, ",")
		}
	}
	return out
}

func TestADecisionIsOneTraceFromItsNewestSampleToTheLastReadBack(t *testing.T) {
	for name, protocol := range map[string]string{"gRPC": GRPC, "HTTP": HTTP} {
		t.Run(name, func(t *testing.T) {
			site := openEndpoint(t)
			c := Config{Endpoint: site.grpc, Protocol: protocol, Headers: map[string]string{"x-tenant": "shop"}}
			if protocol == HTTP {
				c.Endpoint = site.http
			}
			e := open(t, c)
			want := e.TraceID("shop", 3, 17)
			send(t, e, decide()...)
			checkTrace(t, site, want)
			if !site.headers["shop"] || site.service != "trimtab" || !site.own {
				t.Errorf("header %v, service %q, marked as own: %v", site.headers, site.service, site.own)
			}
		})
	}
}

func checkTrace(t *testing.T, site *endpoint, trace string) {
	t.Helper()
	var root []byte
	for _, s := range site.spans {
		if len(s.ParentSpanId) == 0 {
			root = s.SpanId
		}
	}
	got := map[string][]string{}
	for _, s := range site.spans {
		if hex.EncodeToString(s.TraceId) != trace {
			t.Errorf("span %s is of trace %x, want %s", s.Name, s.TraceId, trace)
		}
		a := attributesOf(s.Attributes)
		line := time.Unix(0, int64(s.StartTimeUnixNano)).Sub(noon).String() + " to " + time.Unix(0, int64(s.EndTimeUnixNano)).Sub(noon).String()
		if s.Name != "decision" && string(s.ParentSpanId) != string(root) {
			t.Errorf("%s is no child of the root", s.Name)
		}
		got[strings.TrimSpace(s.Name+" "+a["trimtab.workload"])] = append(got[strings.TrimSpace(s.Name+" "+a["trimtab.workload"])], line)
		if s.Name != "decision" {
			continue
		}
		for k, v := range map[string]string{"trimtab.plan": "3-17", "trimtab.cause": "tick", "trimtab.workloads": "calm,hungry", "trimtab.binding": "step,step",
			"trimtab.before": "4,2", "trimtab.set": "3,3", "trimtab.target": "6,6"} {
			if a[k] != v {
				t.Errorf("%s is %q, want %q", k, a[k], v)
			}
		}
		if len(s.Links) != 1 || hex.EncodeToString(s.Links[0].TraceId) != "0af7651916cd43dd8448eb211c80319c" || hex.EncodeToString(s.Links[0].SpanId) != "b7ad6b7169203331" {
			t.Errorf("links %v, want the slow request of hungry", s.Links)
		}
	}
	want := map[string][]string{
		"decision": {"200ms to 1.8s"}, "sample calm": {"600ms to 1s"}, "sample hungry": {"200ms to 1s"},
		"estimate calm": {"1s to 1.5s"}, "estimate hungry": {"1s to 1.7s"},
		"plan": {"1s to 1.5s", "1.5s to 1.7s"}, "effect": {"1.59s to 1.6s", "1.79s to 1.8s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got)\n%s", diff)
	}
}

func TestADecisionIsTheSameInWhateverOrderItsValuesCome(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := newAssembler()
		var done []*decision
		for _, v := range rapid.Permutation(decide()).Draw(rt, "order") {
			if d := a.observe(noon, v); d != nil {
				done = append(done, d)
			}
		}
		if len(done) != 1 || len(a.open) != 0 || len(done[0].steps) != 2 || len(done[0].outcomes) != 2 {
			rt.Fatalf("%d decisions, %d open", len(done), len(a.open))
		}
		if !done[0].began().Before(after(1.51)) || !done[0].ended().Equal(after(1.8)) {
			rt.Errorf("from %v to %v", done[0].began(), done[0].ended())
		}
	})
}

func TestADecisionThatNobodyAnswersIsShownAfterTheWait(t *testing.T) {
	a := newAssembler()
	for _, v := range decide()[:3] {
		if a.observe(noon, v) != nil {
			t.Fatal("finished without an answer")
		}
	}
	if len(a.expire(noon.Add(Wait-1))) != 0 || len(a.expire(noon.Add(Wait))) != 1 {
		t.Error("not shown at the end of the wait, or before")
	}
}

func TestARenewalOfALeaseHasNoTrace(t *testing.T) {
	a := newAssembler()
	p := *decide()[2].(*trimtab.Plan)
	p.Actions, p.Last = nil, true
	o := &trimtab.Outcome{Pool: "shop", Host: "h", Epoch: 3, Sequence: 17, Step: 1, Time: after(2)}
	if a.observe(noon, &p) != nil || a.observe(noon, o) != nil || len(a.open) != 0 {
		t.Error("it has one")
	}
}

func TestWhatIsMissingIsNotPushed(t *testing.T) {
	site := openEndpoint(t)
	e := open(t, Config{Endpoint: site.grpc, Utility: func(_ string, p float64) (float64, bool) { return p * p, true }})
	values := append(decide(),
		&trimtab.Estimate{Workload: "calm", Time: after(9), Hold: &trimtab.Held{Code: codes.HeldMissing, Text: "no spans"}},
		&trimtab.Holding{Host: "h", Time: after(9), Targets: []trimtab.KnobState{
			{KnobID: trimtab.KnobID{Host: "h", Workload: "hungry", Resource: "cpu"}, Now: trimtab.Units(3)}, {KnobID: trimtab.KnobID{Host: "h", Workload: "calm", Resource: "cpu"}, Now: trimtab.Unlimited()}}})
	send(t, e, values...)
	got := map[string]float64{}
	for name, m := range site.metrics {
		for _, p := range m.GetGauge().GetDataPoints() {
			got[strings.TrimPrefix(name, "trimtab.workload.")+" "+attributesOf(p.Attributes)["trimtab.workload"]] = p.GetAsDouble()
		}
	}
	want := map[string]float64{"allocation hungry": 3, "load hungry": 40, "performance hungry": .5, "utility hungry": .25,
		"target hungry": 6, "demand hungry": 3, "target calm": 6, "demand calm": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges (-want +got)\n%s", diff)
	}
	if n := site.metrics["trimtab.actions"].GetSum().DataPoints[0].GetAsInt(); n != 2 {
		t.Errorf("%d actions, want 2", n)
	}
	checkLatency(t, site.metrics["trimtab.decision.duration"], e.TraceID("shop", 3, 17))
}

func TestWhatGatesRefuseIsPushedByClassOfABoundedNumber(t *testing.T) {
	site := openEndpoint(t)
	e := open(t, Config{Endpoint: site.grpc})
	load, many := &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 110}, map[string]float64{}
	for k := range 40 {
		many[fmt.Sprintf("c%02d", k)] = 2
	}
	stale := &trimtab.Estimate{Workload: "stale", Time: after(9), Load: load, Refused: map[string]float64{"low": 9}, Hold: &trimtab.Held{Code: codes.HeldMissing, Text: "no spans", Input: "load"}}
	send(t, e, &trimtab.Estimate{Workload: "shop", Time: after(9), Load: load, Refused: map[string]float64{"low": 45, "normal": 5}},
		&trimtab.Estimate{Workload: "many", Time: after(9), Load: load, Refused: many}, stale)
	got, sum := map[string]float64{}, 0.0
	for _, p := range site.metrics["trimtab.workload.refused"].GetGauge().GetDataPoints() {
		of := attributesOf(p.Attributes)
		if got[of["trimtab.workload"]+" "+of["trimtab.class"]] = p.GetAsDouble(); of["trimtab.workload"] == "many" {
			sum += p.GetAsDouble()
		}
	}
	if got["shop low"] != 45 || got["shop normal"] != 5 || len(got) != 2+maxClasses || sum != 80 || got["many other"] != 48 {
		t.Errorf("%v", got)
	}
}

func checkLatency(t *testing.T, m *metrics1.Metric, trace string) {
	t.Helper()
	p := m.GetHistogram().GetDataPoints()
	if len(p) != 1 || p[0].Count != 1 || p[0].GetSum() < 1.59 || p[0].GetSum() > 1.61 {
		t.Fatalf("decision.duration %v, want one of 1.6 s", p)
	}
	if len(p[0].Exemplars) != 1 || hex.EncodeToString(p[0].Exemplars[0].TraceId) != trace {
		t.Errorf("exemplars %v, want trace %s", p[0].Exemplars, trace)
	}
}

func TestAnEndpointThatIsDownIsCountedAndHarmsNobody(t *testing.T) {
	const down = "http://127.0.0.1:1"
	var log strings.Builder
	set := metric.NewSet()
	e := open(t, Config{Endpoint: down, Timeout: 200 * time.Millisecond, Metrics: set, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	values, began := decide(), time.Now()
	for range 1000 { // four times the spans that may wait
		for _, v := range values {
			e.Observe(v)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	count := func(name string, labels ...string) float64 { return testutil.ToFloat64(set.Counter(name, labels...)) }
	if count("trimtab_otlp_spans_total", "sent") != 0 || count("trimtab_otlp_spans_total", "failed")+count("trimtab_otlp_spans_total", "dropped") == 0 {
		t.Error("spans were not counted as lost")
	}
	if count("trimtab_otlp_pushes_total", "failed") == 0 {
		t.Error("failed pushes were not counted")
	}
	if n, most := strings.Count(log.String(), "\n"), 1+int(time.Since(began)/time.Minute); n < 1 || n > most {
		t.Errorf("%d lines of log, want 1 a minute and at most %d:\n%s", n, most, log.String())
	}
}

func TestOurOwnReceiverIsNoEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint, env, own string
		refused            bool
	}{
		"itself":                      {"http://127.0.0.1:4317", "", "127.0.0.1:4317", true},
		"by name":                     {"http://localhost:4317", "", "127.0.0.1:4317", true},
		"a receiver on all addresses": {"http://127.0.0.1:4317", "", "0.0.0.0:4317", true},
		"the same without a host":     {"https://[::1]:4317", "", ":4317", true},
		"all addresses as endpoint":   {"http://0.0.0.0:4317", "", "127.0.0.1:4317", true},
		"mapped to version 6":         {"http://[::ffff:127.0.0.1]:4317", "", "127.0.0.1:4317", true},
		"from the environment":        {FromEnvironment, "http://127.0.0.1:4317", "127.0.0.1:4317", true},
		"the specification's default": {FromEnvironment, "", "127.0.0.1:4317", true},
		"another port":                {"http://127.0.0.1:4319", "", "127.0.0.1:4317", false},
		"another machine":             {"http://192.0.2.7:4317", "", "127.0.0.1:4317", false},
		"another name":                {"http://collector.invalid:4317", "", "127.0.0.1:4317", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.env)
			e, err := Open(t.Context(), Config{Endpoint: c.endpoint, Own: []string{"127.0.0.1:1", c.own}, Timeout: 10 * time.Millisecond, Metrics: metric.NewSet()})
			if errors.Is(err, trimtab.ErrRefused) != c.refused || err != nil && !c.refused {
				t.Errorf("error %v, want refused: %v", err, c.refused)
			}
			if e != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = e.Close(ctx)
			}
		})
	}
}

func TestTheEnvironmentIsHonoured(t *testing.T) {
	site := openEndpoint(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", site.http)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=env")
	t.Setenv("OTEL_SERVICE_NAME", "trimtab-east")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	send(t, open(t, Config{Endpoint: FromEnvironment}), decide()...)
	if len(site.spans) != 9 || site.service != "trimtab-east" || !site.headers["env"] || len(site.metrics) != 0 {
		t.Errorf("%d spans of %q with headers %v, %d metrics", len(site.spans), site.service, site.headers, len(site.metrics))
	}
}

func TestBadSettingsAreRefusedWithoutShowingThem(t *testing.T) {
	for _, c := range []Config{{}, {Endpoint: "collector:4317"}, {Endpoint: "http://user:hunter2@c:4317"}, {Endpoint: "http://c:4317", Protocol: "thrift"}} {
		c.Metrics = metric.NewSet()
		if _, err := Open(t.Context(), c); !errors.Is(err, trimtab.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", c.Endpoint, err)
		}
	}
}
