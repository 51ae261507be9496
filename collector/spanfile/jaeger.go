package spanfile

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// decodeJaeger reads
//
//	{"data": [{"traceID", "spans": [{"traceID", "spanID", "references": [{"refType", "traceID", "spanID"}],
//	  "startTime" µs, "duration" µs, "tags": [{"key", "type", "value"}], "processID", "process"}],
//	  "processes": {"p1": {"serviceName", "tags"}}}]}
//
// The enriched export repeats parents inside references: those copies are
// skipped.
func decodeJaeger(v jsonvalue.Value, p *collector.Packer) error {
	var cache collector.ResourceCache
	for trace := range v.Member("data").Elements() {
		spans := trace.Member("spans")
		if !trace.IsObject() || !(spans.IsArray() || spans.Absent()) {
			return trimtab.Invalidf("Jaeger trace: no list of spans in %.40q", []byte(trace))
		}
		processes := map[string]*collector.Resource{}
		for id, process := range trace.Member("processes").Members() {
			processes[id] = jaegerProcess(process, &cache)
		}
		for span := range spans.Elements() {
			if !span.IsObject() {
				return trimtab.Invalidf("Jaeger span: %.40q", []byte(span))
			}
			jaegerSpan(span, processes, &cache, p)
		}
	}
	return nil
}

// jaegerProcess returns the resource of a process.
func jaegerProcess(v jsonvalue.Value, cache *collector.ResourceCache) *collector.Resource {
	r, _ := cache.Get(v, func(raw []byte) (*collector.Resource, error) { // never an error
		v := jsonvalue.Value(raw)
		var attrs []trimtab.Attr
		if name, _ := v.Member("serviceName").Text(); name != "" {
			attrs = append(attrs, trimtab.Attr{Key: "service.name", Value: name})
		}
		for tag := range v.Member("tags").Elements() {
			if key, value, ok := jaegerTag(tag); ok && key != "service.name" {
				attrs = append(attrs, trimtab.Attr{Key: key, Value: value})
			}
		}
		return collector.NewResource(attrs), nil
	})
	return r
}

// jaegerTag returns a tag with a text, boolean or integer value.
func jaegerTag(tag jsonvalue.Value) (key, value string, ok bool) {
	for name, v := range tag.Members() {
		switch name {
		case "key":
			key, _ = v.Text()
		case "value":
			value, ok = v.Text()
			if _, isBool := v.Bool(); isBool {
				value, ok = string(v), true
			} else if _, isInt := v.Int(); isInt && !ok {
				value, ok = string(v), true
			}
		}
	}
	return key, value, ok
}

// jaegerSpan packs or rejects one span.
func jaegerSpan(v jsonvalue.Value, processes map[string]*collector.Resource, cache *collector.ResourceCache, p *collector.Packer) {
	s, peer := trimtab.Span{Adjusted: 1}, p.Peer()
	var references, process jsonvalue.Value
	var duration int64
	timed, lasted, ids := false, false, [3]bool{false, false, true}
	resource := (*collector.Resource)(nil)
	for key, m := range v.Members() {
		switch key {
		case "traceID":
			ids[0] = jaegerID(m, s.TraceID[:])
		case "spanID":
			ids[1] = jaegerID(m, s.SpanID[:])
		case "parentSpanID": // before references existed
			ids[2] = m.Absent() || jaegerID(m, s.Parent[:])
		case "references":
			references = m
		case "startTime":
			s.Start, timed = m.Thousandfold()
		case "duration":
			duration, lasted = m.Thousandfold()
		case "processID":
			id, _ := m.Text()
			resource = processes[id]
		case "process":
			process = m
		case "tags":
			for tag := range m.Elements() {
				key, value, ok := jaegerTag(tag)
				if _, isText := tag.Member("value").Text(); ok && !isText && collector.NamesPeer([]byte(key)) {
					peer.TakeLiteral([]byte(key), value)
				} else if ok {
					collector.ApplyJaegerTag(&s, peer, []byte(key), []byte(value))
				}
			}
		}
	}
	if timed && lasted {
		s.End = collector.AddTimes(s.Start, duration)
	}
	if resource == nil {
		resource = jaegerProcess(process, cache)
	}
	switch {
	case !ids[0]:
		p.Reject(collector.BadTraceID)
	case !ids[1]:
		p.Reject(collector.BadSpanID)
	case !ids[2] || !jaegerParent(references, &s):
		p.Reject(collector.BadParentID)
	default:
		p.SetResource(resource)
		p.AddCall(&s, peer.Name())
	}
}

func jaegerID(v jsonvalue.Value, out []byte) (ok bool) {
	text, ok := v.Text()
	return ok && collector.ReadPaddedID(out, text)
}

// jaegerParent sets the parent: the first CHILD_OF in the same trace, else the
// first FOLLOWS_FROM. ok is false when an id of a reference cannot be read.
func jaegerParent(references jsonvalue.Value, s *trimtab.Span) (ok bool) {
	found := ""
	for ref := range references.Elements() {
		var trace [16]byte
		var id [8]byte
		kind, readable := "", true
		for key, m := range ref.Members() {
			switch key {
			case "refType":
				kind, _ = m.Text()
			case "traceID":
				readable = jaegerID(m, trace[:]) && readable
			case "spanID":
				readable = jaegerID(m, id[:]) && readable
			}
		}
		if !readable {
			return false
		}
		if trace != s.TraceID || (kind != "CHILD_OF" && kind != "FOLLOWS_FROM") {
			continue
		}
		if found == "" || (found != "CHILD_OF" && kind == "CHILD_OF") {
			found, s.Parent = kind, id
		}
	}
	if found == "FOLLOWS_FROM" {
		s.Flags |= trimtab.FlagFollowsFrom
	}
	return true
}
