package spanfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
	"github.com/trimtab/trimtab/collector/otlp"
)

// kind is the type of an object in a file.
type kind uint8

const (
	// unknown objects have no spans that are read.
	unknown kind = iota
	// container objects hold lists of what follows, and may be as long as a file.
	container
	// packed objects contain one of the following: a document of a search engine, a line of a
	// log.
	packed
	// idle objects say something about the next one, or about no span.
	idle
	jaegerTrace
	jaegerSpan
	zipkinSpan
	resourceSpans
)

// holder says which objects the value of a key contains.
type holder uint8

const (
	holdsNothing holder = iota
	// holdsAny: objects of any kind.
	holdsAny
	// holdsJaeger: a list of Jaeger's traces.
	holdsJaeger
	// holdsOTLP: a list of ResourceSpans.
	holdsOTLP
)

// holderOf returns which objects a key of a container contains, by the first byte of its value.
func holderOf(key string, first byte) holder {
	switch {
	case first == '[' && otlp.HoldsResourceSpans(key):
		return holdsOTLP
	case first == '[' && key == "data":
		return holdsJaeger
	case first == '{' || first == '[':
		switch key {
		case "result", "trace", "traces", "data", "hits", "responses", "response", "rawResponse", "results", "items":
			return holdsAny
		}
	}
	return holdsNothing
}

// marks are the keys of an object that identify its kind.
type marks uint16

const (
	hasTraceID marks = 1 << iota // traceID, Jaeger's spelling
	hasSpanID
	hasSpans
	hasProcesses
	hasTraceid // traceId, Zipkin's and OTLP's
	hasID
	hasScopes
	hasSource
	hasLog
	hasAction
	hasTimestamp
	hasMore // any other key
	hasHolder
)

// markOf returns the mark of a key, by the first byte of its value.
func markOf(key []byte, first byte) marks {
	switch string(key) {
	case "traceID":
		return hasTraceID
	case "spanID":
		return hasSpanID
	case "traceId":
		return hasTraceid
	case "id":
		return hasID
	case "processes":
		return hasProcesses
	case "@timestamp":
		return hasTimestamp
	case "spans":
		if first == '[' {
			return hasSpans
		}
	case "_source":
		if first == '{' {
			return hasSource
		}
	case "log", "message", "body", "MESSAGE", "line":
		if first == '"' {
			return hasLog
		}
	case "index", "create", "update", "delete":
		if first == '{' {
			return hasAction
		}
	}
	if first == '[' && otlp.HoldsScopes(string(key)) {
		return hasScopes
	}
	if holderOf(string(key), first) != holdsNothing {
		return hasHolder
	}
	return hasMore
}

// kindOf returns the kind of an object with such keys.
func kindOf(m marks) kind {
	has := func(want marks) bool { return m&want == want }
	switch {
	case has(hasSource):
		return packed
	case m == hasAction:
		return idle
	case has(hasScopes):
		return resourceSpans
	case has(hasTraceID | hasSpanID):
		return jaegerSpan
	case has(hasSpans) && !has(hasTraceid):
		return jaegerTrace
	case has(hasTraceid | hasID):
		return zipkinSpan
	case has(hasLog):
		return packed
	}
	return unknown
}

// shape returns the kind and the length of the object at the beginning of b. A container, whose
// length is unknown, is recognised by its first key that holds something.
func shape(b []byte, mayHold bool) (k kind, n int, err error) {
	var seen marks
	at := 1
	for first := true; ; first = false {
		if at = spaces(b, at); at == len(b) {
			return unknown, 0, jsonvalue.ErrCut
		}
		if b[at] == '}' && (first || b[at-1] != ',') {
			return kindOf(seen), at + 1, nil
		}
		if !first {
			if b[at] != ',' {
				return unknown, 0, unexpected(b, at)
			}
			at = spaces(b, at+1)
		}
		if at < len(b) && b[at] != '"' {
			return unknown, 0, unexpected(b, at)
		}
		end, err := endAt(b, at)
		if err != nil {
			return unknown, 0, err
		}
		key := jsonvalue.Value(b[spaces(b, at):end]).Raw()
		if at = spaces(b, end); at < len(b) && b[at] != ':' {
			return unknown, 0, unexpected(b, at)
		}
		if at = spaces(b, min(at+1, len(b))); at >= len(b) {
			return unknown, 0, jsonvalue.ErrCut
		}
		m := markOf(key, b[at])
		if m == hasHolder && mayHold && seen&hasTimestamp == 0 {
			return container, 0, nil
		}
		seen |= m
		if at, err = endAt(b, at); err != nil {
			return unknown, 0, err
		}
	}
}

// kindIn returns the kind of an object with valid syntax.
func kindIn(v jsonvalue.Value) kind {
	var seen marks
	for key, m := range v.Fields() {
		seen |= markOf(key, m[0])
	}
	return kindOf(seen)
}

// spaces returns the offset of the first byte from at that is no space, len(b) without one.
func spaces(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}

// endAt returns the offset behind the value at b[at:].
func endAt(b []byte, at int) (int, error) {
	n, err := jsonvalue.End(b[at:])
	if err == nil {
		return at + n, nil
	}
	var wrong *jsonvalue.SyntaxError
	if errors.As(err, &wrong) {
		return 0, &jsonvalue.SyntaxError{Offset: at + wrong.Offset, What: wrong.What}
	}
	return 0, err
}

