package otlp

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// Tags of the fields that are read: number<<3 | wire type. The same number
// with another type is an unknown field, as generated code has it.
const (
	requestResourceSpans = 1<<3 | wire.Bytes

	resourceSpansResource = 1<<3 | wire.Bytes
	resourceSpansScopes   = 2<<3 | wire.Bytes
	// InstrumentationLibrarySpans of OTLP 0.15 to 0.19, which have the form of ScopeSpans.
	resourceSpansLibraries = 1000<<3 | wire.Bytes

	scopeSpansSpans = 2<<3 | wire.Bytes

	spanTraceID   = 1<<3 | wire.Bytes
	spanID        = 2<<3 | wire.Bytes
	spanState     = 3<<3 | wire.Bytes
	spanParentID  = 4<<3 | wire.Bytes
	spanKind      = 6<<3 | wire.Number
	spanStart     = 7<<3 | wire.Fixed64
	spanEnd       = 8<<3 | wire.Fixed64
	spanAttribute = 9<<3 | wire.Bytes
	spanStatus    = 15<<3 | wire.Bytes

	statusCode = 3<<3 | wire.Number

	resourceAttributes = 1<<3 | wire.Bytes

	keyValueKey   = 1<<3 | wire.Bytes
	keyValueValue = 2<<3 | wire.Bytes

	anyText    = 1<<3 | wire.Bytes
	anyBool    = 2<<3 | wire.Number
	anyInt     = 3<<3 | wire.Number
	anyDouble  = 4<<3 | wire.Fixed64
	anyArray   = 5<<3 | wire.Bytes
	anyKeyList = 6<<3 | wire.Bytes
	anyBytes   = 7<<3 | wire.Bytes
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// ScanRequest packs the spans of an ExportTraceServiceRequest into p. Spans without valid IDs are
// counted in p as rejected. If the body is not such a message, the error is ErrInvalid, and the
// caller must discard p. Resources are looked up in cache. b is not kept.
func ScanRequest(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != requestResourceSpans {
			return nil
		}
		return scanResourceSpans(value, cache, p)
	})
}

// scanResourceSpans reads the resource first, since it may come behind its spans.
func scanResourceSpans(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	var raw []byte
	found := 0
	err := wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag == resourceSpansResource {
			if found++; found == 1 {
				raw = value
			} else { // a repeated message field is merged, which is: appended
				raw = append(raw[:len(raw):len(raw)], value...)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	resource, err := cache.Get(raw, scanResource)
	if err != nil {
		return err
	}
	p.SetResource(resource)
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != resourceSpansScopes && tag != resourceSpansLibraries {
			return nil
		}
		return scanScope(value, p)
	})
}

// scanScope packs the spans of one ScopeSpans.
func scanScope(b []byte, p *collector.Packer) error {
	var s trimtab.Span
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != scopeSpansSpans {
			return nil
		}
		peer := p.Peer()
		bad, err := scanSpan(value, &s, peer)
		switch {
		case err != nil:
			return err
		case bad >= 0:
			p.Reject(collector.Reason(bad))
		default:
			p.AddCall(&s, peer.Name())
		}
		return nil
	})
}

