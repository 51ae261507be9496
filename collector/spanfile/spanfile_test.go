package spanfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// data returns the folder of recorded data.
func data(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded data to read")
	}
	return dir
}

// described is what a recording's README states.
type described struct {
	Format                   Format
	Traces, Spans            int
	Services, Roots, Orphans int
	Negative, Depth          int
}

func describe(t *testing.T, r *Recording) described {
	t.Helper()
	spans := spantest.Unpack(r.Frames)
	out := described{Format: r.Formats[0], Spans: len(spans)}
	if r.Spans != len(spans) || r.Rejected != 0 {
		t.Errorf("says %d spans, %d rejected; frames hold %d", r.Spans, r.Rejected, len(spans))
	}
	type id struct {
		trace [16]byte
		span  [8]byte
	}
	traces, services, byID := map[[16]byte]bool{}, map[string]bool{}, map[id]spantest.Span{}
	for _, s := range spans {
		traces[s.TraceID] = true
		services[s.Attrs["service.name"]] = true
		if _, twice := byID[id{s.TraceID, s.SpanID}]; twice {
			t.Errorf("two spans %x in trace %x", s.SpanID, s.TraceID)
		}
		byID[id{s.TraceID, s.SpanID}] = s
		if s.End < s.Start {
			out.Negative++
		}
		if s.Parent == [8]byte{} {
			out.Roots++
		}
	}
	for _, s := range spans {
		depth := 1
		for s.Parent != [8]byte{} && depth < 100 {
			parent, ok := byID[id{s.TraceID, s.Parent}]
			if !ok {
				out.Orphans++
				break
			}
			s = parent
			depth++
		}
		out.Depth = max(out.Depth, depth)
	}
	out.Traces, out.Services = len(traces), len(services)
	return out
}

