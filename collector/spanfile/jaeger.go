package spanfile

import (
	"bytes"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// jaegerTraceOf packs the spans of
//
//	{"traceID", "spans": [{"traceID", "spanID", "references": [{"refType", "traceID", "spanID"}],
//	  "startTime" µs, "duration" µs, "tags": [{"key", "type", "value"}], "processID", "process"}],
//	  "processes": {"p1": {"serviceName", "tags"}}}
//
// The enriched export repeats parents inside references: those copies are
// skipped.
func jaegerTraceOf(spans, byID jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	processes := map[string]*collector.Resource{}
	for id, process := range byID.Members() {
		processes[id] = jaegerProcess(process, cache)
	}
	for span := range spans.Elements() {
		if !span.IsObject() {
			return trimtab.Invalidf("Jaeger span: %.40q", []byte(span))
		}
		jaegerSpanOf(span, processes, cache, p)
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
		for _, list := range []string{"tags", "tag"} {
			for t := range jaegerTags(v.Member(list)) {
				if t.kind != floating && string(t.key) != "service.name" {
					attrs = append(attrs, trimtab.Attr{Key: string(t.key), Value: string(t.value)})
				}
			}
		}
		return collector.NewResource(attrs), nil
	})
	return r
}

// The types of the values of tags.
const (
	textual = iota
	literal // a boolean or an integer
	floating
)

// jaegerTag is a tag with a text, boolean or number.
type jaegerTag struct {
	key, value []byte
	kind       int
}

// jaegerTags iterates over tags in three forms: as Jaeger's API lists them, {"key", "type",
// "value"}; as its indices of Elasticsearch do, where all values are texts beside their types;
// and as fields there, {"span@kind": "server"}, with the dots of keys replaced.
func jaegerTags(v jsonvalue.Value) func(func(jaegerTag) bool) {
	return func(yield func(jaegerTag) bool) {
		for e := range v.Elements() {
			var t jaegerTag
			var value jsonvalue.Value
			var named []byte
			for key, m := range e.Fields() {
				switch string(key) {
				case "key":
					t.key = m.Raw()
				case "value":
					value = m
				case "type":
					named = m.Raw()
				}
			}
			if t.read(value, named) && !yield(t) {
				return
			}
		}
		for key, value := range v.Fields() {
			t := jaegerTag{key: bytes.ReplaceAll(key, []byte("@"), []byte("."))}
			if t.read(value, nil) && !yield(t) {
				return
			}
		}
	}
}

// read reads a value, whose type may be named; ok is false for an unknown one.
func (t *jaegerTag) read(value jsonvalue.Value, named []byte) (ok bool) {
	if len(value) == 0 {
		return false
	}
	switch c := value[0]; {
	case c == '"':
		t.value, t.kind = value.Raw(), textual
		switch string(named) {
		case "bool", "int64":
			t.kind = literal
		case "float64":
			t.kind = floating
		}
	case c == 't' || c == 'f':
		t.value, t.kind = value, literal
	case c == '-' || c >= '0' && c <= '9':
		t.value, t.kind = value, literal
		if _, isInt := value.Int(); !isInt {
			t.kind = floating
		}
	default:
		return false
	}
	return true
}

// apply applies a tag to its span.
func (t *jaegerTag) apply(s *trimtab.Span, peer *collector.Peer) {
	switch {
	case t.kind == literal && collector.NamesPeer(t.key):
		peer.ObserveLiteral(t.key, string(t.value))
	case t.kind == floating:
		if f, err := strconv.ParseFloat(string(t.value), 64); err == nil {
			peer.ObserveDecimal(t.key, f)
		}
	default:
		collector.ApplyJaegerTag(s, peer, t.key, t.value)
	}
}

// jaegerSpanOf packs or rejects one span. Its process is one of processes, or is inside the span.
func jaegerSpanOf(v jsonvalue.Value, processes map[string]*collector.Resource, cache *collector.ResourceCache, p *collector.Packer) {
	s, peer := trimtab.Span{Adjusted: 1}, p.Peer()
	var references, process jsonvalue.Value
	var duration int64
	timed, lasted, ids := false, false, [3]bool{false, false, true}
	resource := (*collector.Resource)(nil)
	for key, m := range v.Fields() {
		switch string(key) {
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
			resource = processes[string(m.Raw())]
		case "process":
			process = m
		case "tags", "tag":
			for t := range jaegerTags(m) {
				t.apply(&s, peer)
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
		peer.Weigh(&s)
		p.SetResource(resource)
		p.AddCall(&s, peer.Name())
	}
}

func jaegerID(v jsonvalue.Value, out []byte) (ok bool) {
	return len(v) > 0 && v[0] == '"' && collector.ReadPaddedID(out, v.Raw())
}

// sameTrace reports whether two ids are of one trace: one of them may have its lower half
// alone.
func sameTrace(a, b [16]byte) bool {
	short := [8]byte(a[:8]) == [8]byte{} || [8]byte(b[:8]) == [8]byte{}
	return a == b || short && [8]byte(a[8:]) == [8]byte(b[8:])
}

// jaegerParent sets the parent: the first CHILD_OF in the same trace, else the
// first FOLLOWS_FROM. ok is false when an id of a reference cannot be read.
func jaegerParent(references jsonvalue.Value, s *trimtab.Span) (ok bool) {
	var found []byte
	for ref := range references.Elements() {
		var trace [16]byte
		var id [8]byte
		var kind []byte
		readable := true
		for key, m := range ref.Fields() {
			switch string(key) {
			case "refType":
				kind = m.Raw()
			case "traceID":
				readable = jaegerID(m, trace[:]) && readable
			case "spanID":
				readable = jaegerID(m, id[:]) && readable
			}
		}
		if !readable {
			return false
		}
		if !sameTrace(trace, s.TraceID) || (string(kind) != "CHILD_OF" && string(kind) != "FOLLOWS_FROM") {
			continue
		}
		if found == nil || (string(found) != "CHILD_OF" && string(kind) == "CHILD_OF") {
			found, s.Parent = kind, id
		}
	}
	if string(found) == "FOLLOWS_FROM" {
		s.Flags |= trimtab.FlagFollowsFrom
	}
	return true
}