// scanSpan reads one span into s, and its callee into peer. bad is the reason to reject it, or < 0.
func scanSpan(b []byte, s *trimtab.Span, peer *collector.Peer) (bad int, err error) {
	*s = trimtab.Span{Adjusted: 1}
	var trace, id, parent, state, value, attributes []byte
	code, n := uint64(0), 0
	for len(b) > 0 {
		field, tag := b, uint64(b[0])
		if n = 1; tag >= 0x80 {
			if tag, n = wire.Varint(b); n <= 0 {
				return -1, wire.Malformed("tag")
			}
		}
		b = b[n:]
		if tag&7 == 2 {
			if value, b = wire.Delimited(b); value == nil || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
				return -1, wire.Malformed("span")
			}
			switch tag {
			case spanTraceID:
				trace = value
			case spanID:
				id = value
			case spanParentID:
				parent = value
			case spanState:
				state = value
			case spanAttribute:
				if attributes == nil {
					attributes = field
				}
			case spanStatus:
				if code, err = scanStatus(value, code); err != nil {
					return -1, err
				}
			}
			continue
		}
		if n = wire.Skip(tag, b); n < 0 {
			return -1, wire.Malformed("span")
		}
		switch tag {
		case spanStart:
			s.Start = int64(binary.LittleEndian.Uint64(b))
		case spanEnd:
			s.End = int64(binary.LittleEndian.Uint64(b))
		case spanKind:
			s.Kind = kindOf(b)
		}
		b = b[n:]
	}
	if code == statusError {
		s.Flags |= trimtab.FlagError
	}
	if len(state) > 0 {
		collector.ApplyTraceState(state, s)
	}
	if attributes != nil && hasToTell(s.Kind, len(parent) == 0) {
		if err := scanAttributes(attributes, s, peer); err != nil {
			return -1, err
		}
		peer.Weigh(s)
	}
	return setIDs(s, trace, id, parent), nil
}

// setIDs copies the ids; it returns the reason to reject the span, or < 0.
func setIDs(s *trimtab.Span, trace, id, parent []byte) (bad int) {
	switch {
	case !collector.ReadID(s.TraceID[:], trace):
		return int(collector.BadTraceID)
	case !collector.ReadID(s.SpanID[:], id):
		return int(collector.BadSpanID)
	case len(parent) != 0 && !collector.ReadID(s.Parent[:], parent):
		return int(collector.BadParentID)
	}
	return -1
}

// kindOf reads the enum at the start of b; values that this build does not
// know are unspecified.
func kindOf(b []byte) trimtab.SpanKind {
	v, _ := wire.Varint(b)
	if v > uint64(trimtab.SpanConsumer) {
		return trimtab.SpanUnspecified
	}
	return trimtab.SpanKind(v)
}

// scanStatus returns the status code in b, or code if there is none.
func scanStatus(b []byte, code uint64) (uint64, error) {
	err := wire.Fields(b, func(tag uint64, _ []byte, number uint64) error {
		if tag == statusCode {
			code = uint64(uint32(number))
		}
		return nil
	})
	return code, err
}

// scanResource reads the attributes of a Resource.
func scanResource(b []byte) (*collector.Resource, error) {
	var attrs []trimtab.Attr
	err := wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != resourceAttributes {
			return nil
		}
		key, v, err := scanKeyValue(value)
		if text, ok := v.String(); ok {
			attrs = append(attrs, trimtab.Attr{Key: string(key), Value: text})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read resource: %w", err)
	}
	return collector.NewResource(attrs), nil
}

// anyValue is an AnyValue: a text or a number, by the tag of the last member of its oneof.
type anyValue struct {
	tag    uint64
	text   []byte
	number uint64
}

// String returns the value as text; ok is false when it is of another type than text,
// integer or boolean.
func (v *anyValue) String() (text string, ok bool) {
	switch v.tag {
	case anyText:
		return string(v.text), true
	case anyBool:
		return strconv.FormatBool(v.number != 0), true
	case anyInt:
		return strconv.FormatInt(int64(v.number), 10), true
	}
	return "", false
}

// scanKeyValue reads one KeyValue.
func scanKeyValue(b []byte) (key []byte, v anyValue, err error) {
	err = wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		switch tag {
		case keyValueKey:
			key = value
		case keyValueValue:
			return wire.Fields(value, func(tag uint64, value []byte, number uint64) error {
				switch tag {
				case anyText, anyBool, anyInt, anyDouble, anyArray, anyKeyList, anyBytes:
					v = anyValue{tag, value, number}
				}
				return nil
			})
		}
		return nil
	})
	return key, v, err
}
