package otlp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// result is what a scan made of a request.
type result struct {
	Spans    []spantest.Span
	Rejected uint64
}

func scanWith(scan func([]byte, *collector.ResourceCache, *collector.Packer) error, b []byte) (result, error) {
	p := collector.NewPacker(1)
	if err := scan(b, &collector.ResourceCache{}, p); err != nil {
		return result{}, err
	}
	n := p.Rejected()
	return result{spantest.Unpack(p.Frames()), n}, nil
}

// slow makes the same of the generated types, the obvious way.
func slow(r *collectorpb.ExportTraceServiceRequest) result {
	var out result
	for _, rs := range r.GetResourceSpans() {
		attrs := map[string]string{}
		for _, kv := range rs.GetResource().GetAttributes() {
			switch v := kv.GetValue().GetValue().(type) {
			case *commonpb.AnyValue_StringValue:
				attrs[kv.GetKey()] = v.StringValue
			case *commonpb.AnyValue_BoolValue:
				attrs[kv.GetKey()] = strconv.FormatBool(v.BoolValue)
			case *commonpb.AnyValue_IntValue:
				attrs[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
			}
		}
		delete(attrs, "")
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				if span, ok := slowSpan(s); ok {
					out.Spans = append(out.Spans, spantest.Span{Span: span, Attrs: attrs, Callee: slowCallee(s)})
				} else {
					out.Rejected++
				}
			}
		}
	}
	return out
}

func slowSpan(s *tracepb.Span) (trimtab.Span, bool) {
	zero := func(b []byte) bool { return strings.Trim(string(b), "\x00") == "" }
	if len(s.GetTraceId()) != 16 || zero(s.GetTraceId()) || len(s.GetSpanId()) != 8 || zero(s.GetSpanId()) ||
		(len(s.GetParentSpanId()) != 0 && len(s.GetParentSpanId()) != 8) {
		return trimtab.Span{}, false
	}
	out := trimtab.Span{Adjusted: 1, Start: int64(s.GetStartTimeUnixNano()), End: int64(s.GetEndTimeUnixNano())}
	copy(out.TraceID[:], s.GetTraceId())
	copy(out.SpanID[:], s.GetSpanId())
	copy(out.Parent[:], s.GetParentSpanId())
	if k := s.GetKind(); k >= 0 && k <= 5 {
		out.Kind = trimtab.SpanKind(k)
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		out.Flags |= trimtab.FlagError
	}
	if s.GetKind() >= tracepb.Span_SPAN_KIND_CLIENT && s.GetKind() <= tracepb.Span_SPAN_KIND_CONSUMER {
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "messaging.operation" && a.GetValue().GetStringValue() == "receive" {
				out.Flags |= trimtab.FlagReceive
			}
		}
	}
	// The generator below writes thresholds in this one form.
	if _, th, ok := strings.Cut(s.GetTraceState(), "ot=th:"); ok {
		v, err := strconv.ParseUint(th+strings.Repeat("0", 14-len(th)), 16, 64)
		if err != nil {
			panic(err)
		}
		out.Flags |= trimtab.FlagAdjusted
		out.Adjusted = float32(math.Min(1e9, 1/(1-float64(v)/float64(1<<56))))
	}
	return out, true
}

// slowCallee names whom a span calls by the attributes that the generator below knows.
func slowCallee(s *tracepb.Span) string {
	if s.GetKind() != tracepb.Span_SPAN_KIND_CLIENT && s.GetKind() != tracepb.Span_SPAN_KIND_PRODUCER {
		return ""
	}
	text := map[string]string{}
	port := int64(0)
	for _, a := range s.GetAttributes() {
		text[a.GetKey()] = strings.TrimSpace(a.GetValue().GetStringValue())
		if n := a.GetValue().GetIntValue(); a.GetKey() == "server.port" && n > 0 && n < 1<<16 {
			port = n
		}
	}
	switch {
	case text["peer.service"] != "":
		return text["peer.service"]
	case text["server.address"] == "":
		return ""
	case port == 0 || port == 80 || port == 443:
		return text["server.address"]
	}
	return fmt.Sprintf("%s:%d", text["server.address"], port)
}

