package otlp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcpb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	gzipname "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

// start runs a receiver until the test ends.
func start(t *testing.T, b *spantest.Bus, change func(*Config, *collector.Config)) *Receiver {
	t.Helper()
	set := metric.NewSet()
	c := Config{Metrics: set, GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	sc := collector.Config{Bus: b, Metrics: set}
	if change != nil {
		change(&c, &sc)
	}
	sink, err := collector.Open(sc)
	if err != nil {
		t.Fatal(err)
	}
	c.Sink = sink
	r, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		leak.None(t, goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
			goleak.IgnoreAnyFunction("testing.(*T).Run"))
	})
	return r
}

// sendWithSDK sends one trace of a server and a client span.
func sendWithSDK(t *testing.T, exporter sdktrace.SpanExporter) {
	t.Helper()
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "cart"), attribute.Int("process.pid", 7), attribute.Bool("canary", true))))
	tracer := provider.Tracer("test")
	ctx, root := tracer.Start(t.Context(), "root", trace.WithSpanKind(trace.SpanKindServer))
	_, child := tracer.Start(ctx, "child", trace.WithSpanKind(trace.SpanKindClient))
	child.SetStatus(codes.Error, "no stock")
	child.End()
	root.End()
	if err := provider.ForceFlush(t.Context()); err != nil {
		t.Errorf("flush: %v", err)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// wantCart checks what sendWithSDK must have left.
func wantCart(t *testing.T, b *spantest.Bus) {
	t.Helper()
	spans := b.Spans()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	child, root := spans[0], spans[1]
	if child.Parent != root.SpanID || child.TraceID != root.TraceID || root.Parent != [8]byte{} {
		t.Errorf("child %+v of root %+v", child, root)
	}
	if child.Kind != trimtab.SpanClient || root.Kind != trimtab.SpanServer || child.Flags != trimtab.FlagError || root.Flags != 0 {
		t.Errorf("kinds and flags: %+v, %+v", child, root)
	}
	if age := time.Since(time.Unix(0, root.End)); root.End < root.Start || age > time.Hour || age < -time.Hour {
		t.Errorf("times %d to %d", root.Start, root.End)
	}
	if a := root.Attrs; a["service.name"] != "cart" || a["process.pid"] != "7" || a["canary"] != "true" {
		t.Errorf("attributes %v", a)
	}
}

func TestTheSDKsGRPCExporterIsUnderstood(t *testing.T) {
	for _, compressor := range []string{"", "gzip"} {
		t.Run("compressor "+compressor, func(t *testing.T) {
			b := &spantest.Bus{}
			r := start(t, b, nil)
			options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(r.GRPCAddr())}
			if compressor != "" {
				options = append(options, otlptracegrpc.WithCompressor(compressor))
			}
			exporter, err := otlptracegrpc.New(t.Context(), options...)
			if err != nil {
				t.Fatal(err)
			}
			sendWithSDK(t, exporter)
			wantCart(t, b)
			if c := r.Counts(); c.Received != 2 || c.Accepted != 2 {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestTheSDKsHTTPExporterIsUnderstood(t *testing.T) {
	for _, compression := range []otlptracehttp.Compression{otlptracehttp.NoCompression, otlptracehttp.GzipCompression} {
		t.Run(fmt.Sprint("compression ", compression), func(t *testing.T) {
			b := &spantest.Bus{}
			r := start(t, b, nil)
			exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(r.HTTPAddr()), otlptracehttp.WithCompression(compression))
			if err != nil {
				t.Fatal(err)
			}
			sendWithSDK(t, exporter)
			wantCart(t, b)
		})
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSIsSpokenOnBothAndOldVersionsAreRefused(t *testing.T) {
	cert, pool := selfSigned(t)
	b := &spantest.Bus{}
	r := start(t, b, func(c *Config, _ *collector.Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10}
	})
	grpcExporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(r.GRPCAddr()), otlptracegrpc.WithTLSCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	sendWithSDK(t, grpcExporter)
	httpExporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(r.HTTPAddr()), otlptracehttp.WithTLSClientConfig(&tls.Config{RootCAs: pool}))
	if err != nil {
		t.Fatal(err)
	}
	sendWithSDK(t, httpExporter)
	if n := len(b.Spans()); n != 4 {
		t.Errorf("%d spans, want 4", n)
	}
	for _, addr := range []string{r.GRPCAddr(), r.HTTPAddr()} {
		if c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
			c.Close()
			t.Errorf("%s speaks TLS 1.1", addr)
		}
	}
}

func TestAPortInUseIsAClearError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: &spantest.Bus{}, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(Config{Sink: sink, Metrics: set, GRPC: "127.0.0.1:0", HTTP: taken.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "listen on "+taken.Addr().String()) {
		t.Errorf("%v", err)
	}
	for _, c := range []Config{{}, {Sink: sink, Metrics: set}, {Sink: sink, Metrics: set, GRPC: "4317"}, {Sink: sink, Metrics: set, GRPC: "127.0.0.1:0", MaxBody: -1}} {
		if _, err := Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// dial connects a plain client.
func dial(t *testing.T, r *Receiver) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// request returns the example batch, with bad ids in the first n spans.
func request(t *testing.T, spans, bad int) *collectorpb.ExportTraceServiceRequest {
	t.Helper()
	var r collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(exampleBatch(spans), &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.ResourceSpans[0].ScopeSpans[0].Spans[:bad] {
		s.TraceId = s.TraceId[:5]
	}
	return &r
}

func TestMalformedSpansAreAPartialSuccess(t *testing.T) {
	b := &spantest.Bus{}
	r := start(t, b, nil)
	want := func(p *collectorpb.ExportTracePartialSuccess) {
		t.Helper()
		if p.GetRejectedSpans() != 3 || !strings.Contains(p.GetErrorMessage(), "trace_id") {
			t.Errorf("%v", p)
		}
	}
	answer, err := collectorpb.NewTraceServiceClient(dial(t, r)).Export(t.Context(), request(t, 10, 3))
	if err != nil {
		t.Fatal(err)
	}
	want(answer.GetPartialSuccess())
	body, err := proto.Marshal(request(t, 10, 3))
	if err != nil {
		t.Fatal(err)
	}
	response := post(t, r, typeProtobuf, body)
	var over collectorpb.ExportTraceServiceResponse
	if err := proto.Unmarshal(response.body, &over); err != nil || response.code != 200 || response.kind != typeProtobuf {
		t.Fatal(response, err)
	}
	want(over.GetPartialSuccess())
	response = post(t, r, typeJSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz"},{"traceId":""},{}]}]}]}`))
	if response.code != 200 || response.kind != typeJSON || !strings.Contains(string(response.body), `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"3 spans`) {
		t.Errorf("%v", response)
	}
	if n := len(b.Spans()); n != 14 {
		t.Errorf("%d spans, want 14", n)
	}
	if response = post(t, r, typeJSON, []byte(`{}`)); response.code != 200 || string(response.body) != `{}` {
		t.Errorf("%v", response)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }

const exportMethod = "/" + traceService + "/Export"

func TestGRPCRefusalsHaveTheCodesOfTheProtocol(t *testing.T) {
	b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { return errors.New("nobody there") }}
	// To compress the bomb takes the race detector long, on a busy machine.
	r := start(t, b, func(c *Config, _ *collector.Config) { c.MaxBody, c.Timeout = 1<<20, 5*time.Minute })
	conn := dial(t, r)
	refused := func(name string, err error, code grpccodes.Code) *status.Status {
		t.Helper()
		s := status.Convert(err)
		if s.Code() != code {
			t.Errorf("%s: %v, want %v", name, err, code)
		}
		return s
	}
	retry := func(s *status.Status) bool {
		for _, d := range s.Details() {
			if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
				return true
			}
		}
		return false
	}
	raw := func(b []byte, options ...grpc.CallOption) error {
		return conn.Invoke(t.Context(), exportMethod, b, nil, append(options, grpc.ForceCodec(rawCodec{}))...)
	}
	refused("malformed", raw([]byte("hello world")), grpccodes.InvalidArgument)
	if retry(refused("too large", raw(make([]byte, 2<<20)), grpccodes.ResourceExhausted)) {
		t.Error("a body that is too large is to be sent again")
	}
	if retry(refused("bomb", raw(make([]byte, 8<<20), grpc.UseCompressor(grpcgzip)), grpccodes.ResourceExhausted)) {
		t.Error("a bomb is to be sent again")
	}
	if !retry(refused("no analyzer", raw(exampleBatch(10)), grpccodes.Unavailable)) {
		t.Error("UNAVAILABLE without RetryInfo")
	}
	_, err := metricspb.NewMetricsServiceClient(conn).Export(t.Context(), &metricspb.ExportMetricsServiceRequest{})
	refused("metrics", err, grpccodes.Unimplemented)
	_, err = logspb.NewLogsServiceClient(conn).Export(t.Context(), &logspb.ExportLogsServiceRequest{})
	if s := refused("logs", err, grpccodes.Unimplemented); !strings.Contains(s.Message(), "traces only") {
		t.Error(s)
	}
	if c := r.Counts(); c.Received != 10 || c.Rejected[collector.Unanswered] != 10 {
		t.Errorf("%+v", c)
	}
	wantRefusals(t, r, map[string]float64{"malformed": 1, "too_large": 2})
}

// wantRefusals waits until exactly these are counted: what gRPC refuses by
// itself is counted moments after its answer.
func wantRefusals(t *testing.T, r *Receiver, want map[string]float64) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !cmp.Equal(want, refusals(t, r)) {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(cmp.Diff(want, refusals(t, r)))
		}
	}
}

func TestACallIsCountedBeforeItIsAnswered(t *testing.T) {
	r := start(t, &spantest.Bus{}, nil)
	conn := dial(t, r)
	for n := 1; n <= 500; n++ {
		if err := conn.Invoke(t.Context(), exportMethod, []byte("hello world"), nil, grpc.ForceCodec(rawCodec{})); status.Code(err) != grpccodes.InvalidArgument {
			t.Fatalf("%v, want InvalidArgument", err)
		}
		if got := refusals(t, r)["malformed"]; got != float64(n) {
			t.Fatalf("%v refusals were counted when the answer to call %d was there", got, n)
		}
		if err := conn.Invoke(t.Context(), exportMethod, exampleBatch(3), nil, grpc.ForceCodec(rawCodec{})); err != nil {
			t.Fatal(err)
		}
		if c := r.Counts(); c.Received != 3*uint64(n) || c.Accepted != 3*uint64(n) {
			t.Fatalf("%+v when the answer to call %d was there", c, n)
		}
	}
}

func TestARequestOverHTTPIsCountedBeforeItIsAnswered(t *testing.T) {
	r := start(t, &spantest.Bus{}, nil)
	for n := 1; n <= 100; n++ {
		if got := post(t, r, typeProtobuf, []byte("hello world")); got.code != http.StatusBadRequest {
			t.Fatalf("%d, want 400", got.code)
		}
		if got := refusals(t, r)["malformed"]; got != float64(n) {
			t.Fatalf("%v refusals were counted when the answer to request %d was there", got, n)
		}
		if got := post(t, r, typeProtobuf, exampleBatch(3)); got.code != http.StatusOK {
			t.Fatalf("%d, want 200", got.code)
		}
		if c := r.Counts(); c.Received != 3*uint64(n) || c.Accepted != 3*uint64(n) {
			t.Fatalf("%+v when the answer to request %d was there", c, n)
		}
	}
}

const grpcgzip = gzipname.Name

// refusals returns what trimtab_collector_requests_rejected_total counted.
func refusals(t *testing.T, r *Receiver) map[string]float64 {
	t.Helper()
	families, err := r.config.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "trimtab_collector_requests_rejected_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					counted[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return counted
}

// response is what a POST gave.
type response struct {
	code  int
	kind  string
	retry string
	body  []byte
}

func post(t *testing.T, r *Receiver, kind string, body []byte, header ...string) response {
	t.Helper()
	return do(t, http.MethodPost, "http://"+r.HTTPAddr()+"/v1/traces", kind, bytes.NewReader(body), header...)
}

func do(t *testing.T, method, url, kind string, body io.Reader, header ...string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header.Get("Content-Type"), answer.Header.Get("Retry-After"), b}
}

func TestHTTPRefusalsHaveTheCodesOfTheProtocol(t *testing.T) {
	b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { return errors.New("nobody there") }}
	r := start(t, b, func(c *Config, _ *collector.Config) { c.MaxBody = 1 << 20 })
	base := "http://" + r.HTTPAddr()
	for name, c := range map[string]struct {
		got  response
		code int
		rpc  grpccodes.Code
	}{
		"malformed protobuf": {post(t, r, typeProtobuf, []byte("hello")), 400, grpccodes.InvalidArgument},
		"malformed JSON":     {post(t, r, typeJSON, []byte("hello")), 400, grpccodes.InvalidArgument},
		"malformed gzip":     {post(t, r, typeProtobuf, []byte("hello"), "Content-Encoding", "gzip"), 400, grpccodes.InvalidArgument},
		"cut gzip":           {post(t, r, typeJSON, zip(t, []byte(`{}`))[:10], "Content-Encoding", "gzip"), 400, grpccodes.InvalidArgument},
		"too large":          {post(t, r, typeProtobuf, make([]byte, 1<<20+1)), 413, grpccodes.ResourceExhausted},
		"too large in time":  {do(t, "POST", base+"/v1/traces", typeJSON, io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), strings.NewReader("x"))), 413, grpccodes.ResourceExhausted},
		"deflate":            {post(t, r, typeProtobuf, nil, "Content-Encoding", "deflate"), 415, grpccodes.InvalidArgument},
		"text":               {post(t, r, "text/plain", nil), 415, grpccodes.InvalidArgument},
		"no type":            {post(t, r, "", nil), 415, grpccodes.InvalidArgument},
		"GET":                {do(t, "GET", base+"/v1/traces", typeJSON, nil), 405, grpccodes.Unimplemented},
		"metrics":            {do(t, "POST", base+"/v1/metrics", typeJSON, nil), 501, grpccodes.Unimplemented},
		"no analyzer":        {post(t, r, typeProtobuf, exampleBatch(10)), 503, grpccodes.Unavailable},
	} {
		var s rpcpb.Status
		if c.got.kind == typeJSON {
			var doc struct {
				Code    int32
				Message string
			}
			if err := json.Unmarshal(c.got.body, &doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.Code, s.Message = doc.Code, doc.Message
		} else if err := proto.Unmarshal(c.got.body, &s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.got.code != c.code || grpccodes.Code(s.GetCode()) != c.rpc || s.GetMessage() == "" {
			t.Errorf("%s: %d %v, want %d %v", name, c.got.code, &s, c.code, c.rpc)
		}
		if (c.got.code == 503) != (c.got.retry != "") {
			t.Errorf("%s: Retry-After %q", name, c.got.retry)
		}
	}
	want := map[string]float64{"malformed": 4, "too_large": 2, "content_encoding": 1, "content_type": 2, "method": 1}
	if d := cmp.Diff(want, refusals(t, r)); d != "" {
		t.Error(d)
	}
}

func TestRequestsUnderWayAreAnsweredWhenTheReceiverStops(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { close(entered); <-leave; return nil }}
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(Config{Sink: sink, Metrics: set, GRPC: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, sent := make(chan error, 1), make(chan error, 1)
	go func() { served <- r.Serve(ctx) }()
	client := collectorpb.NewTraceServiceClient(dial(t, r))
	go func() {
		_, err := client.Export(context.WithoutCancel(ctx), request(t, 16, 0))
		sent <- err
	}()
	<-entered
	cancel()
	close(leave)
	if err := errors.Join(<-sent, <-served); err != nil {
		t.Error(err)
	}
	if n := len(b.Spans()); n != 16 {
		t.Errorf("%d spans", n)
	}
}
