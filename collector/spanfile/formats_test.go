package spanfile

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/spantest"
)

// A request web -> shop in the form of each store: a root, a call, and who serves it.
const (
	traceID = "5b8efff798038103d269b633813fc60c"
	webID   = "00000000000000a1"
	callID  = "00000000000000a2"
	shopID  = "00000000000000a3"
	// began is when the root began, in µs.
	began = 1718000000000000
)

// request is the request as it must be read.
func request() []spantest.Span {
	id := func(text string) (out [8]byte) { hex.Decode(out[:], []byte(text)); return out }
	span := func(own, parent, service string, kind trimtab.SpanKind, start, end int64) spantest.Span {
		s := spantest.Span{Span: trimtab.Span{SpanID: id(own), Kind: kind, Start: 1000 * (began + start), End: 1000 * (began + end), Adjusted: 1}, Attrs: map[string]string{"service.name": service}}
		if parent != "" {
			s.Parent = id(parent)
		}
		hex.Decode(s.TraceID[:], []byte(traceID))
		return s
	}
	return []spantest.Span{
		span(webID, "", "web", trimtab.SpanServer, 0, 50), span(callID, webID, "web", trimtab.SpanClient, 5, 45), span(shopID, callID, "shop", trimtab.SpanServer, 7, 40),
	}
}

