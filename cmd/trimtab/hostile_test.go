package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/trial"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/topic"
)

// raw sends bytes as they are.
type raw struct{}

func (raw) Name() string                    { return "proto" }
func (raw) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// bomb is so many zeros, as gzip.
func bomb(t *testing.T, zeros int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, io.LimitReader(zeroes{}, zeros)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// post sends one request and returns the answer.
func post(t *testing.T, method, url string, body []byte, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestHostileRequestsAreAnsweredCountedAndBounded(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	before, peak := p.rss(), int64(0)
	traces := "http://" + p.http + "/v1/traces"
	const protobuf, text = "application/x-protobuf", "application/json"
	for _, c := range []struct {
		name   string
		method string
		body   []byte
		header []string
		code   int
		reason string
	}{
		{"malformed protobuf", "POST", []byte("\x0a\xff\xff\xff\xff\x0f junk"), []string{"Content-Type", protobuf}, 400, "malformed"},
		{"malformed JSON", "POST", []byte(`{"resourceSpans":[{`), []string{"Content-Type", text}, 400, "malformed"},
		{"deep JSON", "POST", []byte(`{"resourceSpans":` + strings.Repeat("[", 1<<20)), []string{"Content-Type", text}, 400, "malformed"},
		{"no type", "POST", nil, nil, 415, "content_type"},
		{"method", "GET", nil, nil, 405, "method"},
		{"too large", "POST", make([]byte, 17<<20), []string{"Content-Type", protobuf}, 413, "too_large"},
		{"a bomb of 256 MiB", "POST", bomb(t, 256<<20), []string{"Content-Type", protobuf, "Content-Encoding", "gzip"}, 413, "too_large"},
		{"broken gzip", "POST", []byte("\x1f\x8bjunk"), []string{"Content-Type", protobuf, "Content-Encoding", "gzip"}, 400, "malformed"},
		{"unknown encoding", "POST", []byte("x"), []string{"Content-Type", protobuf, "Content-Encoding", "br"}, 415, "content_encoding"},
	} {
		counted := func() float64 {
			return p.sum("trimtab_collector_requests_rejected_total", "source", "otlp_http", "reason", c.reason)
		}
		was, began := counted(), time.Now()
		resp := post(t, c.method, traces, c.body, c.header...)
		if resp.StatusCode != c.code || counted() != was+1 {
			t.Errorf("%s: answered %d, want %d; counted %v as %s", c.name, resp.StatusCode, c.code, counted()-was, c.reason)
		}
		t.Logf("%s: %d after %v", c.name, resp.StatusCode, time.Since(began).Round(time.Millisecond))
		peak = max(peak, p.rss())
	}
	for _, c := range []struct {
		name, address, method, source string
		body                          []byte
		zip                           bool
		code                          codes.Code
	}{
		{"malformed", p.otlp, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "otlp_grpc", []byte("\x0a\xff\xff junk"), false, codes.InvalidArgument},
		{"too large", p.otlp, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "otlp_grpc", make([]byte, 17<<20), false, codes.ResourceExhausted},
		{"bomb", p.otlp, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "otlp_grpc", make([]byte, unfolded), true, codes.ResourceExhausted},
		{"malformed", p.jaeger, "/jaeger.api_v2.CollectorService/PostSpans", "jaeger", []byte("\x0a\xff\xff junk"), false, codes.InvalidArgument},
		{"bomb", p.jaeger, "/jaeger.api_v2.CollectorService/PostSpans", "jaeger", make([]byte, unfolded), true, codes.ResourceExhausted},
		{"metrics", p.otlp, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "", nil, false, codes.Unimplemented},
	} {
		conn, err := grpc.NewClient(c.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallSendMsgSize(math.MaxInt32)))
		if err != nil {
			t.Fatal(err)
		}
		var options []grpc.CallOption
		if c.zip {
			options = append(options, grpc.UseCompressor(grpcgzip.Name))
		}
		was := p.sum("trimtab_collector_requests_rejected_total", "source", c.source)
		began := time.Now()
		err = conn.Invoke(t.Context(), c.method, c.body, new([]byte), options...)
		if status.Code(err) != c.code {
			t.Errorf("%s %s: %v, want %v", c.source, c.name, err, c.code)
		}
		t.Logf("%s %s: %v after %v", c.source, c.name, status.Code(err), time.Since(began).Round(time.Millisecond))
		n := 0.0
		// A request is counted when its handler ends, just after the answer.
		for deadline := time.Now().Add(time.Minute); c.source != "" && n < 1 && time.Now().Before(deadline); {
			n = p.sum("trimtab_collector_requests_rejected_total", "source", c.source) - was
		}
		if c.source != "" && n != 1 {
			t.Errorf("%s %s: counted %v", c.source, c.name, n)
		}
		peak = max(peak, p.rss())
		conn.Close()
	}
	t.Logf("resident memory grew from %d MiB to at most %d MiB", before>>20, peak>>20)
	if peak-before > 64<<20 && !raceDetector {
		t.Errorf("resident memory grew by %d MiB", (peak-before)>>20)
	}
	if err := p.restored(); err != nil {
		t.Error(err)
	}
	p.stop()
}

// request is a request of one service's spans.
func request(service string, spans ...*trace.Span) *trace.ResourceSpans {
	return &trace.ResourceSpans{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{{Key: "service.name",
			Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: service}}}}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: spans}},
	}
}

