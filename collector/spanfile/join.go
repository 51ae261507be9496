package spanfile

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
)

// held is a span of any file. Its Resource and Peer, which are of a frame, are not used.
type held struct {
	trimtab.Span
	sender uint32
	zipkin bool
	// peer is whom it calls; "": that is not told.
	peer string
}

// sender is who sent spans.
type sender struct {
	*collector.Resource
	service string
}

// service returns the name of the service of a span.
func (r *Reader) service(s *held) string { return r.senders[s.sender].service }

// hold takes the spans out of frames.
func (r *Reader) hold(frames []*trimtab.SpanFrame, zipkin bool) error {
	var last *collector.Resource
	var number uint32
	return collector.Spans(frames, func(s *trimtab.Span, from *collector.Resource, peer string) {
		if from != last {
			last, number = from, r.numberOf(from)
		}
		r.spans = append(r.spans, held{*s, number, zipkin, peer})
	})
}

// numberOf returns the number of a sender.
func (r *Reader) numberOf(from *collector.Resource) uint32 {
	key := string(from.Packed())
	if n, ok := r.numbers[key]; ok {
		return n
	}
	n := uint32(len(r.senders))
	r.numbers[key] = n
	r.senders = append(r.senders, sender{from, from.Service()})
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
		cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.Adjusted, b.Adjusted), cmp.Compare(a.peer, b.peer)); c != 0 || a.sender == b.sender {
		return c
	}
	return bytes.Compare(r.senders[a.sender].Packed(), r.senders[b.sender].Packed())
}

// pack returns the spans in frames.
func (r *Reader) pack() []*trimtab.SpanFrame {
	p := collector.NewPacker(r.options.Partitions)
	for i := range r.spans {
		s := &r.spans[i]
		p.SetResource(r.senders[s.sender].Resource)
		p.AddCall(&s.Span, []byte(s.peer))
	}
	return p.Frames()
}
