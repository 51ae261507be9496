package path

import (
	"encoding/binary"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Path assembles traces and sums them up. It is a [trimtab.Step] and a
// [trimtab.Counted]; it is not for several goroutines.
type Path struct {
	config Config
	now    int64

	spans   slab[record]
	traces  slab[traceRecord]
	byTrace map[[16]byte]uint32
	// oldest holds all traces by first span, idle those not parked by last.
	oldest, idle list

	places    *places
	resources []sender // of the frame at hand
	tree      tree
	windows   windows
	counts    counts
	visitor   visitor
}

// New returns an empty Path, or the error of c.Validate.
func New(c Config) (*Path, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Path{
		config:  c.withDefaults(),
		byTrace: map[[16]byte]uint32{},
		oldest:  list{which: 0},
		idle:    list{which: 1},
	}
	p.places = newPlaces(&p.config)
	p.windows = windows{config: &p.config, places: p.places}
	return p, nil
}

// Step takes a *trimtab.SpanFrame, or nil for a tick, and returns the
// sketches (*trimtab.Sketch) of all intervals that ended Grace ago, in order
// of time and workload. Other values are ignored.
func (p *Path) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	p.now = max(p.now, now.UnixNano())
	p.expire()
	out := p.windows.emit(p.now)
	p.counts.sketches += uint64(len(out))
	if frame, ok := in.(*trimtab.SpanFrame); ok && frame != nil {
		p.read(frame)
	}
	return out
}

// Flush finishes all traces and returns the sketches of all intervals, open
// ones included: for the end of a recording, or of a process that will not
// see the rest.
func (p *Path) Flush(now time.Time) []trimtab.Value {
	p.now = max(p.now, now.UnixNano())
	for p.oldest.head != 0 {
		p.finish(p.oldest.head, &p.counts.timedOut)
	}
	out := p.windows.flush()
	p.counts.sketches += uint64(len(out))
	return out
}

// expire finishes the traces that need not or may not wait longer. Both lists
// are in order of their deadlines, so this costs nothing for the others.
func (p *Path) expire() {
	for i := p.idle.head; i != 0; i = p.idle.head {
		t := p.traces.at(i)
		if p.now-t.last < int64(p.config.Settle) {
			break
		}
		if p.load(t); p.tree.complete() {
			p.release(i, &p.counts.settled)
			continue
		}
		p.idle.remove(&p.traces, i)
		t.parked = true
	}
	for i := p.oldest.head; i != 0; i = p.oldest.head {
		if p.now-p.traces.at(i).first < int64(p.config.Timeout) {
			break
		}
		p.finish(i, &p.counts.timedOut)
	}
	if len(p.byTrace) == 0 && len(p.spans.chunks) > 16 {
		p.spans.reset()
		p.traces.reset()
		p.byTrace = map[[16]byte]uint32{}
	}
}

// read takes the spans of a frame.
func (p *Path) read(frame *trimtab.SpanFrame) {
	r, err := codec.ReadFrame(frame.Data)
	if err != nil {
		p.counts.unreadable++
		return
	}
	p.resources = p.resources[:0]
	p.places.now = p.now
	r.Resources(func(_ int, packed []byte) bool {
		p.resources = append(p.resources, p.places.of(packed))
		return true
	})
	var s trimtab.Span
	var id [16]byte
	var trace uint32
	for r.Next(&s) {
		p.counts.received++
		if p.spans.held() >= p.config.MaxSpans {
			p.finish(p.oldest.head, &p.counts.evicted)
			trace = 0
		}
		if trace == 0 || s.TraceID != id {
			id = s.TraceID
			trace = p.trace(id)
		}
		p.add(trace, &s)
	}
}