// span is one server span that has just ended.
func span(id []byte, parent []byte, took time.Duration) *trace.Span {
	end := time.Now()
	return &trace.Span{TraceId: id[:16], SpanId: id[16:24], ParentSpanId: parent, Name: "GET /", Kind: trace.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: uint64(end.Add(-took).UnixNano()), EndTimeUnixNano: uint64(end.UnixNano())}
}

func randomID() []byte {
	id := make([]byte, 24)
	_, _ = rand.Read(id)
	return id
}

func TestPoisonSpansHarmNobodyElse(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	p.serve()
	p.until("both limits moved", p.moved)
	client := newSender(p, p.otlp, p.q).client
	export := func(what string, spans ...*trace.ResourceSpans) {
		t.Helper()
		began := time.Now()
		// A refusal is an answer, too; being cut off is not.
		_, err := client.Export(t.Context(), &coltrace.ExportTraceServiceRequest{ResourceSpans: spans})
		if c := status.Code(err); c != codes.OK && c != codes.InvalidArgument && c != codes.ResourceExhausted && c != codes.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %v after %v", what, status.Code(err), time.Since(began).Round(time.Millisecond))
	}
	names := []string{"<script>alert(1)</script>", `"} or vector(1) #`, "../../etc/passwd", strings.Repeat("x", 300), "\x00\x1b[31m", "${jndi:x}", "trimtab.>", ""}
	for _, name := range names {
		export(fmt.Sprintf("service %.20q", name), request(name, span(randomID(), nil, time.Millisecond)))
	}
	a, b := randomID(), randomID()
	copy(b, a[:16])
	export("a parent that never comes", request("hungry", span(randomID(), randomID()[16:], time.Millisecond)))
	export("cycle and self-parents", request("hungry", span(a, b[16:], 1), span(b, a[16:], 1)), request("modest", span(a, a[16:], 1)))
	for _, at := range [][2]uint64{{0, 0}, {math.MaxUint64, 0}, {0, math.MaxUint64}, {math.MaxInt64, math.MaxInt64 + 1}, {1, 2}} {
		s := span(randomID(), nil, 0)
		s.StartTimeUnixNano, s.EndTimeUnixNano = at[0], at[1]
		export(fmt.Sprint("times ", at), request("hungry", s))
	}
	var deep []*trace.Span
	last, id := []byte(nil), randomID()
	for range 100_000 {
		next := randomID()
		copy(next, id[:16])
		deep = append(deep, span(next, last, time.Millisecond))
		last = next[16:]
	}
	export("100,000 spans in one trace, each below the last", request("deep", deep...))
	for i := range 10 {
		var many []*trace.ResourceSpans
		for j := range 1000 {
			many = append(many, request(fmt.Sprintf("service-%d", i*1000+j), span(randomID(), nil, time.Millisecond)))
		}
		export("1,000 services", many...)
	}
	planned := p.planned()
	p.until("five more plans", func() error {
		p.limits()
		plan, err := p.plan()
		if err != nil || plan.Sequence < planned.Sequence+5 {
			return fmt.Errorf("plan %s: %w", plan.ID(), err)
		}
		return nil
	})
	_, page, err := p.get("/")
	if err != nil || strings.Contains(page, "<script>alert") {
		t.Errorf("the page prints what a span says: %v", err)
	}
	_, metrics, err := p.get("/metrics")
	if n := strings.Count(metrics, "\n"); err != nil || n > 20_000 {
		t.Errorf("%d lines of metrics, %v", n, err)
	}
	var explained view.Explanation
	// A busy machine may lack requests for a moment; poison must not hold it.
	p.until("hungry not to be held after poison", func() error {
		if explained = p.explanation("hungry"); strings.HasPrefix(explained.State, "held") {
			return fmt.Errorf("%s", explained.State)
		}
		return nil
	})
	t.Logf("%d lines of metrics, %d MiB resident, hungry is %q", strings.Count(metrics, "\n"), p.rss()>>20, explained.State)
	if p.rss() > 256<<20 && !raceDetector {
		t.Errorf("%d MiB resident", p.rss()>>20)
	}
	p.stop()
}

