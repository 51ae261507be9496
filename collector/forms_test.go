package collector_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	model "github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/collector/jaeger"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/spanfile"
	"github.com/trimtab/trimtab/internal/metric"
)

// sampledSpan is one span of the population, in whole microseconds.
type sampledSpan struct {
	trimtab.Span
	service, state string
	// calls: it is a call of a database that sends no spans.
	calls bool
}

// database are the attributes of a span that calls one, and the name that it gets by them.
func database() (attrs [][2]string, name string) {
	return [][2]string{{"db.system", "postgresql"}, {"db.name", "orders"}, {"net.peer.name", "orders-db"}, {"net.peer.port", "5432"}}, "postgresql orders-db"
}

// attributesOf returns those of a span, each made of key and value by a format.
func attributesOf(s sampledSpan, format string) (out []string) {
	if s.calls {
		attrs, _ := database()
		for _, a := range attrs {
			out = append(out, fmt.Sprintf(format, a[0], a[1]))
		}
	}
	return out
}

// population is 400 requests web -> db, of which a sampler that keeps what is slow
// kept some: one in four, and all over 30 ms. It returns them, and the requests of
// which the kept ones tell.
func population() (spans []sampledSpan, requests float64) {
	random := rand.New(rand.NewPCG(29, 4))
	for i := range 400 {
		var trace [16]byte
		binary.BigEndian.PutUint64(trace[:8], random.Uint64())
		binary.BigEndian.PutUint64(trace[8:], random.Uint64())
		start := int64(1_700_000_000_000_000_000 + i*50_000_000)
		took := int64(5+random.IntN(10)) * 1e6
		if i%10 == 0 {
			took = 40e6
		}
		state, weight := "vendor=x,ot=rv:6e6d1a75832a2f;th:c", float32(4)
		if took > 30e6 {
			state, weight = "ot=th:0", 1
		} else if random.IntN(4) > 0 {
			continue
		}
		requests += float64(weight)
		add := func(id, parent byte, kind trimtab.SpanKind, service string, from, to int64, flags uint8) {
			s := sampledSpan{service: service, state: state}
			s.Span = trimtab.Span{TraceID: trace, SpanID: [8]byte{0: byte(i >> 8), 1: byte(i), 7: id}, Start: start + from, End: start + to, Adjusted: weight, Kind: kind, Flags: flags | trimtab.FlagAdjusted}
			if parent != 0 {
				s.Parent = [8]byte{0: byte(i >> 8), 1: byte(i), 7: parent}
			}
			spans = append(spans, s)
		}
		add(1, 0, trimtab.SpanServer, "web", 0, took, 0)
		add(2, 1, trimtab.SpanInternal, "web", 1e6, took-1e6, 0)
		add(3, 2, trimtab.SpanClient, "web", 2e6, took-2e6, trimtab.FlagError*uint8(i%2))
		add(4, 3, trimtab.SpanServer, "db", 2001e3, took-2001e3, 0)
		add(5, 2, trimtab.SpanClient, "web", 1e6, 2e6, 0)
		spans[len(spans)-1].calls = true
	}
	return spans, requests
}