func genID(n int) *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), n, n), rapid.SliceOfN(rapid.Byte(), n, n), rapid.SliceOfN(rapid.Byte(), n, n),
		rapid.Just(make([]byte, n)), rapid.SliceOfN(rapid.Byte(), 0, 20))
}

func genAttrs(t *rapid.T) (attrs []*commonpb.KeyValue) {
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"service.name", "host", "", "pid", "ok", "messaging.operation", "peer.service", "server.address", "server.port"}), 0, 6, rapid.ID).Draw(t, "keys") {
		v := &commonpb.AnyValue{}
		text := rapid.OneOf(rapid.Just("receive"), rapid.String())
		if key == "peer.service" || key == "server.address" {
			text = rapid.StringMatching(`[ a-z.]{0,8}`)
		}
		switch rapid.IntRange(0, 5).Draw(t, "type") {
		case 0, 1:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: text.Draw(t, "text")}
		case 2:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: rapid.Bool().Draw(t, "bool")}
		case 3:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 1<<16)).Draw(t, "int")}
		case 4:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: rapid.Float64Range(-1, 1).Draw(t, "double")}
		case 5:
			v.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{}}
		}
		attrs = append(attrs, &commonpb.KeyValue{Key: key, Value: v})
	}
	return attrs
}

func genSpan(t *rapid.T) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: genID(16).Draw(t, "trace"), SpanId: genID(8).Draw(t, "span"),
		Name: rapid.String().Draw(t, "name"), Kind: tracepb.Span_SpanKind(rapid.Int32Range(-1, 7).Draw(t, "kind")),
		StartTimeUnixNano: rapid.Uint64().Draw(t, "start"), EndTimeUnixNano: rapid.Uint64().Draw(t, "end"),
		Attributes: genAttrs(t), Flags: rapid.Uint32().Draw(t, "flags"),
	}
	if rapid.Bool().Draw(t, "child") {
		s.ParentSpanId = genID(8).Draw(t, "parent")
	}
	switch rapid.IntRange(0, 4).Draw(t, "state") {
	case 0:
		s.TraceState = "vendor=1,ot=th:" + rapid.StringMatching(`[0-9a-e][0-9a-f]{0,13}`).Draw(t, "th")
	case 1:
		s.TraceState = "vendor=th:8"
	}
	if rapid.Bool().Draw(t, "status") {
		s.Status = &tracepb.Status{Code: tracepb.Status_StatusCode(rapid.Int32Range(-1, 3).Draw(t, "code")), Message: rapid.String().Draw(t, "message")}
	}
	if rapid.Bool().Draw(t, "more") {
		s.Events = []*tracepb.Span_Event{{Name: "e", Attributes: genAttrs(t)}}
		s.Links = []*tracepb.Span_Link{{TraceId: make([]byte, 16)}}
		s.DroppedEventsCount = rapid.Uint32().Draw(t, "dropped")
	}
	return s
}

func genRequest(t *rapid.T) *collectorpb.ExportTraceServiceRequest {
	r := &collectorpb.ExportTraceServiceRequest{}
	for range rapid.IntRange(0, 4).Draw(t, "resources") {
		rs := &tracepb.ResourceSpans{SchemaUrl: "u"}
		if rapid.Bool().Draw(t, "resource") {
			rs.Resource = &resourcepb.Resource{Attributes: genAttrs(t), DroppedAttributesCount: 3}
		}
		for range rapid.IntRange(0, 3).Draw(t, "scopes") {
			ss := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "s"}}
			for range rapid.IntRange(0, 4).Draw(t, "spans") {
				ss.Spans = append(ss.Spans, genSpan(t))
			}
			rs.ScopeSpans = append(rs.ScopeSpans, ss)
		}
		r.ResourceSpans = append(r.ResourceSpans, rs)
	}
	return r
}

func TestTheScanReadsWhatTheGeneratedTypesRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest(t)
		b, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := scanWith(ScanRequest, b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow(r), got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestTheOrderOfFieldsOnTheWireDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest(t)
		b, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		backwards := reverseFields(b, 3)
		var want collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(backwards, &want); err != nil {
			t.Skip("a text looked like a message")
		}
		got, err := scanWith(ScanRequest, backwards)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow(&want), got); d != "" {
			t.Fatal(d)
		}
	})
}