// R18: as many requests of 20,000 spans as the trial says, from 48 senders that
// wait for nothing but their answers. The times are those of an answer.
func TestAfterABurstEverySpanIsAccountedFor(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 144)
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	var spans []*trace.Span
	for range 20_000 {
		spans = append(spans, span(randomID(), nil, time.Millisecond))
	}
	body, err := proto.Marshal(&coltrace.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{request("hungry", spans...)}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	codes := map[int]int{}
	var senders sync.WaitGroup
	// The same spans again and again: all but the first are duplicates.
	var left atomic.Int64
	left.Store(int64(tr.N))
	for range 48 {
		senders.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				resp, err := http.Post("http://"+p.http+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				tr.Took(time.Since(began))
				mu.Lock()
				codes[resp.StatusCode]++
				mu.Unlock()
				if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
			}
		})
	}
	sent := make(chan struct{})
	go func() { defer close(sent); senders.Wait() }()
	peak := int64(0)
	for waiting := true; waiting; {
		select {
		case <-sent:
			waiting = false
		case <-time.After(100 * time.Millisecond):
		}
		peak = max(peak, p.rss())
	}
	tr.Notef("answers: %v; at most %d MiB resident, all stages together", codes, peak>>20)
	if peak > 1<<30 && !raceDetector {
		tr.Failf("%d MiB resident", peak>>20)
	}
	for code := range codes {
		if code != http.StatusOK && code != http.StatusServiceUnavailable {
			t.Errorf("answered %d", code)
		}
	}
	p.until("the accounts to balance", func() error {
		m := p.metrics()
		received, accepted, rejected := sumOf(m, "trimtab_collector_spans_received_total"), sumOf(m, "trimtab_collector_spans_accepted_total"), sumOf(m, "trimtab_collector_spans_rejected_total")
		analysed, duplicates := sumOf(m, "trimtab_path_analysed_spans_total"), sumOf(m, "trimtab_path_duplicate_spans_total")
		dropped, held := sumOf(m, "trimtab_path_dropped_spans_total"), sumOf(m, "trimtab_path_held_spans")
		read := analysed + duplicates + dropped + held
		// What the analyzer read after its publisher gave up waiting is rejected.
		unanswered := sumOf(m, "trimtab_collector_spans_rejected_total", "reason", "unanswered")
		account := fmt.Sprintf("received %v = accepted %v + rejected %v; accepted = analysed %v + duplicates %v + dropped %v + held %v; unanswered %v",
			received, accepted, rejected, analysed, duplicates, dropped, held, unanswered)
		if received == 0 || received != accepted+rejected || read < accepted || read > accepted+unanswered || duplicates == 0 {
			return fmt.Errorf("%s", account)
		}
		t.Log(account)
		return nil
	})
	p.stop()
}

