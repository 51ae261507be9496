package spanfile

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/collector"
)

// held is a span of any file. Its Resource, an index in a frame, is not used.
type held struct {
	trimtab.Span
	sender uint32
	zipkin bool
}

// sender is who sent spans, as frames hold it.
type sender struct {
	packed  []byte
	service string
}

// service returns the name of the service of a span.
func (r *Reader) service(s *held) string { return r.senders[s.sender].service }

// hold takes the spans out of frames.
func (r *Reader) hold(frames []*trimtab.SpanFrame, zipkin bool) error {
	for _, f := range frames {
		in, err := codec.ReadFrame(f.Data)
		if err != nil {
			return err
		}
		var senders []uint32
		in.Resources(func(_ int, packed []byte) bool {
			senders = append(senders, r.senderOf(packed))
			return true
		})
		r.spans = slices.Grow(r.spans, in.Len())
		for s := (held{zipkin: zipkin}); in.Next(&s.Span); {
			s.sender = senders[s.Resource]
			r.spans = append(r.spans, s)
		}
	}
	return nil
}

// senderOf returns the number of a sender.
func (r *Reader) senderOf(packed []byte) uint32 {
	if n, ok := r.numbers[string(packed)]; ok {
		return n
	}
	s := sender{packed: bytes.Clone(packed)}
	for _, a := range codec.UnpackResource(packed) {
		if a.Key == "service.name" {
			s.service = a.Value
		}
	}
	n := uint32(len(r.senders))
	r.numbers[string(packed)] = n
	r.senders = append(r.senders, s)
	return n
}

// uniteIDs gives the spans whose trace id has 64 bits the id of 128 bits that
// ends in these, where there is just one: a service between that knows 64 bits
// only passes on the lower half, and the trace is the same.
func (r *Reader) uniteIDs() {
	type half = [8]byte
	whole := map[half][16]byte{}
	for i := range r.spans {
		if id := r.spans[i].TraceID; half(id[:8]) == (half{}) {
			whole[half(id[8:])] = id
		}
	}
	if len(whole) == 0 {
		return
	}
	ambiguous := map[half]bool{}
	for i := range r.spans {
		id := r.spans[i].TraceID
		low := half(id[8:])
		switch known, ok := whole[low]; {
		case !ok || half(id[:8]) == (half{}):
		case half(known[:8]) == (half{}):
			whole[low] = id
		case known != id:
			ambiguous[low] = true
		}
	}
	for i := range r.spans {
		s := &r.spans[i]
		if low := half(s.TraceID[8:]); half(s.TraceID[:8]) == (half{}) && !ambiguous[low] {
			s.TraceID = whole[low]
		}
	}
}

// order sorts the spans by trace and content, in the same way whatever file they
// came from, and drops those that are there twice; it returns how many.
func (r *Reader) order() (repeated int) {
	slices.SortFunc(r.spans, r.compare)
	n := len(r.spans)
	r.spans = slices.CompactFunc(r.spans, func(a, b held) bool { return r.compare(a, b) == 0 })
	return n - len(r.spans)
}

func (r *Reader) compare(a, b held) int {
	if c := bytes.Compare(a.TraceID[:], b.TraceID[:]); c != 0 {
		return c
	}
	if c := bytes.Compare(a.SpanID[:], b.SpanID[:]); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Parent[:], b.Parent[:]),
		cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.Adjusted, b.Adjusted)); c != 0 || a.sender == b.sender {
		return c
	}
	return bytes.Compare(r.senders[a.sender].packed, r.senders[b.sender].packed)
}

// pack returns the spans in frames.
func (r *Reader) pack() []*trimtab.SpanFrame {
	resources := make([]*collector.Resource, len(r.senders))
	for i, s := range r.senders {
		resources[i] = collector.NewResource(codec.UnpackResource(s.packed))
	}
	p := collector.NewPacker(r.options.Partitions)
	for i := range r.spans {
		s := &r.spans[i]
		p.SetResource(resources[s.sender])
		p.Add(&s.Span)
	}
	return p.Frames()
}