// reverseFields turns the fields of a message around, and those of its first
// levels of message fields.
func reverseFields(b []byte, levels int) []byte {
	all := b
	var out []byte
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return append([]byte(nil), all...)
		}
		field := b[:n]
		b = b[n:]
		number, kind, tag := protowire.ConsumeTag(field)
		if inner, m := protowire.ConsumeBytes(field[tag:]); kind == protowire.BytesType && m > 0 && levels > 0 && number <= 2 {
			field = protowire.AppendBytes(protowire.AppendTag(nil, number, kind), reverseFields(inner, levels-1))
		}
		out = append(append([]byte(nil), field...), out...)
	}
	return out
}

// toOTLP turns protobuf's JSON into OTLP's: ids in hexadecimal, enums as integers.
func toOTLP(t *rapid.T, r *collectorpb.ExportTraceServiceRequest) []byte {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	i := 0
	var flat []*tracepb.Span
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			flat = append(flat, ss.GetSpans()...)
		}
	}
	list := func(v any, key string) []any { l, _ := v.(map[string]any)[key].([]any); return l }
	for _, rs := range list(doc, "resourceSpans") {
		for _, ss := range list(rs, "scopeSpans") {
			for _, v := range list(ss, "spans") {
				s := v.(map[string]any)
				s["traceId"], s["spanId"] = fmt.Sprintf("%x", flat[i].GetTraceId()), fmt.Sprintf("%X", flat[i].GetSpanId())
				s["parentSpanId"] = fmt.Sprintf("%x", flat[i].GetParentSpanId())
				s["notOfThisVersion"] = map[string]any{"spans": []any{1, nil, "\"}"}}
				i++
			}
		}
	}
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestJSONSaysTheSameAsProtobuf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest(t)
		got, err := scanWith(ScanJSON, toOTLP(t, r))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow(r), got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestJSONIntegersMayBeNumbersAndEnumsNames(t *testing.T) {
	got, err := scanWith(ScanJSON, []byte(`{"resourceSpans":[{"resource":null,"scopeSpans":[{"spans":[
	 {"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","parentSpanId":"","startTimeUnixNano":1544712660000000000,
	  "endTimeUnixNano":"1544712661000000000","kind":"SPAN_KIND_CLIENT","status":{"code":"STATUS_CODE_ERROR"}}]}]}]}`))
	if err != nil || len(got.Spans) != 1 {
		t.Fatal(got, err)
	}
	s := got.Spans[0]
	if s.Start != 1544712660000000000 || s.End != 1544712661000000000 || s.Kind != trimtab.SpanClient || s.Flags != trimtab.FlagError || s.Parent != [8]byte{} {
		t.Errorf("%+v", s)
	}
}

