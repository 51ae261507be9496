package collector

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// maxFrameBytes is the size at which a frame is cut, so that it fits the smallest default
// max_payload of a NATS server, 1 MiB.
const maxFrameBytes = 960 << 10

// maxPeerBytes is how many bytes peers may take in a frame beyond maxFrameBytes. Further peers
// are left out, so that their spans name none.
const maxPeerBytes = 32 << 10

// maxAdjusted is the largest adjusted count that a frame holds.
const maxAdjusted = 1e9

// Packer collects the spans of one request in frames. It is not for several
// goroutines. A Packer without a sink ([NewPacker]) serves file decoders.
type Packer struct {
	parts    []part
	resource *Resource
	// nobody is the resource of spans before the first SetResource.
	nobody   *Resource
	done     []*trimtab.SpanFrame
	spans    int
	rejected [reasons]uint64
	// unread is the first key that held something and that the format does not have.
	unread string
	// names adds attributes of known senders; nil: none are known.
	names *namer
	// bytes is the packed size; limit is its bound; 0: no bound.
	bytes, limit int
	peer         Peer
}

// part is the open frame of one partition.
type part struct {
	writer codec.FrameWriter
	// resource is the resource of the last span, at index in this frame; known has the indices of
	// all resources in it.
	resource *Resource
	index    uint16
	known    map[*Resource]entry
	// peers are the peers that spans in this frame call, with their numbers; peerBytes is their
	// size.
	peers     map[call]entry
	peerBytes int
}

// entry is the index of a resource in a frame (the newest, if it occurs several times) with its
// number of peers; or, of a call, with the number of its peer.
type entry struct {
	index uint16
	peers uint8
}

// call is a pair of sender and peer.
type call struct {
	from *Resource
	peer string
}

// NewPacker returns a packer for the given number of partitions, at least 1.
func NewPacker(partitions int) *Packer {
	nobody := NewResource(nil)
	return &Packer{parts: make([]part, max(1, partitions)), resource: nobody, nobody: nobody}
}

// Reset empties p and keeps its memory.
func (p *Packer) Reset() {
	for i := range p.parts {
		p.parts[i].reset()
	}
	clear(p.done)
	p.done, p.spans, p.bytes, p.rejected, p.unread = p.done[:0], 0, 0, [reasons]uint64{}, ""
	p.resource = p.nobody
	p.peer.Reset()
}

// reset empties the frame and keeps its memory.
func (at *part) reset() {
	at.writer.Reset()
	at.resource = nil
	clear(at.known)
	clear(at.peers)
	at.peerBytes = 0
}

// SetResource sets the sender of the spans that follow.
func (p *Packer) SetResource(r *Resource) {
	if p.names != nil {
		r = p.names.name(r)
	}
	p.resource = r
}

// Resource returns the last one that was set.
func (p *Packer) Resource() *Resource { return p.resource }

// Peer returns an empty one to gather in, the same one each time.
func (p *Packer) Peer() *Peer {
	p.peer.Reset()
	return &p.peer
}

// Add packs s, whose Resource is set here. A span without ids is rejected. An
// adjusted count under 1 or NaN becomes 1, over 1e9 becomes 1e9.
func (p *Packer) Add(s *trimtab.Span) { p.AddCall(s, nil) }

// AddCall adds a span that calls a peer with a name; empty: unknown. Only CLIENT and PRODUCER spans
// call a peer.
func (p *Packer) AddCall(s *trimtab.Span, peer []byte) {
	switch {
	case s.TraceID == [16]byte{}:
		p.Reject(BadTraceID)
		return
	case s.SpanID == [8]byte{}:
		p.Reject(BadSpanID)
		return
	case !(s.Adjusted >= 1):
		s.Adjusted = 1
	case s.Adjusted > maxAdjusted:
		s.Adjusted = maxAdjusted
	}
	n := 0
	if len(p.parts) > 1 {
		n = Partition(s.TraceID, len(p.parts))
	}
	at := &p.parts[n]
	if at.resource != p.resource || at.writer.Len() >= codec.MaxFrameSpans || at.writer.Size() > maxFrameBytes-codec.SpanBytes {
		if !p.enter(n) {
			p.Reject(TooLarge)
			return
		}
	}
	s.Resource, s.Peer = at.index, 0
	if len(peer) > 0 && s.Calls() {
		s.Resource, s.Peer = p.peerOf(at, peer)
	}
	at.writer.Add(s)
	p.spans++
	p.bytes += codec.SpanBytes
}

// enter reserves space in partition n for one span of the current resource; false: p is full.
func (p *Packer) enter(n int) bool {
	at := &p.parts[n]
	size := len(p.resource.packed)
	if at.writer.Len() >= codec.MaxFrameSpans || at.writer.Size() > maxFrameBytes-codec.SpanBytes-size {
		p.cut(n)
	}
	held, known := at.known[p.resource]
	if !known {
		if p.limit > 0 && p.bytes+size > p.limit {
			return false
		}
		var ok bool
		if held.index, ok = at.writer.AddPackedResource(p.resource.packed); !ok {
			p.cut(n)
			held.index, _ = at.writer.AddPackedResource(p.resource.packed)
		}
		p.bytes += size
		if at.known == nil {
			at.known, at.peers = map[*Resource]entry{}, map[call]entry{}
		}
		at.known[p.resource] = held
	}
	at.resource, at.index = p.resource, held.index
	return true
}

