package zipkin

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// Tags of the fields that are read.
const (
	listSpans = 1<<3 | wire.Bytes

	spanTraceID   = 1<<3 | wire.Bytes
	spanParentID  = 2<<3 | wire.Bytes
	spanID        = 3<<3 | wire.Bytes
	spanKind      = 4<<3 | wire.Number
	spanTimestamp = 6<<3 | wire.Fixed64
	spanDuration  = 7<<3 | wire.Number
	spanLocal     = 8<<3 | wire.Bytes
	spanRemote    = 9<<3 | wire.Bytes
	spanTags      = 11<<3 | wire.Bytes
	spanShared    = 13<<3 | wire.Number

	endpointService = 1<<3 | wire.Bytes
	endpointIPv4    = 2<<3 | wire.Bytes
	endpointIPv6    = 3<<3 | wire.Bytes
	endpointPort    = 4<<3 | wire.Number

	entryKey   = 1<<3 | wire.Bytes
	entryValue = 2<<3 | wire.Bytes
)

// ScanProto packs the spans of a ListOfSpans; errors are as in [ScanJSON].
func ScanProto(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != listSpans {
			return nil
		}
		return scanMessage(value, cache, p)
	})
}

// scanMessage packs or rejects one span.
func scanMessage(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	s := span{peer: p.Peer()}
	var trace, id, parent []byte
	err := wire.Fields(b, func(tag uint64, value []byte, number uint64) (err error) {
		switch tag {
		case spanTraceID:
			trace = value
		case spanID:
			id = value
		case spanParentID:
			parent = value
		case spanKind:
			s.Kind = kindOf(number)
		case spanTimestamp:
			s.Start, s.timed = nanoseconds(binary.LittleEndian.Uint64(value)), true
		case spanDuration:
			s.duration, s.lasted = nanoseconds(number), true
		case spanLocal:
			s.service, err = text(value, endpointService)
		case spanRemote:
			err = s.scanRemote(value)
		case spanTags:
			err = scanTag(value, &s)
		case spanShared:
			s.shared = number != 0
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(trace) != 8 && len(trace) != 16:
		p.Reject(collector.BadTraceID)
	case len(id) != 8:
		p.Reject(collector.BadSpanID)
	case len(parent) != 0 && len(parent) != 8:
		p.Reject(collector.BadParentID)
	default:
		copy(s.TraceID[16-len(trace):], trace)
		copy(s.SpanID[:], id)
		copy(s.Parent[:], parent)
		s.pack(cache, p)
	}
	return nil
}

// kindOf reads the enum; values that this build does not know are unspecified.
func kindOf(n uint64) trimtab.SpanKind {
	kinds := [...]trimtab.SpanKind{trimtab.SpanUnspecified, trimtab.SpanClient, trimtab.SpanServer, trimtab.SpanProducer, trimtab.SpanConsumer}
	if n >= uint64(len(kinds)) {
		return trimtab.SpanUnspecified
	}
	return kinds[n]
}

// nanoseconds of microseconds, at most as many as fit.
func nanoseconds(micro uint64) int64 {
	if micro > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return int64(micro) * 1000
}

// text returns the last field of a message with a tag.
func text(b []byte, of uint64) (found []byte, err error) {
	err = wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag == of {
			found = value
		}
		return nil
	})
	return found, err
}

// scanRemote reads a remote endpoint.
func (s *span) scanRemote(b []byte) error {
	var service []byte
	var address netip.Addr
	var port uint16
	err := wire.Fields(b, func(tag uint64, value []byte, number uint64) error {
		switch tag {
		case endpointService:
			service = value
		case endpointIPv4, endpointIPv6:
			if a, ok := netip.AddrFromSlice(value); ok {
				address = a
			}
		case endpointPort:
			port = portOf(number)
		}
		return nil
	})
	s.peer.ObserveEndpoint(service, address, port)
	return err
}

func scanTag(b []byte, s *span) error {
	key, err := text(b, entryKey)
	if err != nil {
		return err
	}
	value, err := text(b, entryValue)
	if err != nil {
		return err
	}
	s.tag(key, value)
	return nil
}