func TestRecordedTracesHaveTheShapeThatTheirDescriptionStates(t *testing.T) {
	for name, want := range map[string]described{
		"dsb-socialnetwork-jaeger/traces-14.json.gz":                  {Format: Jaeger, Traces: 14, Spans: 462, Services: 12, Roots: 14, Depth: 9},
		"zipkin-recorded-traces/smartthings-oauth-authorization.json": {Format: Zipkin, Traces: 1, Spans: 175, Services: 8, Roots: 1, Negative: 19, Depth: 33},
		"zipkin-recorded-traces/yelp.json":                            {Format: Zipkin, Traces: 1, Spans: 16, Services: 6, Roots: 1, Depth: 5},
		"zipkin-recorded-traces/ascend.json":                          {Format: Zipkin, Traces: 1, Spans: 8, Services: 3, Roots: 1, Depth: 4},
		"zipkin-recorded-traces/messaging-kafka.json":                 {Format: Zipkin, Traces: 1, Spans: 28, Services: 2, Roots: 1, Depth: 5},
		"otlp-json-examples/trace.json":                               {Format: OTLP, Traces: 1, Spans: 1, Services: 1, Orphans: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Open(filepath.Join(data(t), name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(t, r)
			if want.Depth == 0 {
				got.Depth = 0 // the description does not say
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The counts of both READMEs, by file.
func TestAllMinutesOfTheInjectedFaultsAreReadWhole(t *testing.T) {
	for name, want := range map[string][2]int{
		"nezha-online-boutique/trace/2022-08-23_17_00": {502, 22969}, "nezha-online-boutique/trace/2022-08-22_03_55": {363, 16833},
		"nezha-online-boutique/trace/2022-08-22_04_36": {497, 23292}, "nezha-online-boutique/trace/2022-08-22_04_45": {480, 22057},
		"nezha-online-boutique/trace/2022-08-22_04_46": {513, 23312}, "nezha-online-boutique/trace/2022-08-22_05_19": {147, 6712},
		"nezha-online-boutique/trace/2022-08-22_05_20": {116, 5321}, "nezha-online-boutique/trace/2022-08-22_05_28": {319, 14476},
		"nezha-online-boutique/trace/2022-08-22_07_03": {425, 19697}, "nezha-online-boutique/trace/2022-08-22_07_11": {252, 11619},
		"nezha-online-boutique/trace/2022-08-22_07_26":        {503, 22985},
		"nezha-train-ticket/trace/2023-01-29_08_50_faultfree": {71, 4890}, "nezha-train-ticket/trace/2023-01-29_10_04": {48, 2336},
		"nezha-train-ticket/trace/2023-01-29_13_31": {60, 4929}, "nezha-train-ticket/trace/2023-01-29_13_33": {52, 4063},
		"nezha-train-ticket/trace/2023-01-29_14_23": {62, 3765}, "nezha-train-ticket/trace/2023-01-29_14_24": {58, 4547},
		"nezha-train-ticket/trace/2023-01-29_14_49": {47, 3852},
		"nezha-train-ticket/trace/2023-01-29_15_42": {53, 4346}, "nezha-train-ticket/trace/2023-01-29_15_43": {52, 3796},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Open(filepath.Join(data(t), name+".json.gz"), Options{Partitions: 2})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(t, r)
			if got.Traces != want[0] || got.Spans != want[1] || got.Roots != want[0] || got.Orphans != 0 || got.Negative != 0 {
				t.Errorf("%+v, want %d traces, %d spans", got, want[0], want[1])
			}
		})
	}
}

// readAll reads documents as files.
func readAll(o Options, docs ...string) (*Recording, error) {
	r := NewReader(o)
	for _, doc := range docs {
		if err := r.Read(strings.NewReader(doc)); err != nil {
			return nil, err
		}
	}
	return r.Recording(), nil
}

func read(t *testing.T, docs ...string) []spantest.Span {
	t.Helper()
	r, err := readAll(Options{}, docs...)
	if err != nil {
		t.Fatal(err)
	}
	return spantest.Unpack(r.Frames)
}

func TestAZipkinServerThatSharesItsClientsIDBecomesItsChild(t *testing.T) {
	spans := read(t, `[
	 {"traceId":"1","id":"a","kind":"SERVER","timestamp":1,"duration":9,"localEndpoint":{"serviceName":"front"}},
	 {"traceId":"1","parentId":"b","id":"c","timestamp":4,"duration":1,"localEndpoint":{"serviceName":"back"},"tags":{"error":"true"}},
	 {"traceId":"1","parentId":"b","id":"d","timestamp":4,"duration":1,"localEndpoint":{"serviceName":"front"}},
	 {"traceId":"1","parentId":"b","id":"e","timestamp":4,"duration":1,"localEndpoint":{"serviceName":"else"}},
	 {"traceId":"1","parentId":"a","id":"b","kind":"SERVER","shared":true,"timestamp":3,"duration":5,"localEndpoint":{"serviceName":"back"}},
	 {"traceId":"1","parentId":"a","id":"b","kind":"CLIENT","timestamp":2,"duration":7,"localEndpoint":{"serviceName":"front"}}]`)
	front, client, back, c, d, e := spans[0], spans[1], spans[2], spans[3], spans[4], spans[5] // in order of ids and times
	if client.SpanID != [8]byte{7: 0xb} || client.Parent != front.SpanID {
		t.Errorf("client %x under %x", client.SpanID, client.Parent)
	}
	if back.SpanID == client.SpanID || back.Parent != client.SpanID {
		t.Errorf("server %x under %x", back.SpanID, back.Parent)
	}
	if c.Parent != back.SpanID || d.Parent != client.SpanID || e.Parent != back.SpanID {
		t.Errorf("children under %x, %x, %x", c.Parent, d.Parent, e.Parent)
	}
	if c.Flags != trimtab.FlagError || back.Kind != trimtab.SpanServer || back.Start != 3000 || back.End != 8000 {
		t.Errorf("%+v %+v", c, back)
	}
}

func TestTheOrderOfAZipkinFileDoesNotMatter(t *testing.T) {
	a := `{"traceId":"1","parentId":"a","id":"b","kind":"SERVER","shared":true,"timestamp":3,"localEndpoint":{"serviceName":"x"}}`
	b := `{"traceId":"1","parentId":"a","id":"b","kind":"SERVER","shared":true,"timestamp":4,"localEndpoint":{"serviceName":"x"}}`
	c := `{"traceId":"1","parentId":"a","id":"b","kind":"CLIENT","timestamp":2,"localEndpoint":{"serviceName":"y"}}`
	byStart := func(spans []spantest.Span) map[int64]spantest.Span {
		m := map[int64]spantest.Span{}
		for _, s := range spans {
			m[s.Start] = s
		}
		return m
	}
	want := byStart(read(t, "["+a+","+b+","+c+"]"))
	for _, doc := range []string{"[" + c + "," + b + "," + a + "]", "[[" + b + "],[" + a + "," + c + "]]"} {
		if d := cmp.Diff(want, byStart(read(t, doc))); d != "" {
			t.Error(d)
		}
	}
}

func TestAHundredThousandSpansOfOneIDAreReadInOnePass(t *testing.T) {
	const n = 100_000
	var doc strings.Builder
	doc.WriteString("[")
	for i := range n {
		fmt.Fprintf(&doc, `{"traceId":"1","id":"b","parentId":"b","kind":"SERVER","timestamp":%d},`, i)
	}
	doc.WriteString(`{"traceId":"1","id":"b","kind":"CLIENT"}]`)
	ids := map[[8]byte]bool{}
	for _, s := range read(t, doc.String()) {
		ids[s.SpanID] = true
	}
	if len(ids) != n+1 {
		t.Errorf("%d ids", len(ids))
	}
}

func TestAZeroIDIsNoFamily(t *testing.T) {
	r, err := readAll(Options{}, `[{"traceId":"1","id":"0"},{"traceId":"1","id":"0"},{"traceId":"1","id":"5"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if spans := spantest.Unpack(r.Frames); r.Rejected != 2 || len(spans) != 1 || spans[0].Parent != [8]byte{} {
		t.Errorf("%d rejected, %+v", r.Rejected, spans)
	}
}

func TestNestedCopiesInJaegersReferencesAreSkipped(t *testing.T) {
	spans := read(t, `{"data":[{"traceID":"ab","spans":[{"traceID":"ab","spanID":"2","references":[
	  {"refType":"FOLLOWS_FROM","traceID":"ab","spanID":"9"},{"refType":"CHILD_OF","traceID":"ff","spanID":"8"},
	  {"refType":"CHILD_OF","traceID":"ab","span":{"spanID":"7","references":[{"refType":"CHILD_OF","traceID":"ab","spanID":"6"}]},"spanID":"1"}],
	  "startTime":5,"duration":2,"tags":[{"key":"span.kind","value":"client"},{"key":"error","type":"bool","value":true}],"processID":"p1"}],
	  "processes":{"p1":{"serviceName":"cart","tags":[{"key":"ip","value":"::1"},{"key":"pid","type":"int64","value":7},{"key":"f","value":1.5}]}}}]}`)
	want := []spantest.Span{{Span: trimtab.Span{TraceID: [16]byte{15: 0xab}, SpanID: [8]byte{7: 2}, Parent: [8]byte{7: 1}, Start: 5000, End: 7000, Adjusted: 1,
		Kind: trimtab.SpanClient, Flags: trimtab.FlagError}, Attrs: map[string]string{"service.name": "cart", "ip": "::1", "pid": "7"}}}
	if d := cmp.Diff(want, spans); d != "" {
		t.Error(d)
	}
}

func TestOTLPMayBeOneRequestALineAndGzipped(t *testing.T) {
	line := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174"}]}]}]}` + "\n"
	other := strings.ReplaceAll(line, "EEE1", "EEE2")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(line + "\n" + other)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, z.String())); n != 2 {
		t.Errorf("%d spans", n)
	}
}

// anyOrder reads files in their order and backwards, and again each with a copy
// of the first: what comes out must be the same.
func anyOrder(t *testing.T, docs ...string) []spantest.Span {
	t.Helper()
	want := read(t, docs...)
	backwards := slices.Clone(docs)
	slices.Reverse(backwards)
	for _, files := range [][]string{backwards, append([]string{docs[0]}, docs...), append(backwards, docs[0])} {
		if d := cmp.Diff(want, read(t, files...)); d != "" {
			t.Errorf("the order of files or a copy matters: %s", d)
		}
	}
	return want
}

func TestSpansInSeveralFilesAreReadOnceInAnyOrderOfFiles(t *testing.T) {
	otlpDoc := func(service, spans string) string {
		return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"` + service + `"}}]},"scopeSpans":[{"spans":[` + spans + `]}]}]}`
	}
	root := `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"0000000000000001","startTimeUnixNano":1000,"endTimeUnixNano":9000}`
	call := `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"0000000000000002","parentSpanId":"0000000000000001","startTimeUnixNano":2000,"endTimeUnixNano":8000}`
	for name, docs := range map[string][]string{
		"OTLP": {otlpDoc("web", root), otlpDoc("db", call)},
		"Jaeger beside OTLP": {otlpDoc("web", root), `{"data":[{"spans":[{"traceID":"5b8efff798038103d269b633813fc60c","spanID":"2","references":[
			{"refType":"CHILD_OF","traceID":"5b8efff798038103d269b633813fc60c","spanID":"1"}],"startTime":2,"duration":6,"processID":"p"}],"processes":{"p":{"serviceName":"db"}}}]}`},
		"Zipkin": {`[{"traceId":"5b8efff798038103d269b633813fc60c","id":"1","timestamp":1,"duration":8,"localEndpoint":{"serviceName":"web"}}]`,
			`[{"traceId":"5b8efff798038103d269b633813fc60c","id":"2","parentId":"1","timestamp":2,"duration":6,"localEndpoint":{"serviceName":"db"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			spans := anyOrder(t, docs...)
			if len(spans) != 2 || spans[0].Attrs["service.name"] != "web" || spans[1].Attrs["service.name"] != "db" || spans[1].Parent != spans[0].SpanID || spans[1].End != 8000 {
				t.Errorf("%+v", spans)
			}
		})
	}
}

