package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
)

const (
	exampleTrace = "5b8efff798038103d269b633813fc60c"
	exampleSpan  = "eee19b7ec3c1b174"
)

// base64Of is the base64 of what hexadecimal digits stand for.
func base64Of(digits string) string {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// bytesOf is JavaScript's JSON of a Buffer.
func bytesOf(digits string) string {
	b, _ := hex.DecodeString(digits)
	list := make([]int, len(b))
	for i := range b {
		list[i] = int(b[i])
	}
	out, _ := json.Marshal(map[string]any{"type": "Buffer", "data": list})
	return string(out)
}

// The forms are those of senders and stores in use: see ScanJSON.
func TestJSONOfRealSendersIsReadWhereItCanMeanOneThingOnly(t *testing.T) {
	const span = `{"traceId":"` + exampleTrace + `","spanId":"` + exampleSpan + `","kind":2,"startTimeUnixNano":"1697708260123456256","endTimeUnixNano":"1697708261123456256","status":{"code":2}}`
	const resource = `"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"cart"}}]}`
	const scopes = `"scopeSpans":[{"spans":[` + span + `]}]`
	want, err := scanWith(ScanJSON, []byte(`{"resourceSpans":[{`+resource+`,`+scopes+`}]}`))
	if err != nil || len(want.Spans) != 1 || want.Spans[0].Attrs["service.name"] != "cart" || want.Spans[0].Start != 1697708260123456256 {
		t.Fatal(want, err)
	}
	ids := func(trace, id string) string {
		return `{"resourceSpans":[{` + resource + `,"scopeSpans":[{"spans":[{"traceId":` + trace + `,"spanId":` + id +
			`,"kind":2,"startTimeUnixNano":"1697708260123456256","endTimeUnixNano":"1697708261123456256","status":{"code":2}}]}]}]}`
	}
	quote := func(s string) string { return `"` + s + `"` }
	for name, doc := range map[string]string{
		"scopes before their resource":      `{"resourceSpans":[{` + scopes + `,` + resource + `}]}`,
		"instrumentation libraries":         `{"resourceSpans":[{` + resource + `,"instrumentationLibrarySpans":[{"instrumentationLibrary":{"name":"x"},"spans":[` + span + `]}]}]}`,
		"Tempo's batches":                   `{"batches":[{` + resource + `,` + scopes + `}]}`,
		"Tempo's trace":                     `{"trace":{"resourceSpans":[{` + resource + `,` + scopes + `}]}}`,
		"Jaeger's result":                   `{"result":{"resourceSpans":[{` + resource + `,` + scopes + `}]}}`,
		"names of enums":                    `{"resourceSpans":[{` + resource + `,` + strings.NewReplacer(`"kind":2`, `"kind":"SPAN_KIND_SERVER"`, `"code":2`, `"code":"STATUS_CODE_ERROR"`).Replace(scopes) + `}]}`,
		"halves":                            `{"resourceSpans":[{` + resource + `,` + strings.NewReplacer(`"1697708260123456256"`, `{"low":-253250816,"high":395278506}`, `"1697708261123456256"`, `{"low":746749184,"high":395278507,"unsigned":true}`).Replace(scopes) + `}]}`,
		"times as numbers":                  `{"resourceSpans":[{` + resource + `,` + strings.NewReplacer(`"1697708260123456256"`, `1697708260123456256`, `"1697708261123456256"`, `1697708261123456256`).Replace(scopes) + `}]}`,
		"ids in base64":                     ids(quote(base64Of(exampleTrace)), quote(base64Of(exampleSpan))),
		"ids in base64 for URLs":            ids(quote(strings.NewReplacer("+", "-", "/", "_").Replace(base64Of(exampleTrace))), quote(base64Of(exampleSpan))),
		"ids in base64 of hexadecimal":      ids(quote(base64.StdEncoding.EncodeToString([]byte(exampleTrace))), quote(base64.StdEncoding.EncodeToString([]byte(exampleSpan)))),
		"ids as bytes":                      ids(bytesOf(exampleTrace), bytesOf(exampleSpan)),
		"a tracestate that is no text":      `{"resourceSpans":[{` + resource + `,` + strings.Replace(scopes, `"kind"`, `"traceState":{},"kind"`, 1) + `}]}`,
		"null for what is absent":           `{"resourceSpans":[{` + resource + `,` + strings.Replace(scopes, `"kind"`, `"parentSpanId":null,"traceState":null,"kind"`, 1) + `}]}`,
		"a parent of zeros":                 `{"resourceSpans":[{` + resource + `,` + strings.Replace(scopes, `"kind"`, `"parentSpanId":"0000000000000000","kind"`, 1) + `}]}`,
		"keys of the .proto files":          `{"resource_spans":[{"resource":{"attributes":[{"key":"service.name","value":{"string_value":"cart"}}]},"scope_spans":[{"spans":[{"trace_id":"` + exampleTrace + `","span_id":"` + exampleSpan + `","parent_span_id":"","trace_state":"","kind":2,"start_time_unix_nano":1697708260123456256,"end_time_unix_nano":1697708261123456256,"status":{"code":2}}]}]}]}`,
		"Go's own JSON of generated types":  `{"resource_spans":[{"resource":{"attributes":[{"key":"service.name","value":{"Value":{"StringValue":"cart"}}}]},"scope_spans":[{"spans":[{"trace_id":"` + base64Of(exampleTrace) + `","span_id":"` + base64Of(exampleSpan) + `","kind":2,"start_time_unix_nano":1697708260123456256,"end_time_unix_nano":1697708261123456256,"status":{"code":2}}]}]}]}`,
		"libraries with keys of the .proto": `{"resource_spans":[{` + resource + `,"instrumentation_library_spans":[{"spans":[` + span + `]}]}]}`,
	} {
		got, err := scanWith(ScanJSON, []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestTheHalvesOfATimeAreSigned(t *testing.T) {
	got, err := scanWith(ScanJSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"`+exampleTrace+`","spanId":"`+exampleSpan+`",
	 "startTimeUnixNano":{"low":-1013133952,"high":395276536},"endTimeUnixNano":{"low":-1011286551,"high":395276536}}]}]}]}`))
	if err != nil || len(got.Spans) != 1 {
		t.Fatal(got, err)
	}
	const high = 395276536 << 32
	if s := got.Spans[0]; s.Start != high+1<<32-1013133952 || s.End != high+1<<32-1011286551 {
		t.Errorf("%d to %d", s.Start, s.End)
	}
}

// newPackerOf scans a request that is well formed.
func newPackerOf(t *testing.T, doc string) *collector.Packer {
	t.Helper()
	p := collector.NewPacker(1)
	if err := ScanJSON([]byte(doc), &collector.ResourceCache{}, p); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return p
}

func TestAnIDThatCouldMeanSeveralThingsIsRejectedByItsReason(t *testing.T) {
	for id, reason := range map[string]string{
		`"` + exampleTrace[:24] + `"`: "trace_id", // 24 hexadecimal digits are base64, too
		`"` + exampleTrace[:22] + `"`: "trace_id", `"` + exampleTrace[:16] + `"`: "trace_id", `"` + exampleTrace + `00"`: "trace_id",
		`"not an id at all, really"`: "trace_id", `7`: "trace_id", `[1,2,3]`: "trace_id", `[256,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]`: "trace_id", `{}`: "trace_id", `""`: "trace_id",
		`"` + base64Of(exampleSpan) + `"`: "trace_id", `"00000000000000000000000000000000"`: "trace_id",
	} {
		p := newPackerOf(t, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":`+id+`,"spanId":"`+exampleSpan+`"}]}]}]}`)
		if got := partialOf(p); got.rejected != 1 || !strings.Contains(got.message, "1 for their "+reason+" (not 16 bytes or 32 hexadecimal digits") {
			t.Errorf("%s: %+v", id, got)
		}
	}
	p := newPackerOf(t, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"`+exampleTrace+`","spanId":"1"},{"traceId":"`+exampleTrace+`","spanId":"`+exampleSpan+`","parentSpanId":"x"}]}]}]}`)
	if got := partialOf(p).message; got != "2 spans rejected: 1 for their span_id (not 8 bytes or 16 hexadecimal digits, or zero), 1 for their parent_id (not 8 bytes or 16 hexadecimal digits, or zero)" {
		t.Error(got)
	}
}

func TestWhatIsNotReadIsToldByItsKey(t *testing.T) {
	for doc, want := range map[string]partial{
		`{}`: {}, `{"resourceSpans":[]}`: {}, `{"resourceSpans":null,"x":1,"y":"z"}`: {},
		`{"resourceSpans":[{"schemaUrl":"u","scopeSpans":[{"scope":{"name":"x"},"schemaUrl":"u","spans":[]}]}]}`: {},
		`{"spans":[{},{}]}`: {2, `2 spans rejected: 2 for their unknown_key ("spans")`},
		`{"data":[{"traceID":"1","spans":[{"traceID":"1"}],"processes":{}}]}`:     {1, `1 spans rejected: 1 for their unknown_key ("data")`},
		`{"resourceSpans":[{"librarySpans":[{"spans":[{},{},{}]}]}]}`:             {3, `3 spans rejected: 3 for their unknown_key ("librarySpans")`},
		`{"resourceSpans":[{"spans":[{}]}]}`:                                      {1, `1 spans rejected: 1 for their unknown_key ("spans")`},
		`{"resourceMetrics":[{"scopeMetrics":[]}]}`:                               {0, `no span was read: an OTLP request has no key "resourceMetrics"`},
		`{"resourceSpans":[{"scopeSpans":[{"items":[1]}]}]}`:                      {0, `no span was read: an OTLP request has no key "items"`},
		`{"trace":{"trace":{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}}}`: {1, `1 spans rejected: 1 for their unknown_key ("trace")`},
		`{"` + strings.Repeat("k", 100) + `":[]}`:                                 {0, `no span was read: an OTLP request has no key "` + strings.Repeat("k", 40) + `"`},
	} {
		if got := partialOf(newPackerOf(t, doc)); got != want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
	// Beside spans that are read, unknown keys without spans are nobody's business.
	got := partialOf(newPackerOf(t, `{"resourceSpans":[{"later":{"a":[]},"scopeSpans":[{"spans":[{"traceId":"`+exampleTrace+`","spanId":"`+exampleSpan+`","later":[{}]}]}]}]}`))
	if got != (partial{}) {
		t.Errorf("%+v", got)
	}
}

// protobuf's own JSON of any request says the same as its binary form.
func TestProtobufsOwnJSONIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRequest(t)
		want := slow(r)
		for _, names := range []bool{false, true} {
			b, err := protojson.MarshalOptions{UseProtoNames: names}.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := scanWith(ScanJSON, b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		}
	})
}

func TestIDsThatALibraryMistookAreRead(t *testing.T) {
	decoded := func(digits string) []byte { // as base64, what they are not
		b, err := base64.StdEncoding.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, id := range map[string]func(digits string) []byte{
		"hexadecimal digits":           func(digits string) []byte { return []byte(digits) },
		"hexadecimal taken for base64": decoded,
	} {
		var r collectorpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(exampleBatch(1), &r); err != nil {
			t.Fatal(err)
		}
		s := r.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
		s.TraceId, s.SpanId, s.ParentSpanId = id(exampleTrace), id(exampleSpan), id("00f067aa0ba902b7")
		b, err := proto.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := scanWith(ScanRequest, b)
		if err != nil || len(got.Spans) != 1 {
			t.Fatal(name, got, err)
		}
		if s := got.Spans[0]; fmt.Sprintf("%x %x %x", s.TraceID, s.SpanID, s.Parent) != exampleTrace+" "+exampleSpan+" 00f067aa0ba902b7" || s.Kind != trimtab.SpanServer {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
