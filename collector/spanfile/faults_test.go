package spanfile

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// aliensAndFaults are documents of which nothing can be read, with what must be said.
func aliensAndFaults() map[string]string {
	return map[string]string{
		"":     "the file is empty",
		" \n ": "the file is empty",
		`{}`:   "this is an empty object",
		`{"traces":[{"traceID":"1","rootServiceName":"web","startTimeUnixNano":"1"}],"metrics":{}}`: "results of a search of Tempo, which have no spans",
		`{"data":["web","shop"],"total":2}`:                                                                  "a list of names",
		`["web","shop"]`:                                                                                     "a list of names",
		`{"data":[{"parent":"web","child":"shop","callCount":5}]}`:                                           "a graph of dependencies",
		`[{"parent":"web","child":"shop","callCount":5}]`:                                                    "a graph of dependencies",
		`{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`:                                      `an answer that says what went wrong: "trace not found"`,
		`{"error":{"httpCode":404,"message":"No traces found"}}`:                                             `"No traces found"`,
		`{"message":"trace not found","traceID":"1"}`:                                                        `"trace not found"`,
		`{"resourceMetrics":[{"scopeMetrics":[]}]}`:                                                          "metrics of OpenTelemetry",
		`{"resourceLogs":[]}` + "\n" + `{"resourceLogs":[]}`:                                                 "line 1, byte 0: this is logs of OpenTelemetry",
		`{"traceEvents":[{"ph":"X"}]}`:                                                                       "Chrome's trace format",
		`{"Name":"x","SpanContext":{"TraceID":"1"}}`:                                                         "as the Go SDK prints them",
		`{"name":"x","context":{"trace_id":"0x1"},"parent_id":null,"start_time":"2"}`:                        "as the Python SDK prints them",
		`{"spans":[{"traceId":"AAA=","spanId":"AAA=","operationName":""}]}`:                                  "Jaeger's gRPC API",
		`[{"traceId":"1","spanId":"2","startTimeUnixNano":1}]`:                                               "without the resource that sent them",
		`{"Traces":[{"Id":"1-2","Segments":[]}],"UnprocessedTraceIds":[]}`:                                   "AWS X-Ray",
		`[[{"trace_id":1,"span_id":2,"meta":{}}]]`:                                                           "Datadog",
		`{"hits":{"hits":[{"_source":{"@timestamp":"x","processor":{"event":"span"},"trace":{"id":"1"}}}]}}`: "Elastic APM",
		`{"schema":{"fields":[]},"data":{"values":[[1]]}}`:                                                   "data frames of Grafana",
		`{"series":[{"fields":[{"name":"traceID"}]}],"state":"Done"}`:                                        "data frames of Grafana",
		"\x0c\x00\x00\x00\x01\x0a\x00\x01":                                                                   "Zipkin in Thrift",
		"<!DOCTYPE html><html>":                                                                              "HTML or XML",
		"HTTP/1.1 200 OK\r\n\r\n{}":                                                                          "an answer with HTTP's own lines",
		"PK\x03\x04....":                                                                                     "a zip archive",
		"traceID,spanID,parent,duration\n1,2,3,4\n":                                                          "(CSV)",
		"2024-06-10T06:13:20Z\tinfo\tResourceSpans #0\nResource SchemaURL: \n":                               "the Collector's debug exporter",
		"go 1.26 trace\x00\x00\x00":                                                                          "Go's runtime",
		`{"hits":{"hits":[{"_index":"jaeger-span","_id":"x","fields":{}}]}}`:                                 "without their documents",
		`{"_source":{"traceId":"1","spanId":"2","durationInNanos":5}}`:                                       "Data Prepper",
		"PAR1....":             "a Parquet file",
		"\x0a\x03\x01\x02\x03": "this is protobuf",
		"hello":                `line 1, byte 0: neither an object nor a list of JSON begins with "hello"`,
		jaegerDoc()[:300]:      "line 1, byte 300: ends within a value: the rest of it is missing",
		"{\n \"data\": [\n  {\"traceID\": \"1\", \"spans\": [x]}]}":                      `line 3, byte 42: unexpected 'x'`,
		`{"data":[` + strings.Repeat("[", 2000) + "1" + strings.Repeat("]", 2000) + `]}`: "nested more than 8 deep",
		`{"resourceSpans":[{"a":` + strings.Repeat("[", 2000) + `}]}`:                    "nested more than 1000 deep",
		`{"data":[],"resourceSpans":[]}`:                                                 "two formats in one",
		jaegerDoc() + "\n$ ":                                                             `line 2, byte`,
		"\xff\xfe\x00\x00{\x00\x00\x00":                                                  "UTF-32",
		"\xff\xfe{\x00\"":                                                                "UTF-16 ends within a character",
	}
}