func TestTheTwoSidesOfAZipkinIDMayBeInDifferentFiles(t *testing.T) {
	spans := anyOrder(t,
		`[{"traceId":"1","id":"b","kind":"CLIENT","timestamp":2,"duration":7,"localEndpoint":{"serviceName":"front"}}]`,
		`[{"traceId":"1","parentId":"b","id":"c","timestamp":4,"duration":1,"localEndpoint":{"serviceName":"back"}}]`,
		`[{"traceId":"1","id":"b","shared":true,"timestamp":3,"duration":5,"localEndpoint":{"serviceName":"back"}}]`)
	if len(spans) != 3 {
		t.Fatalf("%+v", spans)
	}
	client, server, child := spans[0], spans[1], spans[2]
	if server.Parent != client.SpanID || server.SpanID == client.SpanID || child.Parent != server.SpanID || server.Kind != trimtab.SpanServer {
		t.Errorf("%+v", spans)
	}
}

func TestTraceIDsOf64And128BitsAreOneTraceWhereOnlyOneCanBeMeant(t *testing.T) {
	const trace = "5b8efff798038103d269b633813fc60c"
	zipkin := func(trace, id, parent string) string {
		return `{"traceId":"` + trace + `","id":"` + id + `","parentId":"` + parent + `","timestamp":1,"duration":2}`
	}
	spans := anyOrder(t, "["+zipkin(trace, "1", "")+"]", "["+zipkin(trace[16:], "2", "1")+","+zipkin("77", "3", "")+"]")
	if len(spans) != 3 || spans[0].TraceID != [16]byte{15: 0x77} || spans[1].TraceID != spans[2].TraceID || spans[1].TraceID[0] != 0x5b {
		t.Errorf("%+v", spans)
	}
	// The same span in both lengths is there once.
	if spans := anyOrder(t, "["+zipkin(trace, "1", "")+"]", "["+zipkin(trace[16:], "1", "")+"]"); len(spans) != 1 {
		t.Errorf("%+v", spans)
	}
	// Two traces end in the same 64 bits: which one is meant nobody knows.
	spans = anyOrder(t, "["+zipkin(trace, "1", "")+","+zipkin("ff"+trace[2:], "1", "")+"]", "["+zipkin(trace[16:], "2", "1")+"]")
	if len(spans) != 3 || spans[0].TraceID[0] != 0 || spans[0].SpanID != [8]byte{7: 2} {
		t.Errorf("%+v", spans)
	}
}

