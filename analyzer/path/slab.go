package path

// The memory of held spans: records without pointers in fixed chunks, so that
// neither the number of spans nor their coming and going costs the garbage
// collector anything.

// record is one held span: 48 bytes.
type record struct {
	id, parent uint64
	start, end int64
	adjusted   float32
	// next is the following span of the trace, 0: none.
	next uint32
	// from is the place that it is of, and whom it calls.
	from origin
	kind uint8
	// flags are those of the span, and recShifted and recCounted.
	flags uint8
	// instance is that of the workload of its place.
	instance instanceID
}

// Flags of a record besides those of its span.
const (
	// recShifted: its times were corrected, since the clock of its sender is wrong.
	recShifted uint8 = 0x80
	// recCounted: it was counted as a request while its caller was missing.
	recCounted uint8 = 0x40
)

// endedTrace is a trace that was finished.
type endedTrace struct {
	id       [16]byte
	workload int32
	known    bool
}

// endedBits is the logarithm of how many finished traces are remembered.
const endedBits = 12

// traceRecord is one held trace: 80 bytes.
type traceRecord struct {
	id         [16]byte
	head, tail uint32
	count      uint32
	// full: a span was dropped because the trace reached its limit.
	full bool
	// workload is that of one of its spans, or noWorkload.
	workload int32
	// first is when its first span came, end the latest end of a span. due is the mark of its kin
	// at which it is next checked; 0: it is parked, until a further span or the timeout. All Unix
	// ns.
	first, end, due int64
	links           [2]link
}

// chunkBits is the logarithm of the number of values per chunk.
const chunkBits = 11

// slab hands out numbered values of one type and accepts them back. Number 0 is never handed out.
// The zero slab is empty and ready.
type slab[T any] struct {
	chunks []*[1 << chunkBits]T
	free   []uint32
	next   uint32
}

// at returns value i, valid until it is put back.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

// take returns the number of a value whose content is arbitrary.
func (s *slab[T]) take() uint32 {
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

// put returns value i to the free list.
func (s *slab[T]) put(i uint32) { s.free = append(s.free, i) }

// held returns how many values are in use.
func (s *slab[T]) held() int { return int(s.next) - len(s.free) }

// reset forgets everything and gives the memory back.
func (s *slab[T]) reset() { *s = slab[T]{} }

// link chains a trace into a list, by slab numbers; 0 is the end.
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
