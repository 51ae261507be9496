package otlp

import (
	"encoding/hex"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// ScanJSON packs the spans of an ExportTraceServiceRequest in OTLP's JSON:
// lowerCamelCase keys, ids in hexadecimal, 64-bit integers as text or number,
// enums as integers (their names are understood too), unknown keys ignored.
// Errors and cache are as in [ScanRequest]; the cache must not be shared with
// it, for its keys are raw JSON.
func ScanJSON(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	request, err := jsonvalue.Parse(b)
	if err != nil {
		return err
	}
	if !request.IsObject() {
		return trimtab.Invalidf("read OTLP request: not an object")
	}
	for key, list := range request.Members() {
		if key != "resourceSpans" {
			continue
		}
		err := each(list, key, func(rs jsonvalue.Value) error { return jsonResourceSpans(rs, cache, p) })
		if err != nil {
			return err
		}
	}
	return nil
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

func jsonResourceSpans(rs jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	var raw, scopes jsonvalue.Value
	for key, v := range rs.Members() {
		switch key {
		case "resource":
			raw = v
		case "scopeSpans":
			scopes = v
		}
	}
	resource, err := cache.Get(raw, jsonResource)
	if err != nil {
		return err
	}
	p.SetResource(resource)
	return each(scopes, "scopeSpans", func(scope jsonvalue.Value) error {
		return each(scope.Member("spans"), "spans", func(v jsonvalue.Value) error {
			return jsonSpan(v, p)
		})
	})
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
			switch key {
			case "key":
				a.Key, _ = v.Text()
			case "value":
				a.Value, ok = jsonAny(v)
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

// jsonAny returns a text, integer or boolean AnyValue as text.
func jsonAny(v jsonvalue.Value) (text string, ok bool) {
	for key, v := range v.Members() {
		switch key {
		case "stringValue":
			text, ok = v.Text()
		case "boolValue":
			var b bool
			b, ok = v.Bool()
			text = strconv.FormatBool(b)
		case "intValue":
			var n int64
			n, ok = v.Int()
			text = strconv.FormatInt(n, 10)
		}
	}
	return text, ok
}

// jsonSpan packs or rejects one span. A time or enum that cannot be read is
// an error of the whole request, as in protobuf's JSON.
func jsonSpan(v jsonvalue.Value, p *collector.Packer) error {
	s := trimtab.Span{Adjusted: 1}
	var trace, id, parent [32]byte
	var nTrace, nID, nParent int
	var state string
	var attributes jsonvalue.Value
	ok := true
	for key, v := range v.Members() {
		if v.Absent() {
			continue
		}
		read := true
		switch key {
		case "traceId":
			nTrace = jsonHex(v, &trace)
		case "spanId":
			nID = jsonHex(v, &id)
		case "parentSpanId":
			nParent = jsonHex(v, &parent)
		case "traceState":
			state, read = v.Text()
		case "startTimeUnixNano":
			s.Start, read = v.Int()
		case "endTimeUnixNano":
			s.End, read = v.Int()
		case "kind":
			s.Kind, read = jsonKind(v)
		case "attributes":
			attributes = v
		case "status":
			var flags uint8
			flags, read = jsonStatus(v)
			s.Flags |= flags
		}
		if ok = ok && read; !ok {
			return trimtab.Invalidf("read OTLP request: span with %s %.40q", key, []byte(v))
		}
	}
	applyState([]byte(state), &s)
	if mayReceive(s.Kind, nParent == 0) {
		jsonAttributes(attributes, &s)
	}
	if bad := setIDs(&s, trace[:nTrace], id[:nID], parent[:nParent]); bad >= 0 {
		p.Reject(collector.Reason(bad))
		return nil
	}
	p.Add(&s)
	return nil
}

// jsonHex decodes an id and returns its length; what is no id has a length
// that no id has.
func jsonHex(v jsonvalue.Value, out *[32]byte) int {
	text, ok := v.Text()
	if !ok || len(text) > 2*len(out) {
		return 1
	}
	n, err := hex.Decode(out[:], []byte(text))
	if err != nil {
		return 1
	}
	return n
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
	}
	return 0, false
}

// jsonStatus returns FlagError for the code of an error.
func jsonStatus(v jsonvalue.Value) (flags uint8, ok bool) {
	if !v.IsObject() {
		return 0, false
	}
	code := v.Member("code")
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
