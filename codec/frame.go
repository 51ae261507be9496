package codec

import (
	"encoding/binary"
	"math"

	"github.com/trimtab/trimtab"
)

// The layout of a frame, little endian:
//
//	"TTS" version=1 | u16 resources | u16 0 | u32 spans
//	resource: u16 attributes, then per attribute u16 len, key, u16 len, value
//	span:     trace 16 | span 8 | parent 8 | start i64 | end i64 |
//	          adjusted f32 | resource u16 | kind u8 |
//	          flags 5 bits, peer 3 bits                               (56 bytes)
//
// A resource with one attribute, whose key is empty, is a peer: whom spans of an earlier
// resource call. Its value is that resource's index as u16, and a name; the n-th peer of
// a resource is number n of its spans. Who does not know peers reads a resource that sent
// nothing.
const (
	frameMagic  = "TTS\x01"
	frameHeader = 12
	// SpanBytes is the size of one span in a frame.
	SpanBytes = 56
	// MaxFrameSpans bounds a frame, so that it fits a message.
	MaxFrameSpans = 16384
	// MaxPeers is how many peers a resource can have in a frame. A resource may be in it more
	// than once.
	MaxPeers = 7
	// PeerBytes is the size of a peer in a frame without its name.
	PeerBytes = 8
	// flagBits is how many bits of the last byte of a span are its flags.
	flagBits = 5
)

// frameBounds walks the frame b and returns the offset of the first span; the
// spans fill the rest.
func frameBounds(b []byte) (offset int, err error) {
	if len(b) < frameHeader || string(b[:4]) != frameMagic {
		return 0, trimtab.Invalidf("span frame: no version 1 header in %d bytes", len(b))
	}
	resources := int(binary.LittleEndian.Uint16(b[4:]))
	spans := int(binary.LittleEndian.Uint32(b[8:]))
	if spans > MaxFrameSpans {
		return 0, trimtab.Invalidf("span frame: %d spans, limit %d", spans, MaxFrameSpans)
	}
	offset = frameHeader
	for range resources {
		if offset, err = skipResource(b, offset); err != nil {
			return 0, err
		}
	}
	if len(b)-offset != spans*SpanBytes {
		return 0, trimtab.Invalidf("span frame: %d bytes for %d spans", len(b)-offset, spans)
	}
	for at := offset; at < len(b); at += SpanBytes {
		if r := int(binary.LittleEndian.Uint16(b[at+52:])); r >= resources {
			return 0, trimtab.Invalidf("span frame: resource %d of %d", r, resources)
		}
		if a := math.Float32frombits(binary.LittleEndian.Uint32(b[at+48:])); !(a >= 1 && a <= 1e9) {
			return 0, trimtab.Invalidf("span frame: adjusted count %v", a)
		}
	}
	return offset, nil
}

// skipResource returns the offset behind the resource at offset.
func skipResource(b []byte, offset int) (int, error) {
	if len(b)-offset < 2 {
		return 0, trimtab.Invalidf("span frame: cut off in a resource")
	}
	texts := 2 * int(binary.LittleEndian.Uint16(b[offset:]))
	offset += 2
	for range texts {
		if len(b)-offset < 2 {
			return 0, trimtab.Invalidf("span frame: cut off in an attribute")
		}
		offset += 2 + int(binary.LittleEndian.Uint16(b[offset:]))
		if offset > len(b) {
			return 0, trimtab.Invalidf("span frame: cut off in an attribute")
		}
	}
	return offset, nil
}

// FrameWriter packs spans into a frame. The zero value is ready. It reuses
// its buffers after Reset; it is not for several goroutines.
type FrameWriter struct {
	resources []byte
	spans     []byte
	nResource int
	nSpans    int
}

// Reset empties the writer and keeps its memory.
func (w *FrameWriter) Reset() {
	w.resources, w.spans = w.resources[:0], w.spans[:0]
	w.nResource, w.nSpans = 0, 0
}

// Len returns the number of spans added since Reset.
func (w *FrameWriter) Len() int { return w.nSpans }

// Size returns the bytes that Frame would make.
func (w *FrameWriter) Size() int { return frameHeader + len(w.resources) + len(w.spans) }

// AddResource appends a resource and returns its index in this frame.
// Texts over 65,535 bytes are cut. ok is false when the frame is full.
func (w *FrameWriter) AddResource(attrs []trimtab.Attr) (index uint16, ok bool) {
	if w.nResource >= math.MaxUint16 || len(attrs) > math.MaxUint16 {
		return 0, false
	}
	w.resources = binary.LittleEndian.AppendUint16(w.resources, uint16(len(attrs)))
	for _, a := range attrs {
		w.resources = appendText(appendText(w.resources, a.Key), a.Value)
	}
	w.nResource++
	return uint16(w.nResource - 1), true
}

// AddPackedResource appends a resource in the form that [PackResource] makes,
// for senders that repeat the same few resources.
func (w *FrameWriter) AddPackedResource(packed []byte) (index uint16, ok bool) {
	if w.nResource >= math.MaxUint16 {
		return 0, false
	}
	w.resources = append(w.resources, packed...)
	w.nResource++
	return uint16(w.nResource - 1), true
}