func asProtobuf(t *testing.T, spans []sampledSpan) []byte {
	t.Helper()
	var r collectorpb.ExportTraceServiceRequest
	for _, service := range []string{"web", "db"} {
		ss := &tracepb.ScopeSpans{}
		for _, s := range spans {
			if s.service == service {
				out := &tracepb.Span{TraceId: s.TraceID[:], SpanId: s.SpanID[:], TraceState: s.state, Kind: tracepb.Span_SpanKind(s.Kind), StartTimeUnixNano: uint64(s.Start), EndTimeUnixNano: uint64(s.End)}
				if s.Parent != [8]byte{} {
					out.ParentSpanId = s.Parent[:]
				}
				for _, a := range attributesOf(s, "%s %s") {
					key, value, _ := strings.Cut(a, " ")
					out.Attributes = append(out.Attributes, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}})
				}
				if s.Flags&trimtab.FlagError != 0 {
					out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
				}
				ss.Spans = append(ss.Spans, out)
			}
		}
		name := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: service}}
		r.ResourceSpans = append(r.ResourceSpans, &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: name}}}, ScopeSpans: []*tracepb.ScopeSpans{ss}})
	}
	b, err := proto.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func asJSON(spans []sampledSpan) string {
	var lists []string
	for _, service := range []string{"web", "db"} {
		var list []string
		for _, s := range spans {
			if s.service == service {
				list = append(list, fmt.Sprintf(`{"traceId":"%x","spanId":"%x","parentSpanId":"%s","traceState":%q,"kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","status":{"code":%d},"attributes":[%s]}`,
					s.TraceID, s.SpanID, parentOf(s, ""), s.state, s.Kind, s.Start, s.End, 2*(s.Flags&trimtab.FlagError), strings.Join(attributesOf(s, `{"key":%q,"value":{"stringValue":%q}}`), ",")))
			}
		}
		lists = append(lists, fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},"scopeSpans":[{"spans":[%s]}]}`, service, strings.Join(list, ",")))
	}
	return `{"resourceSpans":[` + strings.Join(lists, ",") + `]}`
}

// parentOf returns the parent in hexadecimal, none for no parent.
func parentOf(s sampledSpan, none string) string {
	if s.Parent == [8]byte{} {
		return none
	}
	return fmt.Sprintf("%x", s.Parent)
}

// kindName is that of Zipkin and of Jaeger's tag, in lower case.
func kindName(k trimtab.SpanKind) string {
	return map[trimtab.SpanKind]string{trimtab.SpanInternal: "internal", trimtab.SpanServer: "server", trimtab.SpanClient: "client"}[k]
}

// asZipkin is what the Collector's exporter writes.
func asZipkin(spans []sampledSpan) string {
	var list []string
	for _, s := range spans {
		kind, tags := fmt.Sprintf(`"kind":%q,`, strings.ToUpper(kindName(s.Kind))), fmt.Sprintf(`"w3c.tracestate":%q`, s.state)
		if s.Kind == trimtab.SpanInternal {
			kind, tags = "", tags+`,"span.kind":"internal"`
		}
		if s.Flags&trimtab.FlagError != 0 {
			tags += `,"error":"true"`
		}
		remote := ""
		if s.calls { // the Go SDK's exporter has the first of its attributes that could be a name
			remote = `"remoteEndpoint":{"serviceName":"orders-db"},`
		}
		tags = strings.Join(append(attributesOf(s, "%q:%q"), tags), ",")
		parent := remote
		if p := parentOf(s, ""); p != "" {
			parent += fmt.Sprintf(`"parentId":%q,`, p)
		}
		list = append(list, fmt.Sprintf(`{"traceId":"%x","id":"%x",%s%s"timestamp":%d,"duration":%d,"localEndpoint":{"serviceName":%q},"tags":{%s}}`,
			s.TraceID, s.SpanID, parent, kind, s.Start/1000, (s.End-s.Start)/1000, s.service, tags))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func asJaegerJSON(spans []sampledSpan) string {
	var list []string
	for _, s := range spans {
		refs, failed := "", ""
		if p := parentOf(s, ""); p != "" {
			refs = fmt.Sprintf(`{"refType":"CHILD_OF","traceID":"%x","spanID":%q}`, s.TraceID, p)
		}
		if s.Flags&trimtab.FlagError != 0 {
			failed = `,{"key":"error","type":"bool","value":true}`
		}
		failed += strings.Join(append([]string{""}, attributesOf(s, `{"key":%q,"type":"string","value":%q}`)...), ",")
		list = append(list, fmt.Sprintf(`{"spans":[{"traceID":"%x","spanID":"%x","references":[%s],"startTime":%d,"duration":%d,"processID":"p","tags":[{"key":"span.kind","type":"string","value":%q},{"key":"w3c.tracestate","type":"string","value":%q}%s]}],"processes":{"p":{"serviceName":%q}}}`,
			s.TraceID, s.SpanID, refs, s.Start/1000, (s.End-s.Start)/1000, kindName(s.Kind), s.state, failed, s.service))
	}
	return `{"data":[` + strings.Join(list, ",") + `]}`
}

// jaegerCodec is the codec of Jaeger's own clients.
type jaegerCodec struct{}

func (jaegerCodec) Name() string { return "proto" }

func (jaegerCodec) Marshal(v any) ([]byte, error) {
	if b, ok := v.([]byte); ok {
		return b, nil
	}
	return v.(interface{ Marshal() ([]byte, error) }).Marshal()
}

func (jaegerCodec) Unmarshal(b []byte, v any) error {
	if m, ok := v.(interface{ Unmarshal([]byte) error }); ok {
		return m.Unmarshal(b)
	}
	return nil
}

func asJaeger(spans []sampledSpan) (out []*api_v2.PostSpansRequest) {
	for _, service := range []string{"web", "db"} {
		batch := model.Batch{Process: &model.Process{ServiceName: service}}
		for _, s := range spans {
			if s.service != service {
				continue
			}
			trace := model.NewTraceID(binary.BigEndian.Uint64(s.TraceID[:8]), binary.BigEndian.Uint64(s.TraceID[8:]))
			span := &model.Span{TraceID: trace, SpanID: model.SpanID(binary.BigEndian.Uint64(s.SpanID[:])), StartTime: time.Unix(0, s.Start).UTC(), Duration: time.Duration(s.End - s.Start),
				Tags: model.KeyValues{model.String("http.url", strings.Repeat("x", 100)), model.String("span.kind", kindName(s.Kind)), model.String("w3c.tracestate", s.state+",long="+strings.Repeat("y", 200))}}
			if s.Parent != [8]byte{} {
				span.References = []model.SpanRef{model.NewChildOfRef(trace, model.SpanID(binary.BigEndian.Uint64(s.Parent[:])))}
			}
			for _, a := range attributesOf(s, "%s %s") {
				key, value, _ := strings.Cut(a, " ")
				span.Tags = append(span.Tags, model.String(key, value))
			}
			if s.Flags&trimtab.FlagError != 0 {
				span.Tags = append(span.Tags, model.Bool("error", true))
			}
			batch.Spans = append(batch.Spans, span)
		}
		out = append(out, &api_v2.PostSpansRequest{Batch: batch})
	}
	return out
}

// receivers are a receiver of everything; b gets what it takes.
func receivers(t *testing.T, b *spantest.Bus) (web string, conn *grpc.ClientConn) {
	t.Helper()
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	r, err := otlp.Open(otlp.Config{Sink: sink, Metrics: set, GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Register: func(r grpc.ServiceRegistrar) { jaeger.Register(r, jaeger.New(sink, set)) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	conn, err = grpc.NewClient(r.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(jaegerCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + r.HTTPAddr(), conn
}

// byID forgets the order.
func byID(spans []spantest.Span) []spantest.Span {
	slices.SortFunc(spans, func(a, b spantest.Span) int { return bytes.Compare(a.SpanID[:], b.SpanID[:]) })
	return spans
}

func TestOneSampledPopulationGivesOneAnswerInEveryFormLiveAndFromFiles(t *testing.T) {
	spans, requests := population()
	var want []spantest.Span
	for _, s := range spans {
		one := spantest.Span{Span: s.Span, Attrs: map[string]string{"service.name": s.service}}
		if s.calls {
			_, one.Callee = database()
		}
		want = append(want, one)
	}
	want = byID(want)
	check := func(t *testing.T, frames []*trimtab.SpanFrame) {
		t.Helper()
		if d := cmp.Diff(want, byID(spantest.Unpack(frames))); d != "" {
			t.Errorf("%.3000s", d)
		}
		got := 0.0
		for _, s := range spantest.Unpack(frames) {
			if s.Parent == [8]byte{} {
				got += float64(s.Adjusted)
			}
		}
		if got != requests || requests < 300 || requests > 500 {
			t.Errorf("%v requests, want %v", got, requests)
		}
	}
	post := func(t *testing.T, url, kind, body string) {
		t.Helper()
		answer, err := http.Post(url, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if b, _ := io.ReadAll(answer.Body); answer.StatusCode > 299 {
			t.Fatalf("%s %s", answer.Status, b)
		}
	}
	for name, send := range map[string]func(t *testing.T, web string, conn *grpc.ClientConn){
		"OTLP over gRPC": func(t *testing.T, _ string, conn *grpc.ClientConn) {
			if err := conn.Invoke(t.Context(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export", asProtobuf(t, spans), nil); err != nil {
				t.Fatal(err)
			}
		},
		"OTLP over HTTP": func(t *testing.T, web string, _ *grpc.ClientConn) {
			post(t, web+"/v1/traces", "application/x-protobuf", string(asProtobuf(t, spans)))
		},
		"OTLP's JSON": func(t *testing.T, web string, _ *grpc.ClientConn) {
			post(t, web+"/v1/traces", "application/json", asJSON(spans))
		},
		"Zipkin": func(t *testing.T, web string, _ *grpc.ClientConn) {
			post(t, web+"/api/v2/spans", "application/json", asZipkin(spans))
		},
		"Jaeger": func(t *testing.T, _ string, conn *grpc.ClientConn) {
			for _, r := range asJaeger(spans) {
				if _, err := api_v2.NewCollectorServiceClient(conn).PostSpans(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &spantest.Bus{}
			web, conn := receivers(t, b)
			send(t, web, conn)
			check(t, b.Frames())
		})
	}
	for name, doc := range map[string]string{"OTLP's JSON": asJSON(spans), "Zipkin": asZipkin(spans), "Jaeger": asJaegerJSON(spans)} {
		t.Run("file of "+name, func(t *testing.T) {
			r := spanfile.NewReader(spanfile.Options{})
			if err := r.Read(strings.NewReader(doc)); err != nil {
				t.Fatal(err)
			}
			check(t, r.Recording().Frames)
		})
	}
}