// b64 is an id in base64, as protobuf's JSON has bytes.
func b64(id string) string {
	b, err := hex.DecodeString(id)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// resources are the ResourceSpans of the request, one per service, with ids by id.
func resources(id func(string) string, scopes string) []string {
	span := func(own, parent string, kind, start, end int) string {
		p := ""
		if parent != "" {
			p = fmt.Sprintf(`"parentSpanId":%q,`, id(parent))
		}
		return fmt.Sprintf(`{"traceId":%q,"spanId":%q,%s"name":"x","kind":%d,"startTimeUnixNano":"%d000","endTimeUnixNano":"%d000"}`, id(traceID), id(own), p, kind, began+start, began+end)
	}
	of := func(service, spans string) string {
		return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},%q:[{"scope":{},"spans":[%s]}]}`, service, scopes, spans)
	}
	return []string{of("web", span(webID, "", 2, 0, 50)+","+span(callID, webID, 3, 5, 45)), of("shop", span(shopID, callID, 2, 7, 40))}
}

func same(id string) string { return id }

// otlpRequest is one OTLP request, under a key.
func otlpRequest(key string) string {
	return fmt.Sprintf(`{%q:[%s]}`, key, strings.Join(resources(same, "scopeSpans"), ","))
}

// jaegerSpans are the spans in Jaeger's form; process says whose each is.
func jaegerSpans(process func(service string) string, tags func(kind string) string) []string {
	span := func(own, parent, service, kind string, start, end int) string {
		refs := ""
		if parent != "" {
			refs = fmt.Sprintf(`{"refType":"CHILD_OF","traceID":%q,"spanID":%q}`, traceID, parent)
		}
		return fmt.Sprintf(`{"traceID":%q,"spanID":%q,"flags":1,"operationName":"x","references":[%s],"startTime":%d,"startTimeMillis":%d,"duration":%d,%s,"logs":[],%s}`,
			traceID, own, refs, began+start, (began+start)/1000, end-start, tags(kind), process(service))
	}
	return []string{span(webID, "", "web", "server", 0, 50), span(callID, webID, "web", "client", 5, 45), span(shopID, callID, "shop", "server", 7, 40)}
}

func listed(kind string) string {
	return fmt.Sprintf(`"tags":[{"key":"span.kind","type":"string","value":%q},{"key":"error","type":"bool","value":"false"}]`, kind)
}

func asField(kind string) string {
	return fmt.Sprintf(`"tags":[],"tag":{"span@kind":%q,"http@status_code":200}`, kind)
}

func inSpan(service string) string {
	return fmt.Sprintf(`"process":{"serviceName":%q,"tags":[]}`, service)
}

// jaegerDoc is an answer of Jaeger's API.
func jaegerDoc() string { return `{"data":[` + jaegerTraceDoc() + `],"total":0,"errors":null}` }

func jaegerTraceDoc() string {
	spans := jaegerSpans(func(service string) string { return fmt.Sprintf(`"processID":"p_%s"`, service) }, listed)
	return fmt.Sprintf(`{"traceID":%q,"spans":[%s],"processes":{"p_web":{"serviceName":"web"},"p_shop":{"serviceName":"shop"}}}`, traceID, strings.Join(spans, ","))
}

// hits are documents of Jaeger's indices of Elasticsearch.
func hits(tags func(string) string) []string {
	var out []string
	for i, s := range jaegerSpans(inSpan, tags) {
		out = append(out, fmt.Sprintf(`{"_index":"jaeger-span-2024-06-10","_id":"x%d","_score":1.0,"_source":%s}`, i, s))
	}
	return out
}

// zipkinDoc is the request in Zipkin's form: both halves of the call with ids of their own.
func zipkinDoc() string {
	span := func(own, parent, service, kind string, start, end int) string {
		return fmt.Sprintf(`{"traceId":%q,"id":%q,"parentId":%q,"kind":%q,"timestamp":%d,"duration":%d,"localEndpoint":{"serviceName":%q}}`, traceID, own, parent, kind, began+start, end-start, service)
	}
	return "[" + strings.ReplaceAll(span(webID, "", "web", "SERVER", 0, 50), `"parentId":"",`, "") + "," + span(callID, webID, "web", "CLIENT", 5, 45) + "," + span(shopID, callID, "shop", "SERVER", 7, 40) + "]"
}

// zipkinV1Doc is the request in version 1 of that form, where annotations have kind and service.
func zipkinV1Doc() string {
	span := func(own, parent, service, from, to string, start, end int) string {
		endpoint := fmt.Sprintf(`"endpoint":{"serviceName":%q,"ipv4":"10.0.0.1","port":80}`, service)
		return fmt.Sprintf(`{"traceId":%q,"id":%q,%s"name":"x","annotations":[{"timestamp":%d,"value":%q,%s},{"timestamp":%d,"value":%q,%s}],"binaryAnnotations":[]}`,
			traceID, own, parent, began+start, from, endpoint, began+end, to, endpoint)
	}
	return "[" + span(webID, "", "web", "sr", "ss", 0, 50) + "," + span(callID, `"parentId":"`+webID+`",`, "web", "cs", "cr", 5, 45) + "," + span(shopID, `"parentId":"`+callID+`",`, "shop", "sr", "ss", 7, 40) + "]"
}

// packedZstd compresses.
func packedZstd(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

func packedGzip(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sized writes the length before each message.
func sized(messages ...string) string {
	var out []byte
	for _, m := range messages {
		out = binary.BigEndian.AppendUint32(out, uint32(len(m)))
		out = append(out, m...)
	}
	return string(out)
}

// wide returns a text in UTF-16.
func wide(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// indented is a document as people read it.
func indented(t testing.TB, doc string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(doc), "", "    "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// otlpProto is the request in protobuf.
func otlpProto(t testing.TB) string {
	t.Helper()
	var m collectortrace.ExportTraceServiceRequest
	if err := protojson.Unmarshal([]byte(fmt.Sprintf(`{"resourceSpans":[%s]}`, strings.Join(resources(b64, "scopeSpans"), ","))), &m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// forms are the request in all forms that are read.
func forms(t testing.TB) map[string]string {
	lines := func(docs ...string) string { return strings.Join(docs, "\n") + "\n" }
	batch := func(key string) string { return fmt.Sprintf(`{%q:{"_index":"jaeger-span"}}`, key) }
	es, otlpDoc := jaegerSpans(inSpan, listed), otlpRequest("resourceSpans")
	separate := make([]string, 0, 2)
	for _, r := range resources(same, "scopeSpans") {
		separate = append(separate, `{"resourceSpans":[`+r+`]}`)
	}
	logged := func(prefix string) string {
		return lines(prefix+resources(same, "scopeSpans")[0], prefix+resources(same, "scopeSpans")[1])
	}
	whole := resources(same, "scopeSpans")
	stamp := "2024-06-10T06:13:20.000000000Z stdout "
	dockerLine := func(text string) string {
		b, err := json.Marshal(map[string]string{"log": text, "stream": "stdout"})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	docker, err := json.Marshal(map[string]string{"log": resources(same, "scopeSpans")[0] + "\n", "stream": "stdout"})
	if err != nil {
		t.Fatal(err)
	}
	proto := otlpProto(t)
	return map[string]string{
		"OTLP":                                otlpDoc,
		"OTLP, indented":                      indented(t, otlpDoc),
		"OTLP in base64":                      `{"resourceSpans":[` + strings.Join(resources(b64, "scopeSpans"), ",") + `]}`,
		"OTLP, a list of requests":            "[" + strings.Join(separate, ",\n") + "]",
		"OTLP, several documents":             indented(t, separate[0]) + "\n" + indented(t, separate[1]),
		"OTLP, several on a line":             separate[0] + separate[1],
		"OTLP, separated texts":               "\x1e" + separate[0] + "\n\x1e" + separate[1] + "\n",
		"file exporter":                       lines(separate...),
		"file exporter, with commas":          strings.Join(separate, ",\n") + ",\n",
		"file exporter, CR LF":                strings.Join(separate, "\r\n\r\n") + "\r\n",
		"file exporter, zstd":                 sized(packedZstd(t, separate[0]), packedZstd(t, separate[1])),
		"file exporter, zstd, new":            packedZstd(t, lines(separate...)),
		"file exporter, zstd, lines":          packedZstd(t, separate[0]+"\n") + packedZstd(t, separate[1]+"\n"),
		"file exporter, protobuf":             sized(proto),
		"file exporter, protobuf, zstd":       sized(packedZstd(t, proto)),
		"OTLP in protobuf":                    proto,
		"Tempo's second API in protobuf":      string(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(proto))),
		"Tempo":                               `{"batches":[` + strings.Join(resources(b64, "scopeSpans"), ",") + `]}`,
		"Tempo's second API":                  `{"trace":{"resourceSpans":[` + strings.Join(resources(b64, "scopeSpans"), ",") + `]},"metrics":{"inspectedBytes":"5"},"status":"COMPLETE"}`,
		"Grafana's download":                  indented(t, `{"batches":[`+strings.Join(resources(same, "instrumentationLibrarySpans"), ",")+`]}`),
		"Jaeger's third API":                  `{"result":` + otlpDoc + `}`,
		"Jaeger's third API, a stream":        lines(`{"result":`+separate[0]+`}`, `{"result":`+separate[1]+`}`),
		"logging-otlp":                        logged(""),
		"logging-otlp, a log":                 "Jun 10, 2024 6:13:20 AM io.opentelemetry.exporter.logging.otlp.OtlpJsonLoggingSpanExporter export\n" + logged("INFO: "),
		"logging-otlp, of a container":        logged("2024-06-10T06:13:20.000000000Z stdout F "),
		"logging-otlp, of Docker":             lines(string(docker), resources(same, "scopeSpans")[1]),
		"logging-otlp, cut by a container":    lines(stamp+"P "+whole[0][:99], stamp+"P "+whole[0][99:300], stamp+"F "+whole[0][300:], stamp+"F "+whole[1]),
		"logging-otlp, cut, with a beginning": lines(stamp+"F INFO started", stamp+"P INFO: "+whole[0][:99], stamp+"F "+whole[0][99:], stamp+"F "+whole[1]),
		"logging-otlp, cut by Docker":         lines(dockerLine(whole[0][:99]), dockerLine(whole[0][99:]+"\n"), dockerLine(whole[1]+"\n")),
		"a list of resources":                 "[" + logged("")[:len(resources(same, "scopeSpans")[0])] + "," + resources(same, "scopeSpans")[1] + "]",
		"Jaeger":                              jaegerDoc(),
		"Jaeger, indented":                    indented(t, jaegerDoc()),
		"Jaeger, a trace alone":               jaegerTraceDoc(),
		"Jaeger, a list of traces":            "[" + jaegerTraceDoc() + "]",
		"Jaeger, twice in a list":             "[" + jaegerDoc() + "," + jaegerDoc() + "]",
		"Jaeger in UTF-8 with a mark":         "\ufeff" + jaegerDoc(),
		"Jaeger in UTF-16":                    wide(binary.LittleEndian, "\ufeff"+jaegerDoc()+"\r\n"),
		"Jaeger in UTF-16, the other order":   wide(binary.BigEndian, "\ufeff"+indented(t, jaegerDoc())),
		"Jaeger in UTF-16 without a mark":     wide(binary.LittleEndian, jaegerDoc()),
		"Jaeger, gzip":                        packedGzip(t, jaegerDoc()),
		"Jaeger, gzip twice":                  packedGzip(t, packedGzip(t, jaegerDoc())),
		"Elasticsearch, an answer":            `{"took":5,"hits":{"total":{"value":3},"max_score":1.0,"hits":[` + strings.Join(hits(listed), ",") + `]}}`,
		"Elasticsearch, indented":             indented(t, `{"took":5,"timed_out":false,"hits":{"hits":[`+strings.Join(hits(asField), ",")+`]}}`),
		"Elasticsearch, several answers":      `{"took":1,"responses":[{"hits":{"hits":[` + hits(listed)[0] + `]}},{"hits":{"hits":[` + strings.Join(hits(listed)[1:], ",") + `]}}]}`,
		"Elasticsearch, dumped lines":         lines(hits(asField)...),
		"Elasticsearch, a dumped list":        "[\n" + strings.Join(hits(listed), ",\n") + "\n]",
		"Elasticsearch, lines of a bulk":      lines(batch("index"), es[0], batch("create"), es[1], batch("index"), es[2]),
		"Elasticsearch, the spans alone":      lines(es...),
		"Elasticsearch, with names":           lines(append(hits(listed), `{"_index":"jaeger-service","_source":{"serviceName":"web","operationName":"x"}}`)...),
		"Zipkin":                              zipkinDoc(),
		"Zipkin's version 1":                  zipkinV1Doc(),
		"Zipkin, a list of traces":            "[" + zipkinDoc() + "]",
		"Zipkin, a span a line":               strings.ReplaceAll(strings.Trim(zipkinDoc(), "[]"), "},{", "}\n{"),
		"Jaeger's file and one of OTLP":       lines(jaegerDoc(), separate[0]),
		"file exporter, torn by a new start":  lines(separate[0], separate[1][:100], separate[1]),
	}
}

func TestARequestIsTheSameInTheFormOfEachStore(t *testing.T) {
	for name, doc := range forms(t) {
		t.Run(name, func(t *testing.T) {
			r, err := readAll(Options{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(request(), spantest.Unpack(r.Frames)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAllFormsTogetherAreOneRequest(t *testing.T) {
	var docs []string
	for name, doc := range forms(t) {
		if !strings.HasPrefix(name, "Zipkin") { // which the reader gives ids of their own
			docs = append(docs, doc)
		}
	}
	r, err := readAll(Options{}, docs...)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(request(), spantest.Unpack(r.Frames)); d != "" {
		t.Error(d)
	}
}

func FuzzAnyForm(f *testing.F) {
	for _, doc := range forms(f) {
		f.Add([]byte(doc))
	}
	for doc := range aliensAndFaults() {
		f.Add([]byte(doc))
	}
	fuzz(f)
}

func TestAReferenceIsIntoItsTraceAlsoWhereOneIDIsShort(t *testing.T) {
	short := strings.ReplaceAll(jaegerDoc(), `"CHILD_OF","traceID":"`+traceID, `"CHILD_OF","traceID":"`+traceID[16:])
	if d := cmp.Diff(request(), read(t, short)); d != "" {
		t.Error(d)
	}
	spans := strings.ReplaceAll(jaegerDoc(), `{"traceID":"`+traceID+`","spanID"`, `{"traceID":"`+traceID[16:]+`","spanID"`)
	if d := cmp.Diff(request(), read(t, spans, jaegerDoc())); d != "" {
		t.Error(d)
	}
}

func TestAnIDThatClientAndServerShareIsTwoSpansInAnyFormat(t *testing.T) {
	jaeger := jaegerSpans(inSpan, listed)
	jaeger[2] = strings.NewReplacer(`"spanID":"`+callID, `"spanID":"`+webID, `"spanID":"`+shopID, `"spanID":"`+callID).Replace(jaeger[2])
	for name, doc := range map[string]string{
		"Jaeger":        `{"data":[{"spans":[` + strings.Join(jaeger, ",") + `]}]}`,
		"Elasticsearch": strings.Join(jaeger, "\n") + "\n",
		"OTLP":          strings.NewReplacer(`"spanId":"`+shopID, `"spanId":"`+callID, `"parentSpanId":"`+callID, `"parentSpanId":"`+webID).Replace(otlpRequest("resourceSpans")),
		"Zipkin":        strings.NewReplacer(`"id":"`+shopID, `"id":"`+callID, `"parentId":"`+callID, `"parentId":"`+webID).Replace(zipkinDoc()),
	} {
		spans := read(t, doc)
		if len(spans) != 3 {
			t.Fatalf("%s: %+v", name, spans)
		}
		root, client, served := spans[0], spans[1], spans[2]
		if client.Parent != root.SpanID || served.Parent != client.SpanID || served.SpanID == client.SpanID || served.Attrs["service.name"] != "shop" || served.Kind != trimtab.SpanServer {
			t.Errorf("%s: %+v", name, spans)
		}
	}
}
