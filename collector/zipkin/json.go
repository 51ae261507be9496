package zipkin

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

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
// Spans without valid IDs are counted in p as rejected. If the document is not such a list, the
// error is ErrInvalid, and the caller must discard p. Resources are looked up in cache by the name
// of their service.
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

// ScanElement packs or rejects one span, of version 2 or 1 of the format. Where v is no
// object the error is ErrInvalid.
func ScanElement(v jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	err := scanElement(v, cache, p)
	if errors.Is(err, errOld) {
		return scanVersion1(v, cache, p)
	}
	return err
}

// errOld is the cause of errVersion1.
var errOld = errors.New("this is version 1, which has annotations with endpoints: send version 2")

// errVersion1 returns the error for spans of version 1.
func errVersion1() error {
	return fmt.Errorf("read Zipkin spans: %w: %w", errOld, trimtab.ErrInvalid)
}

// scanElement packs or rejects one span.
func scanElement(v jsonvalue.Value, cache *collector.ResourceCache, p *collector.Packer) error {
	if !v.IsObject() {
		return trimtab.Invalidf("read Zipkin spans: %.40q is no span", []byte(v))
	}
	s := span{peer: p.Peer()}
	var trace, id, parent jsonvalue.Value
	for key, m := range v.Fields() {
		switch string(key) {
		case "traceId":
			trace = m
		case "id":
			id = m
		case "parentId":
			parent = m
		case "kind":
			s.Kind = collector.KindNamed(bytes.ToLower(m.Raw()))
		case "timestamp":
			s.Start, s.timed = m.Thousandfold()
		case "duration":
			s.duration, s.lasted = m.Thousandfold()
		case "localEndpoint":
			s.service = m.Member("serviceName").Raw()
		case "remoteEndpoint":
			s.takeRemote(m)
		case "shared":
			s.shared, _ = m.Bool()
		case "tags":
			for key, value := range m.Fields() {
				if text := value.Raw(); text != nil {
					s.tag(key, text)
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
	if s.identify(trace, id, parent, p) {
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
	s.peer.ObserveEndpoint([]byte(service), address, portOf(port))
}

// identify reads the ids of a span, or rejects it.
func (s *span) identify(trace, id, parent jsonvalue.Value, p *collector.Packer) bool {
	switch {
	case !readID(s.TraceID[:], trace):
		p.Reject(collector.BadTraceID)
	case !readID(s.SpanID[:], id):
		p.Reject(collector.BadSpanID)
	case !parent.Absent() && !readID(s.Parent[:], parent):
		p.Reject(collector.BadParentID)
	default:
		return true
	}
	return false
}

func readID(out []byte, v jsonvalue.Value) bool {
	return len(v) > 0 && v[0] == '"' && collector.ReadPaddedID(out, v.Raw())
}