func TestTheWebServerRefusesWhatAPageElsewhereCouldSend(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	p.start()
	commands, pause := "http://"+p.web+"/api/v1/commands", []byte(`{"verb":"pause","by":"test"}`)
	for _, c := range []struct {
		name, method, url string
		body              []byte
		header            []string
		code              int
	}{
		{"foreign Host", "GET", "http://" + p.web + "/", nil, []string{"Host", "evil.example"}, 403},
		{"foreign Host on metrics", "GET", "http://" + p.web + "/metrics", nil, []string{"Host", "evil.example:9600"}, 403},
		{"other origin", "POST", commands, pause, []string{"Content-Type", "application/json", "Origin", "http://evil.example"}, 403},
		{"no origin", "POST", commands, pause, []string{"Content-Type", "application/json", "Origin", "null"}, 403},
		{"cross-site", "POST", commands, pause, []string{"Content-Type", "application/json", "Sec-Fetch-Site", "cross-site"}, 403},
		{"a form", "POST", commands, pause, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"text", "POST", commands, pause, []string{"Content-Type", "text/plain"}, 415},
		{"oversized", "POST", commands, make([]byte, 1<<20), []string{"Content-Type", "application/json"}, 413},
		{"junk", "POST", commands, []byte("{"), []string{"Content-Type", "application/json"}, 400},
		{"unknown verb", "POST", commands, []byte(`{"verb":"explode","by":"t"}`), []string{"Content-Type", "application/json"}, 400},
		{"GET of a command", "GET", commands, nil, nil, 405},
		{"DELETE", "DELETE", "http://" + p.web + "/api/v1/status", nil, nil, 405},
		{"GET of reload", "GET", "http://" + p.web + "/-/reload", nil, nil, 405},
		{"path", "GET", "http://" + p.web + "/workloads/..%2f..%2fetc%2fpasswd", nil, nil, 404},
		{"unknown", "GET", "http://" + p.web + "/debug/pprof/", nil, nil, 404},
	} {
		resp := post(t, c.method, c.url, c.body, c.header...)
		if resp.StatusCode != c.code {
			b, _ := io.ReadAll(resp.Body)
			t.Errorf("%s: %d %.200s, want %d", c.name, resp.StatusCode, b, c.code)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers %v", c.name, resp.Header)
		}
	}
	if p.sum("trimtab_actuator_paused") != 0 {
		t.Error("paused by a refused command")
	}
	// Slow clients of every listener do not keep others waiting.
	var slow []net.Conn
	for range 100 {
		for _, address := range []string{p.web, p.http, p.otlp, p.jaeger} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			slow = append(slow, conn)
			if _, err := io.WriteString(conn, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Le"); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	if code, _, err := p.get("/-/healthy"); err != nil || code != 200 {
		t.Errorf("beside slow clients: %d %v", code, err)
	}
	if err := newSender(t, p.otlp, p.q).send(t.Context()); err != nil {
		t.Errorf("beside slow clients: %v", err)
	}
	t.Logf("beside 400 slow clients two requests took %v", time.Since(began))
	for _, conn := range slow {
		conn.Close()
	}
	p.stop()
}

func TestJunkOnTheBusIsPutAsideCountedAndChangesNothing(t *testing.T) {
	t.Parallel()
	// Some kinds are heard only with these sections.
	p := prepare(t, anyQuotas(t), "beside: {jobs: {}, tasks: {user: nobody, programs: [/opt/batch/*]}}\n")
	p.start()
	p.planned() // so that the next leader's epoch is at least 2
	p.stop()
	p.start()
	var now trimtab.Plan
	p.until("an accepted plan of the second leader", func() (err error) {
		// At first the newest plan may still be one that the first leader left.
		if now, err = p.acting(); err == nil && (now.Epoch < 2 || p.sum("trimtab_actuator_plans_total", "result", "accepted") == 0) {
			err = fmt.Errorf("plan %s", now.ID())
		}
		return err
	})
	conn, err := nats.Connect("nats://"+p.nats, nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	part := bus.EscapeKey((&trimtab.Plan{Pool: "default", Host: host}).Key())
	unreadable := map[trimtab.Kind]bool{}
	junk := []string{"", "null", "{}", "[]", "junk \x00\xff", `{"kind":"plan","version":1,"value":{}}`, strings.Repeat("[", 100_000),
		`{"kind":"KIND","version":1,"origin":{"source":"x"},"value":{"workload":"hungry","pool":"default","epoch":18446744073709551615}}`,
		`{"kind":"KIND","version":99,"value":{}}`, `{"kind":"KIND","version":1,"value":null}`}
	for _, k := range topic.All() {
		if k.Delivery == topic.Local {
			continue
		}
		if k.Kind != speculation.KindPlacements { // heard only where groups of a kernel can be made
			unreadable[k.Kind] = true
		}
		for _, key := range []string{"default", "hungry", "0", "=ZZ", "other", part} {
			for _, body := range junk {
				subject := "trimtab." + string(k.Kind) + "." + key
				if err := conn.Publish(subject, []byte(strings.ReplaceAll(body, "KIND", string(k.Kind)))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// A leader of the past comes back with a plan that lowers both.
	forged := now
	forged.Epoch, forged.Sequence, forged.Step, forged.Last, forged.Time = now.Epoch-1, 1_000_000, 1, true, time.Now()
	forged.Actions, forged.Held = nil, nil
	for _, name := range []string{"hungry", "modest"} {
		forged.Actions = append(forged.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: forged.Pool, Host: host, Workload: name, Resource: "cpu"}, Expect: trimtab.Units(0.5), Set: trimtab.Units(0.3), Mode: trimtab.Act})
	}
	message, err := codec.Encode(&forged, trimtab.Origin{Source: "forger", Incarnation: 1, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish(bus.Subject(trimtab.KindPlan, forged.Pool), message); err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	unmoved := func() {
		if err := p.restored(); err != nil {
			t.Fatalf("a limit was moved by junk: %v", err)
		}
	}
	p.until("all junk to be counted", func() error {
		unmoved()
		m := p.metrics()
		for k := range unreadable {
			if sumOf(m, "trimtab_bus_unreadable_total", "kind", string(k)) == 0 {
				return fmt.Errorf("%s: none", k)
			}
		}
		if sumOf(m, "trimtab_actuator_plans_total", "result", "stale") == 0 {
			return fmt.Errorf("the forged plan was not refused")
		}
		return nil
	})
	p.until("planning to go on", func() error {
		unmoved()
		plan, err := p.plan()
		if err != nil || plan.Epoch != now.Epoch || plan.Sequence < now.Sequence+3 {
			return fmt.Errorf("plan %s after %s: %w", plan.ID(), now.ID(), err)
		}
		return nil
	})
	if n := p.sum("trimtab_stage_panics_total"); n != 0 {
		t.Errorf("%v panics\n%s", n, p.log())
	}
	p.serve()
	p.until("both limits moved by the planner", p.moved)
	p.stop()
	if err := p.restored(); err != nil {
		t.Error(err)
	}
}
