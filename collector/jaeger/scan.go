package jaeger

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/wire"
)

// Tags of the fields that are read.
const (
	requestBatch = 1<<3 | wire.Bytes

	batchSpans   = 1<<3 | wire.Bytes
	batchProcess = 2<<3 | wire.Bytes

	spanTraceID    = 1<<3 | wire.Bytes
	spanID         = 2<<3 | wire.Bytes
	spanReferences = 4<<3 | wire.Bytes
	spanStart      = 6<<3 | wire.Bytes
	spanDuration   = 7<<3 | wire.Bytes
	spanTags       = 8<<3 | wire.Bytes
	spanProcess    = 10<<3 | wire.Bytes

	refTraceID = 1<<3 | wire.Bytes
	refSpanID  = 2<<3 | wire.Bytes
	refType    = 3<<3 | wire.Number

	timeSeconds = 1<<3 | wire.Number
	timeNanos   = 2<<3 | wire.Number

	processService = 1<<3 | wire.Bytes
	processTags    = 2<<3 | wire.Bytes

	tagKey  = 1<<3 | wire.Bytes
	tagType = 2<<3 | wire.Number
	tagText = 3<<3 | wire.Bytes
	tagBool = 4<<3 | wire.Number
	tagInt  = 5<<3 | wire.Number
	tagReal = 6<<3 | wire.Fixed64
)

// The types of a tag's value that are read.
const (
	typeText = iota
	typeBool
	typeInt
	typeReal
)

// followsFrom is the reference type FOLLOWS_FROM; CHILD_OF is 0.
const followsFrom = 1

// ScanRequest packs the spans of a PostSpansRequest into p. Spans without valid IDs are counted in
// p as rejected. If the body is not such a message, the error is ErrInvalid, and the caller must
// discard p.
func ScanRequest(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	return wire.Fields(b, func(tag uint64, batch []byte, _ uint64) error {
		if tag != requestBatch {
			return nil
		}
		return scanBatch(batch, cache, p)
	})
}

// scanBatch reads the process first: the wire may hold it behind the spans.
func scanBatch(b []byte, cache *collector.ResourceCache, p *collector.Packer) error {
	var raw []byte
	err := wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag == batchProcess {
			raw = append(raw[:len(raw):len(raw)], value...) // repeated messages merge
		}
		return nil
	})
	if err != nil {
		return err
	}
	shared, err := cache.Get(raw, scanProcess)
	if err != nil {
		return err
	}
	return wire.Fields(b, func(tag uint64, value []byte, _ uint64) error {
		if tag != batchSpans {
			return nil
		}
		return scanSpan(value, shared, cache, p)
	})
}

// ids are a span's ids as received.
type ids struct{ trace, span []byte }

// scanSpan packs or rejects one span.
func scanSpan(b []byte, shared *collector.Resource, cache *collector.ResourceCache, p *collector.Packer) error {
	s, peer := trimtab.Span{Adjusted: 1}, p.Peer()
	var own ids
	var refs [2]ids // by reference type, the first of each
	var process []byte
	var duration int64
	var later [][]byte // references that came before the trace id
	err := wire.Fields(b, func(tag uint64, value []byte, _ uint64) (err error) {
		switch tag {
		case spanTraceID:
			own.trace = value
		case spanID:
			own.span = value
		case spanReferences:
			later = append(later, value)
		case spanStart:
			s.Start, err = scanTime(value)
		case spanDuration:
			duration, err = scanTime(value)
		case spanTags:
			err = applyTag(value, &s, peer)
		case spanProcess:
			process = value
		}
		return err
	})
	for _, ref := range later {
		if err == nil {
			err = scanRef(ref, own.trace, &refs)
		}
	}
	if err != nil {
		return err
	}
	s.End = collector.AddTimes(s.Start, duration)
	p.SetResource(shared)
	if process != nil {
		resource, err := cache.Get(process, scanProcess)
		if err != nil {
			return err
		}
		p.SetResource(resource)
	}
	parent := refs[0].span
	if parent == nil && refs[followsFrom].span != nil {
		parent = refs[followsFrom].span
		s.Flags |= trimtab.FlagFollowsFrom
	}
	if bad, reason := setIDs(&s, own, parent); bad {
		p.Reject(reason)
		return nil
	}
	peer.Weigh(&s)
	p.AddCall(&s, peer.Name())
	return nil
}

