package spanfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
)

// held is a span of any file. Its Resource and Peer, which belong to a frame, are not used.
type held struct {
	trimtab.Span
	sender uint32
	// peer is the number of the called peer; 0: unknown.
	peer   uint32
	zipkin bool
}

// sender is a sender of spans.
type sender struct {
	*collector.Resource
	service string
}

// hold stores the spans of frames.
func (r *Reader) hold(frames []*trimtab.SpanFrame, zipkin bool) error {
	var last *collector.Resource
	var number uint32
	return collector.Spans(frames, func(s *trimtab.Span, from *collector.Resource, peer string) {
		if from != last {
			last, number = from, r.numberOf(from)
		}
		r.spans.add(held{*s, number, r.peerOf(peer), zipkin})
	})
}

// numberOf returns the number of a sender.
func (r *Reader) numberOf(from *collector.Resource) uint32 {
	if n, ok := r.numbers[string(from.Packed())]; ok {
		return n
	}
	n := uint32(len(r.senders))
	r.numbers[string(from.Packed())] = n
	r.senders = append(r.senders, sender{from, from.Service()})
	return n
}

// peerOf returns the number of a peer.
func (r *Reader) peerOf(name string) uint32 {
	if name == "" {
		return 0
	}
	n, ok := r.peerNumbers[name]
	if !ok {
		r.peers = append(r.peers, name)
		n = uint32(len(r.peers))
		r.peerNumbers[name] = n
	}
	return n
}

// peerName returns the name of a peer.
func (r *Reader) peerName(number uint32) string {
	if number == 0 {
		return ""
	}
	return r.peers[number-1]
}

// location is the index of a stored span, with the lower half of its trace's id: all that a 64-bit
// trace id has.
type location struct {
	low   uint64
	index uint32
}

// groups calls f with all spans of one trace ID (its lower half) after the other, in an order that
// does not depend on that of the files.
func (r *Reader) groups(f func([]held)) {
	places := make([]location, r.spans.n)
	for i := range places {
		places[i] = location{binary.BigEndian.Uint64(r.spans.at(i).TraceID[8:]), uint32(i)}
	}
	slices.SortFunc(places, func(a, b location) int { return cmp.Compare(a.low, b.low) })
	var group []held
	for i, p := range places {
		group = append(group, *r.spans.at(int(p.index)))
		if i == len(places)-1 || places[i+1].low != p.low {
			f(group)
			group = group[:0]
		}
	}
}

// joined returns the spans of a group over all files: each once, Zipkin's with ids of their own.
// repeated is how many occurred more than once.
func (r *Reader) joined(group []held) (spans []held, repeated int) {
	uniteIDs(group)
	spreadWeights(group)
	slices.SortFunc(group, r.compare)
	spans = slices.CompactFunc(group, func(a, b held) bool { return r.compare(a, b) == 0 })
	repeated = len(group) - len(spans)
	markShared(spans)
	if slices.ContainsFunc(spans, func(h held) bool { return h.zipkin }) {
		r.separate(spans)
	}
	return spans, repeated
}

// markShared marks the spans of a trace as Zipkin's if a client and its server have one id:
// stores of other formats keep them like that if the senders were Zipkin's. The spans are sorted.
func markShared(spans []held) {
	for i := 1; i < len(spans); i++ {
		a, b := &spans[i-1], &spans[i]
		if a.SpanID != b.SpanID || a.TraceID != b.TraceID || b.zipkin || !(a.Calls() && server(&b.Span) || b.Calls() && server(&a.Span)) {
			continue
		}
		for j := range spans {
			if spans[j].TraceID == b.TraceID {
				spans[j].zipkin = true
			}
		}
	}
}

// uniteIDs replaces 64-bit trace ids by the 128-bit id that ends in them, if there is just one: a
// service between that only knows 64 bits passes on the lower half, and the trace is the same.
func uniteIDs(group []held) {
	type half = [8]byte
	var whole [16]byte
	short := false
	for i := range group {
		switch id := group[i].TraceID; {
		case half(id[:8]) == half{}:
			short = true
		case half(whole[:8]) == half{}:
			whole = id
		case whole != id:
			return // it is ambiguous
		}
	}
	if !short || half(whole[:8]) == (half{}) {
		return
	}
	for i := range group {
		group[i].TraceID = whole
	}
}

// spreadWeights gives the spans of a trace without a sampling weight that of another span of the
// trace: Jaeger's sampler records it only at the root, and a sampled trace is kept whole. It is
// the root's, else the largest.
func spreadWeights(group []held) {
	type weight struct {
		of   float32
		root bool
	}
	var weights map[[16]byte]weight
	missing := false
	for i := range group {
		s := &group[i]
		if s.Flags&trimtab.FlagAdjusted == 0 {
			missing = true
			continue
		}
		if weights == nil {
			weights = map[[16]byte]weight{}
		}
		w, root := weights[s.TraceID], s.Parent == [8]byte{}
		if root == w.root && s.Adjusted > w.of || root && !w.root {
			weights[s.TraceID] = weight{s.Adjusted, root}
		}
	}
	if !missing || weights == nil {
		return
	}
	for i := range group {
		s := &group[i]
		if w, ok := weights[s.TraceID]; ok && s.Flags&trimtab.FlagAdjusted == 0 {
			s.Adjusted = w.of
			s.Flags |= trimtab.FlagAdjusted
		}
	}
}

func (r *Reader) compare(a, b held) int {
	if c := bytes.Compare(a.TraceID[:], b.TraceID[:]); c != 0 {
		return c
	}
	if c := bytes.Compare(a.SpanID[:], b.SpanID[:]); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Parent[:], b.Parent[:]),
		cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.Adjusted, b.Adjusted)); c != 0 || a.sender == b.sender && a.peer == b.peer {
		return c
	}
	return cmp.Or(cmp.Compare(r.peerName(a.peer), r.peerName(b.peer)), bytes.Compare(r.senders[a.sender].Packed(), r.senders[b.sender].Packed()))
}
