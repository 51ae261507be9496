package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// counted returns what a counter counted, by "source reason".
func counted(t *testing.T, r *Receiver, name string) map[string]float64 {
	t.Helper()
	families, err := r.config.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if v := m.GetCounter().GetValue(); v > 0 {
				out[labels["source"]+" "+labels["reason"]] = v
			}
		}
	}
	return out
}

func TestARequestWithoutASpanThatIsReadIsCountedAndTold(t *testing.T) {
	r := start(t, &spantest.Bus{}, nil)
	for body, want := range map[string]string{
		`{}`: `{}`, `{"resourceSpans":[]}`: `{}`,
		`{"resourceLogs":[{}]}`:                               `{"partialSuccess":{"rejectedSpans":"0","errorMessage":"no span was read: an OTLP request has no key \"resourceLogs\""}}`,
		`{"data":[{"spans":[{"traceID":"1"},{}]}]}`:           `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"2 spans rejected: 2 for their unknown_key (\"data\")"}}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}`: `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"1 spans rejected: 1 for their trace_id (not 16 bytes or 32 hexadecimal digits, or zero)"}}`,
	} {
		if got := post(t, r, typeJSON, []byte(body)); got.code != http.StatusOK || string(got.body) != want {
			t.Errorf("%s: %d %s, want %s", body, got.code, got.body, want)
		}
	}
	if _, err := collectorpb.NewTraceServiceClient(dial(t, r)).Export(t.Context(), &collectorpb.ExportTraceServiceRequest{}); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]float64{"otlp_http empty": 2, "otlp_http unknown_key": 1, "otlp_grpc empty": 1}, counted(t, r, "trimtab_collector_requests_without_spans_total")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]float64{"otlp_http unknown_key": 2, "otlp_http trace_id": 1}, counted(t, r, "trimtab_collector_spans_rejected_total")); d != "" {
		t.Error(d)
	}
}

// The same fields at the number that OTLP 0.15 to 0.19 moved them to.
func TestInstrumentationLibrariesAreReadFromProtobuf(t *testing.T) {
	b := &spantest.Bus{}
	conn := dial(t, start(t, b, nil))
	body := exampleBatch(3)
	_, _, n := protowire.ConsumeTag(body)
	rs, _ := protowire.ConsumeBytes(body[n:])
	var moved []byte
	for len(rs) > 0 {
		number, kind, n := protowire.ConsumeTag(rs)
		value, m := protowire.ConsumeBytes(rs[n:])
		if number == 2 {
			number = 1000
		}
		moved = protowire.AppendBytes(protowire.AppendTag(moved, number, kind), value)
		rs = rs[n+m:]
	}
	moved = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), moved)
	if err := conn.Invoke(t.Context(), exportMethod, moved, nil, grpc.ForceCodec(rawCodec{})); err != nil {
		t.Fatal(err)
	}
	if spans := b.Spans(); len(spans) != 3 || spans[0].Attrs["service.name"] != "cart" {
		t.Errorf("%+v", spans)
	}
}

