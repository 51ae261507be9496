package zipkin

import (
	"net/netip"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// ScanJSON packs the spans of a document:
//
//	[{"traceId", "id", "parentId", "kind", "timestamp" µs, "duration" µs,
//	  "localEndpoint": {"serviceName"}, "remoteEndpoint": {"serviceName", "ipv4", "ipv6", "port"},
//	  "shared", "tags": {"error"}}]
//
// Spans without proper ids are rejected into p; a document that is no such list
// is ErrInvalid, and what p then holds is to be thrown away. Resources are
// looked up in cache by the name of their service.
func ScanJSON(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	v, err := jsonvalue.Parse(b)
	if err != nil {
		return err
	}
	if !v.IsArray() {
		return trimtab.Invalidf("read Zipkin spans: not a list")
	}
	for e := range v.Elements() {
		if !e.IsArray() {
			if err := scanElement(e, cache, p); err != nil {
				return err
			}
			continue
		}
		for inner := range e.Elements() {
			if err := scanElement(inner, cache, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// errVersion1 is for spans of version 1.
func errVersion1() error {
	return trimtab.Invalidf("read Zipkin spans: this is version 1, which has annotations with endpoints: send version 2")
}

// scanElement packs or rejects one span.
func scanElement(v jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	if !v.IsObject() {
		return trimtab.Invalidf("read Zipkin spans: %.40q is no span", []byte(v))
	}
	s := span{peer: p.Peer()}
	var trace, id, parent jsonvalue.Value
	for key, m := range v.Members() {
		switch key {
		case "traceId":
			trace = m
		case "id":
			id = m
		case "parentId":
			parent = m
		case "kind":
			kind, _ := m.Text()
			s.Kind = collector.KindNamed(strings.ToLower(kind))
		case "timestamp":
			s.Start, s.timed = m.Thousandfold()
		case "duration":
			s.duration, s.lasted = m.Thousandfold()
		case "localEndpoint":
			name, _ := m.Member("serviceName").Text()
			s.service = []byte(name)
		case "remoteEndpoint":
			s.takeRemote(m)
		case "shared":
			s.shared, _ = m.Bool()
		case "tags":
			for key, value := range m.Members() {
				if text, ok := value.Text(); ok {
					s.tag([]byte(key), []byte(text))
				}
			}
		case "binaryAnnotations":
			return errVersion1()
		case "annotations":
			for a := range m.Elements() {
				if a.Member("endpoint").IsObject() {
					return errVersion1()
				}
			}
		}
	}
	switch {
	case !readID(s.TraceID[:], trace):
		p.Reject(collector.BadTraceID)
	case !readID(s.SpanID[:], id):
		p.Reject(collector.BadSpanID)
	case !parent.Absent() && !readID(s.Parent[:], parent):
		p.Reject(collector.BadParentID)
	default:
		s.pack(cache, p)
	}
	return nil
}

// takeRemote reads a remote endpoint.
func (s *span) takeRemote(endpoint jsonvalue.Value) {
	var service string
	var address netip.Addr
	var port int64
	for key, m := range endpoint.Members() {
		switch key {
		case "serviceName":
			service, _ = m.Text()
		case "ipv4", "ipv6":
			text, _ := m.Text()
			if a, err := netip.ParseAddr(text); err == nil {
				address = a
			}
		case "port":
			port, _ = m.Int()
		}
	}
	s.peer.TakeEndpoint([]byte(service), address, portOf(port))
}

func readID(out []byte, v jsonvalue.Value) bool {
	text, ok := v.Text()
	return ok && collector.ReadPaddedID(out, text)
}