// trace returns the held trace with the id, making it when there is none, and
// notes that it is alive.
func (p *Path) trace(id [16]byte) uint32 {
	i, ok := p.byTrace[id]
	if !ok {
		if len(p.byTrace) >= p.config.MaxTraces {
			p.finish(p.oldest.head, &p.counts.evicted)
		}
		i = p.traces.take()
		*p.traces.at(i) = traceRecord{id: id, first: p.now, last: p.now}
		p.byTrace[id] = i
		p.oldest.push(&p.traces, i)
		p.idle.push(&p.traces, i)
		return i
	}
	t := p.traces.at(i)
	if !t.parked && t.last == p.now {
		return i
	}
	if !t.parked {
		p.idle.remove(&p.traces, i)
	}
	t.parked = false
	t.last = p.now
	p.idle.push(&p.traces, i)
	return i
}

// add holds s in trace i.
func (p *Path) add(i uint32, s *trimtab.Span) {
	t := p.traces.at(i)
	if int(t.count) >= p.config.MaxSpansPerTrace && !p.makeRoom(t) {
		p.counts.dropped++
		return
	}
	k := p.spans.take()
	r := p.spans.at(k)
	r.id = binary.BigEndian.Uint64(s.SpanID[:])
	r.parent = binary.BigEndian.Uint64(s.Parent[:])
	r.start, r.end = s.Start, s.End
	r.adjusted = s.Adjusted
	r.next = 0
	from := &p.resources[s.Resource]
	if !from.serves && s.Serves() {
		from.serves = true
		p.places.serve(from.place)
	}
	r.place, r.instance = from.place, from.instance
	r.kind, r.flags = uint8(s.Kind), s.Flags
	if t.tail == 0 {
		t.head = k
	} else {
		p.spans.at(t.tail).next = k
	}
	t.tail = k
	t.count++
}

// makeRoom drops the duplicates of a trace at its limit, once.
func (p *Path) makeRoom(t *traceRecord) bool {
	if t.full {
		return false
	}
	t.full = true
	p.load(t)
	if p.tree.duplicates == 0 {
		return false
	}
	p.counts.duplicates += uint64(p.tree.duplicates)
	p.freeSpans(t)
	for i := range p.tree.nodes {
		n := &p.tree.nodes[i]
		if n.duplicate {
			continue
		}
		k := p.spans.take()
		*p.spans.at(k) = n.record
		p.spans.at(k).next = 0
		if t.tail == 0 {
			t.head = k
		} else {
			p.spans.at(t.tail).next = k
		}
		t.tail = k
		t.count++
	}
	return true
}

// load builds the tree of t.
func (p *Path) load(t *traceRecord) {
	p.tree.reset(int(t.count))
	p.tree.trace = t.id
	for k := t.head; k != 0; {
		r := p.spans.at(k)
		p.tree.add(r, p.places.places[r.place].workload)
		k = r.next
	}
	p.tree.connect(p.places)
}

// finish analyses trace i and lets go of it.
func (p *Path) finish(i uint32, cause *uint64) {
	p.load(p.traces.at(i))
	p.release(i, cause)
}

// release analyses the trace i that was just loaded and lets go of it.
func (p *Path) release(i uint32, cause *uint64) {
	t := p.traces.at(i)
	*cause++
	p.counts.duplicates += uint64(p.tree.duplicates)
	p.counts.analysed += uint64(len(p.tree.nodes) - p.tree.duplicates)
	p.account()
	p.contribute()
	p.tellRequests()
	p.freeSpans(t)
	delete(p.byTrace, t.id)
	p.oldest.remove(&p.traces, i)
	if !t.parked {
		p.idle.remove(&p.traces, i)
	}
	p.traces.put(i)
	if cap(p.tree.nodes) > 1<<15 {
		p.tree, p.visitor = tree{}, visitor{} // a rare huge trace must not hold on to memory
	}
}

func (p *Path) freeSpans(t *traceRecord) {
	for k := t.head; k != 0; {
		next := p.spans.at(k).next
		p.spans.put(k)
		k = next
	}
	t.head, t.tail, t.count = 0, 0, 0
}