// peerOf returns the index of the resource under which a peer is numbered in the frame, and that
// number; 0: the peer does not fit.
func (p *Packer) peerOf(at *part, name []byte) (index uint16, number uint8) {
	if k, ok := at.peers[call{p.resource, string(name)}]; ok {
		return k.index, k.peers
	}
	held, size := at.known[p.resource], codec.PeerBytes+len(name)
	full := held.peers == codec.MaxPeers
	if full {
		size += len(p.resource.packed)
	}
	if at.peerBytes+size > maxPeerBytes || p.limit > 0 && p.bytes+size > p.limit {
		return at.index, 0
	}
	if full { // once more, for further peers
		again, ok := at.writer.AddPackedResource(p.resource.packed)
		if !ok {
			return at.index, 0
		}
		at.index, held = again, entry{index: again}
	}
	if !at.writer.AddPeer(held.index, name) {
		return at.index, 0
	}
	held.peers++
	at.known[p.resource], at.peers[call{p.resource, string(name)}] = held, held
	at.peerBytes += size
	p.bytes += size
	return held.index, held.peers
}

// cut closes the frame of partition n.
func (p *Packer) cut(n int) {
	at := &p.parts[n]
	if at.writer.Len() > 0 {
		p.done = append(p.done, at.writer.Frame(n))
	}
	at.reset()
}

// Reject counts a span that could not be read.
func (p *Packer) Reject(r Reason) { p.rejected[r]++ }

// maxShownKey is the length to which a key from a sender is cut in messages, in bytes.
const maxShownKey = 40

// RejectUnread counts the spans, if any, under a key that the format does not have.
func (p *Packer) RejectUnread(key string, spans int) {
	if p.unread == "" {
		p.unread = strings.ToValidUTF8(key[:min(len(key), maxShownKey)], "")
	}
	p.rejected[UnknownKey] += uint64(spans)
}

// Empty reports whether the request held no span, accepted or rejected. unread is then the first
// key that was not understood, "" without one.
func (p *Packer) Empty() (empty bool, unread string) {
	total := p.Rejected()
	return p.spans == 0 && total == 0, p.unread
}

// Complaint says in words why spans were rejected, for their sender; "" when none was.
func (p *Packer) Complaint() string {
	total := p.Rejected()
	if total == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d spans rejected:", total)
	separator := " "
	for r, n := range p.rejected {
		if n == 0 {
			continue
		}
		reason, meaning := Reason(r), Reason(r).meaning()
		if reason == UnknownKey {
			meaning = fmt.Sprintf("%q", p.unread)
		}
		fmt.Fprintf(&b, "%s%d for their %v", separator, n, reason)
		if meaning != "" {
			fmt.Fprintf(&b, " (%s)", meaning)
		}
		separator = ", "
	}
	return b.String()
}

// Spans returns how many spans were packed since Reset.
func (p *Packer) Spans() int { return p.spans }

// Rejected returns how many spans were rejected since Reset.
func (p *Packer) Rejected() (total uint64) {
	for _, n := range p.rejected {
		total += n
	}
	return total
}

// Frames closes the open frames and returns all, in order of partition within
// a cut. They stay valid after Reset; the slice does not.
func (p *Packer) Frames() []*trimtab.SpanFrame {
	for n := range p.parts {
		p.cut(n)
	}
	return p.done
}

// Spans calls f for each span in frames, with the resource that sent it and the name of its peer,
// "" if unknown. A span is valid only during its call, a resource for good.
func Spans(frames []*trimtab.SpanFrame, f func(s *trimtab.Span, sender *Resource, peer string)) error {
	for _, frame := range frames {
		r, err := codec.ReadFrame(frame.Data)
		if err != nil {
			return err
		}
		var senders []*Resource
		var peers [][]string // by resource; the first has no name
		r.Resources(func(_ int, packed []byte) bool {
			if of, name, ok := codec.UnpackPeer(packed); ok && int(of) < len(peers) {
				peers[of] = append(peers[of], string(name))
			}
			senders, peers = append(senders, &Resource{packed: bytes.Clone(packed)}), append(peers, []string{""})
			return true
		})
		for s := (trimtab.Span{}); r.Next(&s); {
			names := peers[s.Resource]
			if int(s.Peer) >= len(names) {
				s.Peer = 0
			}
			f(&s, senders[s.Resource], names[s.Peer])
		}
	}
	return nil
}

// Partition returns the partition of a trace in [0, n): every collector of a
// cluster must send the spans of a trace to the same one, so this function is
// part of the protocol. It panics if n < 1.
func Partition(trace [16]byte, n int) int {
	if n < 1 {
		panic("collector: Partition of n < 1")
	}
	x := binary.LittleEndian.Uint64(trace[:8]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(trace[8:]), 32)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd // finalizer of MurmurHash3, in the public domain
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	hi, _ := bits.Mul64(x, uint64(n))
	return int(hi)
}

// AdjustedCount returns how many spans one represents if it was sampled with the rejection
// threshold th of a 56-bit random value: 2⁵⁶/(2⁵⁶ − th).
//
// Source: OpenTelemetry specification, "TraceState: Probability Sampling".
func AdjustedCount(th uint64) float32 {
	const all = 1 << 56
	if th >= all {
		return 1
	}
	return float32(math.Min(maxAdjusted, float64(all)/float64(all-th)))
}