// setIDs copies the ids, or says why they cannot be.
func setIDs(s *trimtab.Span, own ids, parent []byte) (bad bool, reason collector.Reason) {
	switch {
	case len(own.trace) != 8 && len(own.trace) != 16:
		return true, collector.BadTraceID
	case len(own.span) != 8:
		return true, collector.BadSpanID
	case len(parent) != 0 && len(parent) != 8:
		return true, collector.BadParentID
	}
	copy(s.TraceID[16-len(own.trace):], own.trace)
	copy(s.SpanID[:], own.span)
	copy(s.Parent[:], parent)
	return false, 0
}

// scanRef records a reference into the same trace, if it is the first of its type.
func scanRef(b, trace []byte, refs *[2]ids) error {
	var to ids
	kind := uint64(0)
	err := wire.Fields(b, func(tag uint64, value []byte, number uint64) error {
		switch tag {
		case refTraceID:
			to.trace = value
		case refSpanID:
			to.span = value
		case refType:
			kind = number
		}
		return nil
	})
	if err == nil && kind < uint64(len(refs)) && refs[kind].span == nil && string(to.trace) == string(trace) {
		refs[kind] = to
	}
	return err
}

// scanTime reads a Timestamp or Duration in nanoseconds. One that does not
// fit 64 bits, such as Go's zero time, is the nearest that does: the analyzer
// flags it.
func scanTime(b []byte) (int64, error) {
	var seconds, nanos int64
	err := wire.Fields(b, func(tag uint64, _ []byte, number uint64) error {
		switch tag {
		case timeSeconds:
			seconds = int64(number)
		case timeNanos:
			nanos = int64(int32(number))
		}
		return nil
	})
	const most = math.MaxInt64/1_000_000_000 - 3 // int32 nanos are under 3 s
	switch {
	case seconds > most:
		return math.MaxInt64, err
	case seconds < -most:
		return math.MinInt64, err
	}
	return seconds*1_000_000_000 + nanos, err
}

// tag is one KeyValue.
type tag struct {
	key, text []byte
	number    uint64
	real      float64
	kind      uint64
}

// value returns the value as text; ok is false when it is of a type not read.
func (t *tag) value() (text []byte, ok bool) {
	switch t.kind {
	case typeText:
		return t.text, true
	case typeBool:
		return strconv.AppendBool(nil, t.number != 0), true
	case typeInt:
		return strconv.AppendInt(nil, int64(t.number), 10), true
	}
	return nil, false
}

func scanTag(b []byte) (t tag, err error) {
	var truth, number uint64
	err = wire.Fields(b, func(field uint64, value []byte, n uint64) error {
		switch field {
		case tagKey:
			t.key = value
		case tagType:
			t.kind = n
		case tagText:
			t.text = value
		case tagBool:
			truth = n
		case tagInt:
			number = n
		case tagReal:
			t.real = math.Float64frombits(binary.LittleEndian.Uint64(value))
		}
		return nil
	})
	if t.number = number; t.kind == typeBool {
		t.number = truth
	}
	return t, err
}

// applyTag reads the tags that say something about a span itself.
func applyTag(b []byte, s *trimtab.Span, peer *collector.Peer) error {
	t, err := scanTag(b)
	if err != nil {
		return err
	}
	switch value, ok := t.value(); {
	case t.kind == typeBool && collector.NamesPeer(t.key):
		peer.ObserveTruth(t.key, t.number != 0)
	case t.kind == typeInt && collector.NamesPeer(t.key):
		peer.ObserveNumber(t.key, int64(t.number))
	case t.kind == typeReal:
		peer.ObserveDecimal(t.key, t.real)
	case ok:
		collector.ApplyJaegerTag(s, peer, t.key, value)
	}
	return nil
}

// scanProcess reads a Process.
func scanProcess(b []byte) (*collector.Resource, error) {
	service := ""
	var attrs []trimtab.Attr
	err := wire.Fields(b, func(field uint64, value []byte, _ uint64) error {
		switch field {
		case processService:
			service = string(value)
		case processTags:
			t, err := scanTag(value)
			if text, ok := t.value(); ok && string(t.key) != "service.name" {
				attrs = append(attrs, trimtab.Attr{Key: string(t.key), Value: string(text)})
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if service != "" {
		attrs = append([]trimtab.Attr{{Key: "service.name", Value: service}}, attrs...)
	}
	return collector.NewResource(attrs), nil
}