func TestMalformedBodiesAreInvalid(t *testing.T) {
	for name, b := range map[string][]byte{
		"text": []byte("hello world"), "cut off": {0x0a, 0x10, 0x0a}, "field 0": {0x02, 0x00}, "length over": {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"varint": {0x08, 0xff}, "end group": {0x0c}, "deep": {0x0a, 0x04, 0x12, 0x02, 0x12, 0x05}, "span time": {0x0a, 0x07, 0x12, 0x05, 0x12, 0x03, 0x39, 0x01, 0x02},
	} {
		if _, err := scanWith(ScanRequest, b); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, b := range []string{``, `[]`, `null`, `{"resourceSpans":3}`, `{"resourceSpans":[3]}`, `{"resourceSpans":[{"scopeSpans":{}}]}`,
		`{"resourceSpans":[{"resource":7}]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}`, `{"resourceSpans":[]`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"fast"}]}]}]}`, strings.Repeat(`{"a":`, 1e6)} {
		if _, err := scanWith(ScanJSON, []byte(b)); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%.60s: %v", b, err)
		}
	}
}

func FuzzScanRequest(f *testing.F) {
	b, _ := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "cart"}}}}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{TraceId: make([]byte, 16), SpanId: []byte("12345678"), Kind: 2, TraceState: "ot=th:8",
			StartTimeUnixNano: 1, EndTimeUnixNano: 2, Status: &tracepb.Status{Code: 2}}}}}}}})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := scanWith(ScanRequest, b)
		var r collectorpb.ExportTraceServiceRequest
		if proto.Unmarshal(b, &r) != nil {
			return // the scan may pass what is broken inside a skipped field
		}
		if err != nil {
			t.Fatalf("generated types read it: %v", err)
		}
		if want := countSpans(&r); want != len(got.Spans)+int(got.Rejected) {
			t.Fatalf("%d spans, generated types %d", len(got.Spans)+int(got.Rejected), want)
		}
	})
}

// countSpans counts the spans of a request.
func countSpans(r *collectorpb.ExportTraceServiceRequest) (n int) {
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			n += len(ss.GetSpans())
		}
	}
	return n
}

func FuzzScanJSON(f *testing.F) {
	f.Add([]byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"cart"}}]},"scopeSpans":[{"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","kind":2,"startTimeUnixNano":"1"}]}]}]}`))
	f.Add([]byte(`{"result":{"resource_spans":[{"instrumentation_library_spans":[{"spans":[{"trace_id":"W47/95gDgQPSabYzgT/GDA==","span_id":{"type":"Buffer","data":[1,2,3,4,5,6,7,8]},"start_time_unix_nano":{"low":-1,"high":3}}]}],"other":[{"spans":[{}]}]}]},"batches":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := scanWith(ScanJSON, b); err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// BenchmarkScanRequest measures requests that were served, and calls of a database.
func BenchmarkScanRequest(b *testing.B) {
	for name, body := range map[string][]byte{"served": exampleBatch(512), "calls": exampleCalls(512)} {
		b.Run(name, func(b *testing.B) {
			p, cache := collector.NewPacker(1), &collector.ResourceCache{}
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				p.Reset()
				if err := ScanRequest(body, cache, p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/span")
		})
	}
}

func TestACallCostsNoAllocation(t *testing.T) {
	p, cache := collector.NewPacker(1), &collector.ResourceCache{}
	allocations := func(n int) float64 {
		body := exampleCalls(n)
		return testing.AllocsPerRun(10, func() {
			p.Reset()
			if err := ScanRequest(body, cache, p); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(10), allocations(510); many > few {
		t.Errorf("%v allocations for 510 spans, %v for 10", many, few)
	}
}

// exampleCalls is a request of n spans as an instrumentation of a database makes them.
func exampleCalls(n int) []byte {
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	var r collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(exampleBatch(n), &r); err != nil {
		panic(err)
	}
	for _, s := range r.ResourceSpans[0].ScopeSpans[0].Spans {
		s.Name, s.Kind = "SELECT orders", tracepb.Span_SPAN_KIND_CLIENT
		s.Attributes = []*commonpb.KeyValue{text("db.system.name", "postgresql"), text("db.namespace", "orders"), text("db.operation.name", "SELECT"),
			text("db.query.text", "SELECT id, customer, total FROM orders WHERE customer = ? ORDER BY id LIMIT 20"), text("server.address", "orders-db"),
			{Key: "server.port", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 5432}}}}
	}
	b, err := proto.Marshal(&r)
	if err != nil {
		panic(err)
	}
	return b
}

// exampleBatch is a request of n spans with three attributes each.
func exampleBatch(n int) []byte {
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	ss := &tracepb.ScopeSpans{}
	for i := range n {
		ss.Spans = append(ss.Spans, &tracepb.Span{
			TraceId: fmt.Appendf(nil, "%016d", i/16+1), SpanId: fmt.Appendf(nil, "%08d", i+1), ParentSpanId: fmt.Appendf(nil, "%08d", i/2+1),
			Name: "GET /cart", Kind: 2, StartTimeUnixNano: 1700000000000000000, EndTimeUnixNano: 1700000000001000000,
			Attributes: []*commonpb.KeyValue{text("http.method", "GET"), text("http.route", "/cart/{id}"), text("net.peer.name", "frontend")}})
	}
	b, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "cart"), text("service.instance.id", "cart-1")}},
		ScopeSpans: []*tracepb.ScopeSpans{ss}}}})
	if err != nil {
		panic(err)
	}
	return b
}
