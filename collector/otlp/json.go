package otlp

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// ScanJSON packs the spans of an ExportTraceServiceRequest in OTLP's JSON:
// lowerCamelCase keys, ids in hexadecimal, 64-bit integers as text or number,
// enums as integers. What else senders and stores write, and what can mean one
// thing only, is read too:
//
//	resource_spans, start_time_unix_nano, …      keys as in the .proto files
//	"value": {"Value": {"StringValue": …}}       Go's own JSON of generated types
//	instrumentationLibrarySpans                  scopeSpans before OTLP 0.15
//	batches; {"trace": …}                        Tempo's API and Grafana's download
//	{"result": …}                                Jaeger's api/v3
//	{"low": l, "high": h}                        64 bits in JavaScript
//	"AAAAAAAAEAA=", {"type":"Buffer","data":…}   ids in base64, or as bytes
//	SPAN_KIND_SERVER, STATUS_CODE_ERROR          names of enums
//
// Spans under a key that is none of these are rejected into p. Errors and cache
// are as in [ScanRequest]; the cache must not be shared with it, for its keys
// are raw JSON.
func ScanJSON(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	request, err := jsonvalue.Parse(b)
	if err != nil {
		return err
	}
	if !request.IsObject() {
		return trimtab.Invalidf("read OTLP request: not an object")
	}
	return scanRequestJSON(request, cache, p, true)
}