func TestWhatIsNotReadIsCalledByItsNameWithPlaceAndCause(t *testing.T) {
	for doc, want := range aliensAndFaults() {
		r, err := readAll(Options{}, doc)
		if doc == jaegerDoc()+"\n$ " {
			// A prompt behind a document is passed over, and told.
			if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], want) {
				t.Errorf("%v, %+v", err, r)
			}
			continue
		}
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", doc, err, want)
		}
	}
}

func TestWholeLinesAreReadWhereOthersAreCut(t *testing.T) {
	whole := forms(t)["file exporter"]
	cut := otlpRequest("resourceSpans")
	key, scopes, ends := strings.Index(cut, `{"key"`), strings.Index(cut, `,"scopeSpans"`), strings.Index(whole, "\n")
	if key < 0 || scopes < 0 || ends < 0 {
		t.Fatal("the form is another")
	}
	for name, c := range map[string]struct{ doc, note string }{
		"the last":               {whole + cut[:len(cut)-7], "a line is cut and is passed over: line 3, byte"},
		"the last, a word":       {whole + `{"resour`, "ends within a value"},
		"the first":              {cut[40:] + "\n" + whole, "a line is cut and is passed over: line 1, byte 0"},
		"the first, with braces": {cut[key:] + "\n" + whole, "line 1, byte"},
		"the first, torn":        {cut[:len(cut)/2] + "\n" + whole, "line 1, byte"},
		"the first, at a comma":  {cut[:scopes+1] + "\n" + whole, "line 1, byte"},
		"one between":            {whole + cut[:50] + "\n" + whole, "line 3, byte"},
		"the end of an archive":  {packedGzip(t, whole+strings.Repeat(whole, 50))[:len(packedGzip(t, whole+strings.Repeat(whole, 50)))-9], "the gzip file is cut"},
		"the last message":       {sized(whole) + sized(cut)[:80], "message 2 is cut"},
		"the last message, zstd": {sized(packedZstd(t, whole)) + "\x00\x00", "message 2 is cut"},
		"the last of a log":      {"2024-06-10T06:13:20Z stdout F " + strings.Replace(strings.TrimSpace(whole), "\n", "\n2024-06-10T06:13:20Z stdout F ", 1) + "\n2024-06-10T06:13:20Z stdout P {\"resour\n", "a line is cut"},
		"metrics between":        {whole + `{"resourceMetrics":[]}` + "\n" + whole, "a line has no spans and is passed over: line 3, byte"},
		"words between":          {"starting\n" + whole + "stopped\n", "2 lines are no JSON and are passed over, the first of them: line 1, byte 0"},
		"the last document":      {whole[:ends] + strings.TrimSpace(strings.SplitAfter(whole, "\n")[1]) + cut[:99], "the last of 3 documents is passed over"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readAll(Options{}, c.doc)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(request(), spantest.Unpack(r.Frames)); d != "" {
				t.Error(d)
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestAFileOfBrokenLinesIsRefused(t *testing.T) {
	line := otlpRequest("resourceSpans")
	if _, err := readAll(Options{}, line+"\n"+strings.Repeat(line[:90]+"\n", 9)); err == nil || !strings.Contains(err.Error(), "9 of 10 lines are no whole document: line 2, byte") {
		t.Errorf("%v", err)
	}
	r := NewReader(Options{})
	if err := r.Read(strings.NewReader(jaegerDoc())); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(strings.NewReader(strings.Repeat(line, 3)[:3*len(line)-5] + `"x"}]`)); err == nil {
		t.Error("no error")
	}
	if n := r.Recording().Spans; n != 3 {
		t.Errorf("%d spans, of which some are of a file that was refused", n)
	}
}

// endless is a file that goes on for so many bytes.
type endless struct {
	head, body string
	left       int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(b, e.head)
	e.head = e.head[n:]
	for n < len(b) {
		n += copy(b[n:], e.body)
	}
	e.left -= n
	return n, nil
}

func TestOfALongFileAPartIsInMemory(t *testing.T) {
	var before, after runtime.MemStats
	for name, e := range map[string]*endless{
		"spaces":     {"", strings.Repeat(" ", 1<<16), 1 << 29},
		"a text":     {`{"data":["`, strings.Repeat("x", 1<<16), 1 << 29},
		"a list":     {`{"data":[`, strings.Repeat("[],", 1<<12), 1 << 29},
		"an unknown": {`{"x":[0`, strings.Repeat(",0", 1<<12), 1 << 29},
		"a line":     {`{"resourceSpans":[]}` + "\n" + `{"a":"`, strings.Repeat("x", 1<<16), 1 << 29},
		"objects":    {"", strings.Repeat("{\"a\":1}\n", 1<<12), 1 << 29},
		"no JSON":    {"", strings.Repeat("hello ", 1<<12), 1 << 29},
	} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReader(Options{})
		err := r.Read(e)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if more := after.TotalAlloc - before.TotalAlloc; more > 512<<20 {
			t.Errorf("%s: %d MiB were allocated for 512", name, more>>20)
		}
	}
	r := NewReader(Options{MaxSpans: 9000})
	if err := r.Read(strings.NewReader("[" + strings.Repeat(zipkinDoc()+",", 9000) + "[]]")); err == nil || !strings.Contains(err.Error(), "more than 9000 spans: give fewer traces") {
		t.Errorf("%v", err)
	}
	if err := NewReader(Options{MaxBytes: 1000}).Read(strings.NewReader(jaegerDoc())); err == nil || !strings.Contains(err.Error(), "longer than what is read of one") {
		t.Errorf("%v", err)
	}
}

func TestALongListOfOneSendersSpansIsReadBitByBit(t *testing.T) {
	one := resources(same, "scopeSpans")[1]
	at := strings.Index(one, `"spans":[`) + len(`"spans":[`)
	span := one[at : len(one)-len(`]}]}`)]
	var list strings.Builder
	const n = 9000
	for i := range n {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(strings.Replace(span, shopID, string(b16(i+1)), 1))
	}
	resource := one[1:strings.Index(one, `,"scopeSpans"`)]
	for name, doc := range map[string]string{
		"the resource first": `{` + resource + `,"scopeSpans":[{"scope":{},"spans":[` + list.String() + `]}],"schemaUrl":""}`,
		"the resource last":  `{"instrumentationLibrarySpans":[{"spans":[` + list.String() + `]}],` + resource + `}`,
	} {
		spans := read(t, `{"resourceSpans":[`+doc+`]}`)
		if len(spans) != n {
			t.Fatalf("%s: %d spans, want %d", name, len(spans), n)
		}
		for _, s := range spans {
			if s.Attrs["service.name"] != "shop" {
				t.Fatalf("%s: %+v", name, s)
			}
		}
	}
}

// b16 is a number as a span's id.
func b16(n int) []byte {
	out := []byte("0000000000000000")
	for i := 15; n > 0; i, n = i-1, n/16 {
		out[i] = "0123456789abcdef"[n%16]
	}
	return out
}
