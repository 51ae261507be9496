package path

// The memory of unfinished traces consists of records without pointers in fixed chunks, so that
// spans cost the garbage collector nothing, however many there are and however often they change.

// record is one span in memory: 48 bytes.
type record struct {
	id, parent uint64
	start, end int64
	adjusted   float32
	// next is the next span of the trace; 0: none.
	next uint32
	// from is its place, and the peer that it calls.
	from origin
	kind uint8
	// flags are the flags of the span, plus recShifted and recCounted.
	flags uint8
	// instance is its instance, within the workload of its place.
	instance instanceID
}

// Flags of a record in addition to those of its span.
const (
	// recShifted: its times were corrected, since its sender's clock is wrong.
	recShifted uint8 = 0x80
	// recCounted: it was counted as a request while its caller was missing.
	recCounted uint8 = 0x40
)

// endedTrace is a finished trace.
type endedTrace struct {
	id       [16]byte
	workload int32
	known    bool
}

// endedBits is log2 of the number of finished traces that are remembered.
const endedBits = 12

// traceRecord is one unfinished trace: 80 bytes.
type traceRecord struct {
	id         [16]byte
	head, tail uint32
	count      uint32
	// full: a span was dropped because the trace reached its limit.
	full bool
	// workload is the workload of one of its spans, or noWorkload.
	workload int32
	// first is when its first span arrived, end the latest end of a span. due is the mark of its
	// kin at which it is checked next; 0: it is parked until a further span arrives or the timeout.
	// All in Unix ns.
	first, end, due int64
	links           [2]link
}

// chunkBits is log2 of the number of values per chunk.
const chunkBits = 11

// slab allocates numbered values of one type. Number 0 is never used. The zero slab is empty and
// ready for use.
type slab[T any] struct {
	chunks []*[1 << chunkBits]T
	free   []uint32
	next   uint32
}

// at returns value i, which is valid until it is put back.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

// allocate allocates a value with arbitrary content and returns its number.
func (s *slab[T]) allocate() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.next++
	if int(s.next>>chunkBits) >= len(s.chunks) {
		s.chunks = append(s.chunks, new([1 << chunkBits]T))
	}
	return s.next
}

// put frees value i.
func (s *slab[T]) put(i uint32) { s.free = append(s.free, i) }

// held returns the number of values in use.
func (s *slab[T]) held() int { return int(s.next) - len(s.free) }

// reset frees all values and their memory.
func (s *slab[T]) reset() { *s = slab[T]{} }

// link chains a trace into a list, by slab numbers; 0 ends the list.
type link struct{ prev, next uint32 }

// list is a queue of traces. Its traces use links[which].
type list struct {
	head, tail uint32
	which      int
}

func (l *list) push(traces *slab[traceRecord], i uint32) {
	traces.at(i).links[l.which] = link{prev: l.tail}
	if l.tail == 0 {
		l.head = i
	} else {
		traces.at(l.tail).links[l.which].next = i
	}
	l.tail = i
}

func (l *list) remove(traces *slab[traceRecord], i uint32) {
	k := traces.at(i).links[l.which]
	if k.prev == 0 {
		l.head = k.next
	} else {
		traces.at(k.prev).links[l.which].next = k.next
	}
	if k.next == 0 {
		l.tail = k.prev
	} else {
		traces.at(k.next).links[l.which].prev = k.prev
	}
}