func TestAFileOfWhichNoSpanCanBeReadSaysWhy(t *testing.T) {
	for doc, why := range map[string]string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"abc","spanId":"EEE19B7EC3C1B174"}]}]}]}`: "1 for their trace_id (not 16 bytes or 32 hexadecimal digits, or zero)",
		`{"resourceSpans":[{"spanSets":[{"spans":[{},{}]}]}]}`:                                           `2 for their unknown_key ("spanSets")`,
		`[{"traceId":"1","id":"x"}]`:                "span_id",
		`[{"traceId":"1","id":"2","parentId":"y"}]`: "parent_id",
		`{"data":[{"spans":[{"traceID":"1","spanID":"2","references":[{"refType":"CHILD_OF","traceID":"1","spanID":"0x3"}]}]}]}`: "parent_id",
	} {
		if _, err := readAll(Options{}, doc); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", doc, err, why)
		}
	}
}

func TestWhatIsNoRecordingIsInvalid(t *testing.T) {
	for _, doc := range []string{"", "hello", "{}", `"x"`, "[1]", "[[1]]", `{"data":[1]}`, `{"data":[{"spans":3}]}`, `{"data":[{"spans":[3]}]}`, `{"data":3}`,
		"\x1f\x8bhello", `{"resourceSpans":3}`} {
		if _, err := readAll(Options{}, doc); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", doc, err)
		}
	}
	if _, err := readAll(Options{MaxBytes: 5}, `[             ]`); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.json"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// fuzz reads a file, and beside it once more: what is there twice is read once.
func fuzz(f *testing.F, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := readAll(Options{}, string(doc))
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, frame := range once.Frames {
			if err := frame.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		twice, err := readAll(Options{}, string(doc), string(doc))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(spantest.Unpack(once.Frames), spantest.Unpack(twice.Frames)); d != "" {
			t.Fatal(d)
		}
		if n := uint64(once.Spans) + 2*once.Repeated; twice.Repeated != n {
			t.Fatalf("%d spans were there more than once, want %d", twice.Repeated, n)
		}
	})
}

func FuzzDecodeJaeger(f *testing.F) {
	fuzz(f, `{"data":[{"traceID":"ab","spans":[{"traceID":"ab","spanID":"2","references":[{"refType":"CHILD_OF","traceID":"ab","spanID":"1"}],"startTime":5,"duration":2,"tags":[{"key":"error","value":true}],"processID":"p1"}],"processes":{"p1":{"serviceName":"cart","tags":[{"key":"pid","value":7}]}}}]}`)
}

func FuzzDecodeZipkin(f *testing.F) {
	fuzz(f, `[{"traceId":"1","parentId":"a","id":"b","kind":"SERVER","shared":true,"timestamp":3,"duration":5,"localEndpoint":{"serviceName":"back"}},{"traceId":"1","id":"b","kind":"CLIENT"}]`)
}