func unexpected(b []byte, at int) error {
	return &jsonvalue.SyntaxError{Offset: at, What: fmt.Sprintf("unexpected %q", b[at])}
}

// foreign is an object that is known and not read, by the keys that it has.
type foreign struct {
	keys []string
	name string
}

// foreigners lists the recognised documents that are not read.
func foreigners() []foreign {
	return []foreign{
		{[]string{"rootServiceName"}, "results of a search of Tempo, which have no spans: download each trace (GET /api/v2/traces/ID)"},
		{[]string{"rootTraceName"}, "results of a search of Tempo, which have no spans: download each trace (GET /api/v2/traces/ID)"},
		{[]string{"resourceMetrics"}, "metrics of OpenTelemetry, which have no spans"},
		{[]string{"resourceLogs"}, "logs of OpenTelemetry, which have no spans"},
		{[]string{"resourceProfiles"}, "profiles of OpenTelemetry, which have no spans"},
		{[]string{"scopeMetrics"}, "metrics of OpenTelemetry, which have no spans"},
		{[]string{"scopeLogs"}, "logs of OpenTelemetry, which have no spans"},
		{[]string{"parent", "child", "callCount"}, "a graph of dependencies, which has no spans"},
		{[]string{"traceEvents"}, "a profile in Chrome's trace format, which is no distributed trace"},
		{[]string{"SpanContext"}, "spans as the Go SDK prints them (stdouttrace), which are not read: use the Collector's file exporter"},
		{[]string{"context", "start_time"}, "spans as the Python SDK prints them (ConsoleSpanExporter), which are not read: use the Collector's file exporter"},
		{[]string{"instrumentationScope", "traceId"}, "spans as an SDK prints them, which are not read: use the Collector's file exporter"},
		{[]string{"traceId", "spanId", "operationName"}, "spans of Jaeger's gRPC API (api_v2), which are not read: download them by GET /api/traces or /api/v3/traces"},
		{[]string{"traceId", "spanId", "durationInNanos"}, "documents of OpenSearch's Data Prepper, which are not read"},
		{[]string{"traceId", "spanId"}, "spans of OTLP without the resource that sent them: whose they are is not told"},
		{[]string{"Segments"}, "traces of AWS X-Ray, which are not read"},
		{[]string{"Traces"}, "traces of AWS X-Ray, which are not read"},
		{[]string{"trace_id", "span_id", "meta"}, "traces of Datadog, which are not read"},
		{[]string{"trace_id", "span_id", "resource"}, "spans as the Collector's Elasticsearch exporter stores them, which are not read: use its file exporter"},
		{[]string{"_index", "fields"}, "hits of a search without their documents (_source)"},
		{[]string{"processor", "@timestamp"}, "documents of Elastic APM, which are not read"},
		{[]string{"segmentId", "endpointNames"}, "traces of SkyWalking, which are not read"},
		{[]string{"projectId", "spans"}, "traces of Google Cloud Trace, which are not read"},
		{[]string{"schema", "data"}, "data frames of Grafana, which are not read: use \"Download\" of the trace's view"},
		{[]string{"values"}, "data frames of Grafana, which are not read: use \"Download\" of the trace's view"},
		{[]string{"series", "state"}, "data frames of Grafana, which are not read: use \"Download\" of the trace's view"},
		{[]string{"frames"}, "data frames of Grafana, which are not read: use \"Download\" of the trace's view"},
		{[]string{"serviceName", "operationName"}, "names of services and operations, which are no spans"},
		{[]string{"aggregations"}, "counts of a search, without its hits"},
		{[]string{"apiVersion", "kind"}, "an object of Kubernetes, which has no spans"},
	}
}

// nameOf describes an object that is not read.
func nameOf(v jsonvalue.Value) string {
	keys := map[string]jsonvalue.Value{}
	var order []string
	for key, m := range v.Members() {
		if keys[key] == nil && len(order) < 5 {
			order = append(order, fmt.Sprintf("%.40q", key))
		}
		keys[key] = m
	}
	for _, f := range foreigners() {
		if !slices.ContainsFunc(f.keys, func(key string) bool { return keys[key].Absent() }) {
			return f.name
		}
	}
	for _, key := range []string{"error", "errors", "message", "msg", "err", "reason", "statusMessage"} {
		if text := complaintOf(keys[key]); text != "" {
			return "an answer that says what went wrong: " + text
		}
	}
	if len(order) == 0 {
		return "an empty object"
	}
	return "an object that no format of traces has, with " + strings.Join(order, ", ")
}

// complaintOf returns the first text of an answer's error.
func complaintOf(v jsonvalue.Value) string {
	if text, ok := v.Text(); ok {
		return fmt.Sprintf("%.200q", text)
	}
	if v.IsArray() {
		v = v.First() // which says enough
	}
	for _, key := range []string{"msg", "message", "reason", "error", "type"} {
		if text, ok := v.Member(key).Text(); ok {
			return fmt.Sprintf("%.200q", text)
		}
	}
	return ""
}