// scanRequestJSON reads the lists of a request. outer: it may be wrapped.
func scanRequestJSON(request jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer, outer bool) error {
	for key, v := range request.Members() {
		var err error
		switch {
		case HoldsResourceSpans(key):
			err = each(v, key, func(rs jsonvalue.Value) error { return ScanResourceSpansJSON(rs, cache, p) })
		case outer && isWrapper(fieldName(key)) && v.IsObject():
			err = scanRequestJSON(v, cache, p, false)
		default:
			PassOverJSON(key, v, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HoldsResourceSpans reports whether a request may have its ResourceSpans under that key.
func HoldsResourceSpans(key string) bool {
	name := fieldName(key)
	return name == "resourceSpans" || name == "batches"
}

// HoldsScopes reports whether ResourceSpans may have their spans, by instrumentation library,
// under that key.
func HoldsScopes(key string) bool {
	name := fieldName(key)
	return name == "scopeSpans" || name == "instrumentationLibrarySpans"
}

// IsResource reports whether ResourceSpans have their resource, the sender, under that key.
func IsResource(key string) bool { return fieldName(key) == "resource" }

// isWrapper reports whether a whole request may be under that name.
func isWrapper(name string) bool { return name == "result" || name == "trace" }

// field is fieldName for a key's bytes; it allocates nothing for the keys that spans have.
func field(key []byte) []byte {
	if len(key) == 0 || bytes.IndexByte(key, '_') < 0 && (key[0] < 'A' || key[0] > 'Z') {
		return key
	}
	return []byte(fieldName(string(key)))
}

// fieldName returns the lowerCamelCase form of a key: protobuf's JSON may have
// the names of the .proto file, and Go's own JSON has those of its struct.
func fieldName(key string) string {
	if key == "" || (strings.IndexByte(key, '_') < 0 && (key[0] < 'A' || key[0] > 'Z')) {
		return key
	}
	var b strings.Builder
	for i, word := range strings.Split(key, "_") {
		switch {
		case word == "":
		case i == 0:
			b.WriteString(strings.ToLower(word[:1]) + word[1:])
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// PassOverJSON counts the spans under an unknown key. A receiver must ignore unknown keys, but
// report it if they may have held spans.
func PassOverJSON(key string, v jsonvalue.Value, p *collector.Packer) {
	if v.IsObject() || v.IsArray() {
		p.RejectUnread(key, countUnread(key, v, 4))
	}
}

// countUnread counts the elements of lists named spans, some levels deep.
func countUnread(key string, v jsonvalue.Value, levels int) (n int) {
	if key == "spans" {
		for range v.Elements() {
			n++
		}
		return n
	}
	if levels == 0 {
		return 0
	}
	for inner, m := range v.Members() {
		n += countUnread(inner, m, levels-1)
	}
	for e := range v.Elements() {
		for inner, m := range e.Members() {
			n += countUnread(inner, m, levels-1)
		}
	}
	return n
}

// each calls f for the elements of a list of objects, or null.
func each(list jsonvalue.Value, name string, f func(jsonvalue.Value) error) error {
	if list.Absent() {
		return nil
	}
	if !list.IsArray() {
		return trimtab.Invalidf("read OTLP request: %s is not a list", name)
	}
	for e := range list.Elements() {
		if !e.IsObject() {
			return trimtab.Invalidf("read OTLP request: %s holds %.20q", name, []byte(e))
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// ScanResourceSpansJSON packs the spans of one element of a request.
func ScanResourceSpansJSON(rs jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	var raw, scopes jsonvalue.Value
	others := 0
	for key, v := range rs.Fields() {
		switch string(field(key)) {
		case "resource":
			raw = v
		case "scopeSpans":
			if scopes != nil {
				others++
			}
			scopes = v
		case "schemaUrl":
		default:
			others++
		}
	}
	if err := SetResourceJSON(raw, cache, p); err != nil {
		return err
	}
	if others == 0 { // the usual order: spans need not be searched again
		return ScanScopesJSON(scopes, p)
	}
	for key, v := range rs.Members() {
		switch {
		case IsResource(key):
		case HoldsScopes(key):
			if err := each(v, key, func(scope jsonvalue.Value) error { return jsonScope(scope, p) }); err != nil {
				return err
			}
		default:
			PassOverJSON(key, v, p)
		}
	}
	return nil
}

// SetResourceJSON sets the sender of the spans that follow.
func SetResourceJSON(raw jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	resource, err := cache.Get(raw, jsonResource)
	if err != nil {
		return err
	}
	p.SetResource(resource)
	return nil
}

// ScanScopesJSON packs the spans of a list of scopes, of the resource that was set last.
func ScanScopesJSON(scopes jsonvalue.Value, p *collector.Packer) error {
	return each(scopes, "scopeSpans", func(scope jsonvalue.Value) error { return jsonScope(scope, p) })
}

func jsonScope(scope jsonvalue.Value, p *collector.Packer) error {
	for key, v := range scope.Members() {
		switch fieldName(key) {
		case "scope", "instrumentationLibrary":
		case "spans":
			if err := each(v, key, func(v jsonvalue.Value) error { return ScanSpanJSON(v, p) }); err != nil {
				return err
			}
		default:
			PassOverJSON(key, v, p)
		}
	}
	return nil
}

func jsonResource(raw []byte) (*collector.Resource, error) {
	v := jsonvalue.Value(raw)
	if !v.Absent() && !v.IsObject() {
		return nil, trimtab.Invalidf("read OTLP request: resource is not an object")
	}
	var attrs []trimtab.Attr
	err := each(v.Member("attributes"), "attributes", func(kv jsonvalue.Value) error {
		var a trimtab.Attr
		ok := false
		for key, v := range kv.Members() {
			switch fieldName(key) {
			case "key":
				a.Key, _ = v.Text()
			case "value":
				a.Value, ok, _ = jsonAny(v)
			}
		}
		if ok {
			attrs = append(attrs, a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return collector.NewResource(attrs), nil
}

// jsonAny returns a text, integer or boolean AnyValue as text; literal: it was no text. A
// number with a fraction is literal, and not ok.
func jsonAny(v jsonvalue.Value) (text string, ok, literal bool) {
	if inner := v.Member("Value"); inner.IsObject() {
		v = inner // Go's own JSON
	}
	for key, v := range v.Fields() {
		switch string(field(key)) {
		case "stringValue":
			text, ok = v.Text()
			literal = false
		case "boolValue":
			var b bool
			b, ok = v.Bool()
			text, literal = strconv.FormatBool(b), ok
		case "intValue":
			var n int64
			n, ok = v.Int()
			text, literal = strconv.FormatInt(n, 10), ok
		case "doubleValue":
			text, ok, literal = v.Number(), false, true
		}
	}
	return text, ok, literal
}

// ScanSpanJSON packs or rejects one span. A time or enum that cannot be read is
// an error of the whole request, as in protobuf's JSON.
func ScanSpanJSON(v jsonvalue.Value, p *collector.Packer) error {
	s, peer := trimtab.Span{Adjusted: 1}, p.Peer()
	var trace, id, parent, attributes jsonvalue.Value
	for key, v := range v.Fields() {
		if v.Absent() {
			continue
		}
		ok := true
		switch string(field(key)) {
		case "traceId":
			trace = v
		case "spanId":
			id = v
		case "parentSpanId":
			parent = v
		case "traceState":
			state, _ := v.Text()
			collector.ApplyTraceState([]byte(state), &s)
		case "startTimeUnixNano":
			s.Start, ok = v.Int()
		case "endTimeUnixNano":
			s.End, ok = v.Int()
		case "kind":
			s.Kind, ok = jsonKind(v)
		case "attributes":
			attributes = v
		case "status":
			var flags uint8
			flags, ok = jsonStatus(v)
			s.Flags |= flags
		}
		if !ok {
			return trimtab.Invalidf("read OTLP request: span with %s %.40q", key, []byte(v))
		}
	}
	hasParent := len(parent) > len(`""`)
	if hasToTell(s.Kind, !hasParent) {
		jsonAttributes(attributes, &s, peer)
		peer.Weigh(&s)
	}
	switch {
	case !jsonID(trace, s.TraceID[:]):
		p.Reject(collector.BadTraceID)
	case !jsonID(id, s.SpanID[:]):
		p.Reject(collector.BadSpanID)
	case hasParent && !jsonID(parent, s.Parent[:]):
		p.Reject(collector.BadParentID)
	default:
		p.AddCall(&s, peer.Name())
	}
	return nil
}

// jsonID reads an id as text, as a list of bytes, or as JavaScript's Buffer of
// them.
func jsonID(v jsonvalue.Value, out []byte) (ok bool) {
	switch {
	case v.IsObject():
		return jsonBytes(v.Member("data"), out)
	case v.IsArray():
		return jsonBytes(v, out)
	}
	text, isText := v.Text()
	return isText && collector.ReadIDText(out, text)
}

// jsonBytes reads a list of as many bytes as out has.
func jsonBytes(v jsonvalue.Value, out []byte) (ok bool) {
	read := 0
	for e := range v.Elements() {
		n, isInt := e.Int()
		if !isInt || n < 0 || n > math.MaxUint8 || read == len(out) {
			return false
		}
		out[read] = byte(n)
		read++
	}
	return read == len(out)
}

// jsonKind reads a span kind; integers that this build does not know are
// unspecified.
func jsonKind(v jsonvalue.Value) (trimtab.SpanKind, bool) {
	if n, ok := v.Int(); ok {
		if n < 0 || n > int64(trimtab.SpanConsumer) {
			n = 0
		}
		return trimtab.SpanKind(n), true
	}
	switch text, _ := v.Text(); text {
	case "SPAN_KIND_UNSPECIFIED":
		return trimtab.SpanUnspecified, true
	case "SPAN_KIND_INTERNAL":
		return trimtab.SpanInternal, true
	case "SPAN_KIND_SERVER":
		return trimtab.SpanServer, true
	case "SPAN_KIND_CLIENT":
		return trimtab.SpanClient, true
	case "SPAN_KIND_PRODUCER":
		return trimtab.SpanProducer, true
	case "SPAN_KIND_CONSUMER":
		return trimtab.SpanConsumer, true
	default: // SERVER and the like
		kind := collector.KindNamed(strings.ToLower(text))
		return kind, kind != trimtab.SpanUnspecified
	}
}

// jsonStatus returns FlagError for the code of an error.
func jsonStatus(v jsonvalue.Value) (flags uint8, ok bool) {
	if !v.IsObject() {
		return 0, false
	}
	var code jsonvalue.Value
	for key, m := range v.Members() {
		if fieldName(key) == "code" {
			code = m
		}
	}
	if code.Absent() {
		return 0, true
	}
	if name, isText := code.Text(); isText && name == "STATUS_CODE_ERROR" {
		return trimtab.FlagError, true
	} else if isText && (name == "STATUS_CODE_OK" || name == "STATUS_CODE_UNSET") {
		return 0, true
	}
	n, ok := code.Int()
	if n == statusError {
		flags = trimtab.FlagError
	}
	return flags, ok
}