// AddPeer appends whom spans of the resource at an index call, which becomes the next
// number of its peers, at most MaxPeers. ok is false when the frame is full or the name
// is empty or over 65,533 bytes.
func (w *FrameWriter) AddPeer(resource uint16, name []byte) (ok bool) {
	if w.nResource >= math.MaxUint16 || len(name) == 0 || len(name) > math.MaxUint16-2 {
		return false
	}
	w.resources = append(w.resources, 1, 0, 0, 0)
	w.resources = binary.LittleEndian.AppendUint16(w.resources, uint16(len(name)+2))
	w.resources = binary.LittleEndian.AppendUint16(w.resources, resource)
	w.resources = append(w.resources, name...)
	w.nResource++
	return true
}

// UnpackPeer decodes what [FrameReader.Resources] hands out, if it is a peer: the index of
// the resource, and a name that is valid while packed is.
func UnpackPeer(packed []byte) (resource uint16, name []byte, ok bool) {
	if len(packed) <= PeerBytes || string(packed[:4]) != "\x01\x00\x00\x00" {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint16(packed[6:]), packed[PeerBytes:], true
}

// PackResource returns the frame's form of a resource.
func PackResource(attrs []trimtab.Attr) []byte {
	var w FrameWriter
	w.AddResource(attrs)
	return w.resources
}

func appendText(b []byte, s string) []byte {
	if len(s) > math.MaxUint16 {
		s = s[:math.MaxUint16]
	}
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

// Add appends one span; s.Resource must be an index that AddResource gave.
// ok is false when the frame is full.
func (w *FrameWriter) Add(s *trimtab.Span) (ok bool) {
	if w.nSpans >= MaxFrameSpans {
		return false
	}
	b := w.spans
	b = append(b, s.TraceID[:]...)
	b = append(b, s.SpanID[:]...)
	b = append(b, s.Parent[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Start))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.End))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s.Adjusted))
	b = binary.LittleEndian.AppendUint16(b, s.Resource)
	b = append(b, byte(s.Kind), s.Flags&(1<<flagBits-1)|s.Peer<<flagBits)
	w.spans = b
	w.nSpans++
	return true
}

// Frame returns a new frame with all that was added.
func (w *FrameWriter) Frame(partition int) *trimtab.SpanFrame {
	b := make([]byte, 0, w.Size())
	b = append(b, frameMagic...)
	b = binary.LittleEndian.AppendUint16(b, uint16(w.nResource))
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(w.nSpans))
	b = append(append(b, w.resources...), w.spans...)
	return &trimtab.SpanFrame{Partition: partition, Data: b}
}

// FrameReader iterates over a validated frame without allocating.
type FrameReader struct {
	data      []byte
	offset    int
	resources []byte
}

// Frame wraps what a peer packed, without copying it, and checks its layout.
func Frame(partition int, data []byte) (*trimtab.SpanFrame, error) {
	f := &trimtab.SpanFrame{Partition: partition, Data: data}
	if err := f.Validate(); err != nil {
		return f, err
	}
	_, err := frameBounds(data)
	return f, err
}

// ReadFrame validates b and returns a reader of its spans.
func ReadFrame(b []byte) (FrameReader, error) {
	offset, err := frameBounds(b)
	if err != nil {
		return FrameReader{}, err
	}
	return FrameReader{data: b, offset: offset, resources: b[frameHeader:offset]}, nil
}

// Len returns the number of spans that Next has not yet returned.
func (r *FrameReader) Len() int { return (len(r.data) - r.offset) / SpanBytes }

// Resources calls f for each resource in order with its index, its packed
// form (equal bytes mean equal resources; valid while the frame's data is)
// and stops when f returns false.
func (r *FrameReader) Resources(f func(index int, packed []byte) bool) {
	at := 0
	for i := 0; at < len(r.resources); i++ {
		end, err := skipResource(r.resources, at)
		if err != nil || !f(i, r.resources[at:end]) {
			return
		}
		at = end
	}
}

// UnpackResource decodes what [FrameReader.Resources] hands out.
func UnpackResource(packed []byte) []trimtab.Attr {
	if len(packed) < 2 {
		return nil
	}
	attrs := make([]trimtab.Attr, 0, binary.LittleEndian.Uint16(packed))
	at := 2
	text := func() string {
		if len(packed)-at < 2 {
			return ""
		}
		n := int(binary.LittleEndian.Uint16(packed[at:]))
		n = min(n, len(packed)-at-2)
		s := string(packed[at+2 : at+2+n])
		at += 2 + n
		return s
	}
	for range cap(attrs) {
		k := text()
		attrs = append(attrs, trimtab.Attr{Key: k, Value: text()})
	}
	return attrs
}

// Next decodes the next span into s and reports whether there was one.
func (r *FrameReader) Next(s *trimtab.Span) bool {
	if r.offset+SpanBytes > len(r.data) {
		return false
	}
	b := r.data[r.offset : r.offset+SpanBytes : r.offset+SpanBytes]
	r.offset += SpanBytes
	s.TraceID = [16]byte(b[0:16])
	s.SpanID = [8]byte(b[16:24])
	s.Parent = [8]byte(b[24:32])
	s.Start = int64(binary.LittleEndian.Uint64(b[32:]))
	s.End = int64(binary.LittleEndian.Uint64(b[40:]))
	s.Adjusted = math.Float32frombits(binary.LittleEndian.Uint32(b[48:]))
	s.Resource = binary.LittleEndian.Uint16(b[52:])
	s.Kind = trimtab.SpanKind(b[54])
	s.Flags, s.Peer = b[55]&(1<<flagBits-1), b[55]>>flagBits
	return true
}