func TestHeadersAsSendersWriteThemAreUnderstood(t *testing.T) {
	b := &spantest.Bus{}
	r := start(t, b, nil)
	base := "http://" + r.HTTPAddr()
	const doc = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + exampleTrace + `","spanId":"` + exampleSpan + `"}]}]}]}`
	for name, got := range map[string]response{
		"charset":          do(t, "POST", base+"/v1/traces", "application/json; charset=utf-8", strings.NewReader(doc)),
		"upper case":       do(t, "POST", base+"/v1/traces", "Application/JSON;charset=UTF-8", strings.NewReader(doc)),
		"a bad parameter":  do(t, "POST", base+"/v1/traces", "application/json; charset", strings.NewReader(doc)),
		"registered type":  do(t, "POST", base+"/v1/traces", "application/protobuf", strings.NewReader(string(exampleBatch(1)))),
		"the path of 2020": do(t, "POST", base+"/v1/trace", typeJSON, strings.NewReader(doc)),
		"GZIP":             post(t, r, typeJSON, zip(t, []byte(doc)), "Content-Encoding", "GZIP"),
	} {
		if got.code != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	if n := len(b.Spans()); n != 6 {
		t.Errorf("%d spans, want 6", n)
	}
}

func TestAProtocolThatIsNotReadIsRefusedByItsName(t *testing.T) {
	r := start(t, &spantest.Bus{}, nil)
	base := "http://" + r.HTTPAddr()
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/api/v1/spans": {501, "Zipkin's version 1 is not read: send "}, "/api/traces": {501, "Jaeger's Thrift over HTTP is not read"},
		"/v0.4/traces": {501, "the protocol of Datadog's agent is not read"}, "/v3/segments": {501, "the protocol of SkyWalking is not read"},
		"/": {404, "OTLP is read at /v1/traces"}, "/v1/traces/": {404, "OTLP is read at /v1/traces"},
	} {
		if got := do(t, "POST", base+path, typeJSON, strings.NewReader("[]")); got.code != want.code || !strings.Contains(string(got.body), want.text) {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
	if got := do(t, "GET", base+"/", "", nil); got.code != 404 {
		t.Errorf("%d", got.code)
	}
	if d := cmp.Diff(map[string]float64{"otlp_http protocol": 4, "otlp_http path": 2}, counted(t, r, "trimtab_collector_requests_rejected_total")); d != "" {
		t.Error(d)
	}
}

// zipkinDoc is a client and the server that shares its id, and what the server calls.
const zipkinDoc = `[
 {"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a2fb4a1d1a96d312","kind":"CLIENT","timestamp":1502787600000000,"duration":7000,"localEndpoint":{"serviceName":"front","ipv4":"10.0.0.1"},"tags":{"w3c.tracestate":"ot=th:8"}},
 {"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"a2fb4a1d1a96d312","shared":true,"timestamp":1502787600001000.25,"duration":4999.7504,"localEndpoint":{"serviceName":"back"},"tags":{"error":"no stock"}},
 {"traceId":"48485a3953bb6124","id":"b","parentId":"a2fb4a1d1a96d312","timestamp":"1502787600002000","duration":1,"localEndpoint":{"serviceName":"back"},"tags":{"span.kind":"internal","error":"false"}}]`

// zipkinSpans is what it says.
func zipkinSpans() []spantest.Span {
	const at = 1502787600000000000
	trace := [16]byte{0x46, 0x3a, 0xc3, 0x5c, 0x9f, 0x64, 0x13, 0xad, 0x48, 0x48, 0x5a, 0x39, 0x53, 0xbb, 0x61, 0x24}
	id := [8]byte{0xa2, 0xfb, 0x4a, 0x1d, 0x1a, 0x96, 0xd3, 0x12}
	var short [16]byte
	copy(short[8:], trace[8:])
	attrs := func(name string) map[string]string { return map[string]string{"service.name": name} }
	return []spantest.Span{
		{Span: trimtab.Span{TraceID: trace, SpanID: id, Kind: trimtab.SpanClient, Start: at, End: at + 7e6, Adjusted: 2, Flags: trimtab.FlagAdjusted}, Attrs: attrs("front")},
		{Span: trimtab.Span{TraceID: trace, SpanID: id, Kind: trimtab.SpanServer, Start: at + 1000250, End: at + 6000000, Adjusted: 1, Flags: trimtab.FlagError}, Attrs: attrs("back")},
		{Span: trimtab.Span{TraceID: short, SpanID: [8]byte{7: 0xb}, Parent: id, Kind: trimtab.SpanInternal, Start: at + 2e6, End: at + 2e6 + 1000, Adjusted: 1}, Attrs: attrs("back")},
	}
}

func TestZipkinsSendersAreUnderstood(t *testing.T) {
	for name, c := range map[string]struct{ kind, encoding string }{
		"JSON": {"application/json", ""}, "gzip": {"application/json; charset=utf-8", "gzip"}, "no type": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &spantest.Bus{}
			r := start(t, b, nil)
			body := []byte(zipkinDoc)
			var header []string
			if c.encoding != "" {
				body, header = zip(t, body), []string{"Content-Encoding", c.encoding}
			}
			if got := do(t, "POST", "http://"+r.HTTPAddr()+"/api/v2/spans", c.kind, strings.NewReader(string(body)), header...); got.code != http.StatusAccepted || len(got.body) != 0 {
				t.Fatalf("%d %s", got.code, got.body)
			}
			if d := cmp.Diff(zipkinSpans(), b.Spans()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(map[string]float64{"zipkin ": 3}, counted(t, r, "trimtab_collector_spans_accepted_total")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestZipkinRefusalsSayWhy(t *testing.T) {
	r := start(t, &spantest.Bus{}, func(c *Config, _ *collector.Config) { c.MaxBody = 1 << 20 })
	at := "http://" + r.HTTPAddr() + "/api/v2/spans"
	send := func(kind, body string) response { return do(t, "POST", at, kind, strings.NewReader(body)) }
	for name, c := range map[string]struct {
		got  response
		code int
		text string
	}{
		"version 1":       {send(typeJSON, `[{"traceId":"1","id":"2","annotations":[{"timestamp":1,"value":"sr","endpoint":{"serviceName":"web"}}]}]`), 400, "this is version 1"},
		"Thrift":          {send("application/x-thrift", "\x0c"), 415, "Thrift is version 1"},
		"no list":         {send(typeJSON, `{}`), 400, "not a list"},
		"no JSON":         {send(typeJSON, `x`), 400, "syntax error"},
		"malformed":       {send(typeProtobuf, "hello"), 400, "malformed"},
		"too large":       {send(typeJSON, strings.Repeat(" ", 1<<20+1)), 413, "too large"},
		"GET":             {do(t, "GET", at, "", nil), 405, "use POST"},
		"no id":           {send(typeJSON, `[{"traceId":"1"},{"traceId":"1","id":"2","parentId":"x"}]`), 400, "2 spans rejected: 1 for their span_id (not 8 bytes or 16 hexadecimal digits, or zero), 1 for their parent_id"},
		"nothing":         {send(typeJSON, `[]`), 202, ""},
		"one of two good": {send(typeJSON, `[{"traceId":"1"},{"traceId":"1","id":"2"}]`), 202, ""},
	} {
		if c.got.code != c.code || !strings.Contains(string(c.got.body), c.text) {
			t.Errorf("%s: %d %s, want %d %s", name, c.got.code, c.got.body, c.code, c.text)
		}
	}
	if d := cmp.Diff(map[string]float64{"zipkin malformed": 4, "zipkin content_type": 1, "zipkin too_large": 1, "zipkin method": 1}, counted(t, r, "trimtab_collector_requests_rejected_total")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]float64{"zipkin span_id": 2, "zipkin parent_id": 1}, counted(t, r, "trimtab_collector_spans_rejected_total")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]float64{"zipkin empty": 1}, counted(t, r, "trimtab_collector_requests_without_spans_total")); d != "" {
		t.Error(d)
	}
}

func TestAZipkinSenderIsAskedToComeAgain(t *testing.T) {
	b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { return errors.New("nobody there") }}
	r := start(t, b, nil)
	got := do(t, "POST", "http://"+r.HTTPAddr()+"/api/v2/spans", typeJSON, strings.NewReader(zipkinDoc))
	if got.code != http.StatusServiceUnavailable || got.retry == "" || !strings.Contains(string(got.body), "unanswered") {
		t.Errorf("%+v", got)
	}
}

func TestProtobufWithAMessageButNoRejectedSpansIsAWarning(t *testing.T) {
	var answer collectorpb.ExportTraceServiceResponse
	if err := proto.Unmarshal(partial{message: "no span was read"}.protobuf(), &answer); err != nil {
		t.Fatal(err)
	}
	if p := answer.GetPartialSuccess(); p.GetRejectedSpans() != 0 || p.GetErrorMessage() != "no span was read" {
		t.Errorf("%v", p)
	}
}
