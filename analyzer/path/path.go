package path

import (
	"encoding/binary"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Path assembles traces and summarizes them. It implements [trimtab.Step], [trimtab.Snapshotter]
// and [trimtab.Counted], and is not safe for concurrent use.
type Path struct {
	config Config
	now    int64

	spans   slab[record]
	traces  slab[traceRecord]
	byTrace map[[16]byte]uint32
	// oldest lists all traces in order of their first span. senders lists those that wait for
	// further spans, by the time at which they are due; parked ones are in no such list.
	oldest list
	// ended has, by hash of the trace's id, the workload of recently finished traces, so that
	// spans that come after them can be attributed.
	ended [1 << endedBits]endedTrace
	// looked is when traces and intervals were last checked, in Unix ns.
	looked int64

	places    *places
	senders   *senders
	resources []frameSender // of the current frame
	newest    []int64       // by resource, the latest end of a span of the frame by the sender's clock; 0: none
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
	}
	p.senders = newSenders(&p.config)
	p.places = newPlaces(&p.config, p.senders)
	p.windows = windows{config: &p.config, places: p.places}
	return p, nil
}

// lookEvery is how often, in ns, waiting traces and intervals are checked while spans arrive.
const lookEvery = 50 * 1e6

// Step reads a *trimtab.SpanFrame, or nil for a tick. It returns the sketches (*trimtab.Sketch) of
// all intervals that are complete, in order of time and workload. It ignores other values.
func (p *Path) Step(now time.Time, in trimtab.Value) (out []trimtab.Value) {
	p.now = max(p.now, now.UnixNano())
	if in == nil || p.now-p.looked >= lookEvery {
		p.looked = p.now
		p.senders.advance(p.now)
		p.expire()
		out = p.windows.emit(p.now, p.senders)
		p.counts.sketches += uint64(len(out))
	}
	if frame, ok := in.(*trimtab.SpanFrame); ok && frame != nil {
		p.read(frame)
	}
	return out
}

// Flush finishes all traces and returns the sketches of all intervals, including open ones. It is
// for the end of a recording or of the process.
func (p *Path) Flush(now time.Time) []trimtab.Value {
	p.now = max(p.now, now.UnixNano())
	for p.oldest.head != 0 {
		p.finish(p.oldest.head, &p.counts.timedOut)
	}
	out := p.windows.flush(p.now, p.senders)
	p.counts.sketches += uint64(len(out))
	return out
}

// expire finishes the traces that are complete or have reached the timeout.
func (p *Path) expire() {
	for i := p.oldest.head; i != 0; i = p.oldest.head {
		if p.now-p.traces.at(i).first < int64(p.config.Timeout) {
			break
		}
		p.finish(i, &p.counts.timedOut)
	}
	for _, g := range p.senders.groups {
		if g != nil {
			p.settle(g)
		}
	}
	if len(p.byTrace) == 0 && len(p.spans.chunks) > 16 {
		p.spans.reset()
		p.traces.reset()
		p.byTrace = map[[16]byte]uint32{}
	}
}

// settle checks the due traces of a group, and finishes those that are complete. A trace that lacks
// a span is parked: the missing parent may still run.
func (p *Path) settle(g *group) {
	s := p.senders
	last := g.mark / s.slot
	for slot := max(g.done, last-s.slots+1); slot <= last; slot++ {
		l := &g.lists[slot%s.slots]
		for i := l.head; i != 0; {
			t := p.traces.at(i)
			next := t.links[1].next
			if t.due <= g.mark {
				p.load(t)
				if t.end <= g.mark && p.tree.complete() {
					p.release(i, &p.counts.settled)
				} else {
					p.unlist(i)
					p.list(i, g, p.countEarly(t, g.mark))
				}
			}
			i = next
		}
	}
	g.done = max(g.done, last)
}

// maxEarly is the number of spans up to which requests of an unfinished trace are counted early: a
// trace that grows for long would otherwise be searched too often.
const maxEarly = 1000

// countEarly counts the requests of the loaded trace that ended by mark and whose callers' spans
// are missing. Their interval is closed now, and the callers' spans may take long or never arrive.
// It returns when the next request, or the trace, ends; 0: all known requests have ended.
func (p *Path) countEarly(t *traceRecord, mark int64) (next int64) {
	if t.end > mark {
		next = t.end
	}
	if p.config.Lateness == 0 || t.count > maxEarly {
		return next
	}
	k := t.head
	for i := range p.tree.nodes {
		n, r := &p.tree.nodes[i], p.spans.at(k)
		k = r.next
		switch {
		case n.end > mark && n.end <= t.end:
			next = min(next, n.end)
		case n.duplicate || n.workload == noWorkload || n.role != servedRole || r.flags&recCounted != 0:
		case n.up != none || n.parent == 0 || p.places.places[p.places.places[n.place].base].inner <= 0:
			p.accountTop(n)
			r.flags |= recCounted
		}
	}
	return next
}

// unlist removes trace i from the list of due traces, if it is in one.
func (p *Path) unlist(i uint32) {
	t := p.traces.at(i)
	if t.due != 0 {
		p.senders.list(p.senders.group(t.workload), t.due).remove(&p.traces, i)
		t.due = 0
	}
}

// read processes the spans of a frame.
func (p *Path) read(frame *trimtab.SpanFrame) {
	r, err := codec.ReadFrame(frame.Data)
	if err != nil {
		p.counts.unreadable++
		return
	}
	p.resources, p.newest = p.resources[:0], p.newest[:0]
	p.places.begin(p.now)
	r.Resources(func(_ int, packed []byte) bool {
		p.readResource(packed)
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
	for i, newest := range p.newest {
		if clock := p.resources[i].clock; clock != noClock && newest != 0 {
			p.senders.clocks[clock].observe(p.now, newest, &p.config)
		}
	}
}

// readResource reads the next resource of a frame, or the next peer of one.
func (p *Path) readResource(packed []byte) {
	next := frameSender{}
	if of, peer, ok := codec.UnpackPeer(packed); !ok {
		next.sender = p.places.of(packed)
		next.origins[0] = origin(next.place)
	} else if int(of) < len(p.resources) {
		p.resources[of].call(p.places.calling(p.resources[of].place, peer))
	}
	p.resources, p.newest = append(p.resources, next), append(p.newest, 0)
}

// trace returns the unfinished trace with the id, creating it if there is none.
func (p *Path) trace(id [16]byte) uint32 {
	i, ok := p.byTrace[id]
	if ok {
		return i
	}
	if len(p.byTrace) >= p.config.MaxTraces {
		p.finish(p.oldest.head, &p.counts.evicted)
	}
	i = p.traces.allocate()
	*p.traces.at(i) = traceRecord{id: id, first: p.now, workload: noWorkload}
	p.byTrace[id] = i
	p.oldest.push(&p.traces, i)
	return i
}

// add stores s in trace i.
func (p *Path) add(i uint32, s *trimtab.Span) {
	t := p.traces.at(i)
	from := &p.resources[s.Resource]
	if !from.serves && s.Serves() {
		from.serves = true
		p.places.serve(from.place)
	}
	p.meet(i, t, p.places.places[from.place].workload)
	shift := int64(0)
	if from.clock != noClock {
		shift = p.see(from.clock, s)
	}
	p.wait(i, t, s.End+shift)
	if p.config.Lateness > 0 && s.Serves() {
		p.foretell(&p.places.places[from.place], s, shift)
	}
	if int(t.count) >= p.config.MaxSpansPerTrace && !p.makeRoom(t) {
		p.counts.dropped++
		return
	}
	k := p.spans.allocate()
	r := p.spans.at(k)
	r.id = binary.BigEndian.Uint64(s.SpanID[:])
	r.parent = binary.BigEndian.Uint64(s.Parent[:])
	r.start, r.end = s.Start, s.End
	r.adjusted = s.Adjusted
	r.next = 0
	r.from, r.instance = from.origin(s.Peer), from.instance
	r.kind, r.flags = uint8(s.Kind), s.Flags&^(recShifted|recCounted)
	if shift != 0 {
		r.start, r.end, r.flags = s.Start+shift, s.End+shift, r.flags|recShifted
	}
	p.append(t, k)
}

// append appends a span to those of a trace.
func (p *Path) append(t *traceRecord, k uint32) {
	if t.tail == 0 {
		t.head = k
	} else {
		p.spans.at(t.tail).next = k
	}
	t.tail = k
	t.count++
}

// foretell counts the span of a request that place x served before its trace is finished, if the
// workload has an SLO.
func (p *Path) foretell(x *place, s *trimtab.Span, shift int64) {
	if x.workload == noWorkload || s.Start <= 0 || s.End < s.Start || p.places.places[x.base].inner > 0 {
		return
	}
	if threshold := p.places.workloads[x.workload].threshold; threshold > 0 {
		under := s.End-s.Start <= threshold && s.Flags&trimtab.FlagError == 0
		p.windows.foretell(x.workload, s.End+shift, p.now, float64(s.Adjusted), under)
	}
}

// see records the arrival of a span from a sender, and returns the correction in ns to add to its
// times.
func (p *Path) see(clock clockID, s *trimtab.Span) (shift int64) {
	if s.Start <= 0 || s.End < s.Start {
		return 0
	}
	p.newest[s.Resource] = max(p.newest[s.Resource], s.End)
	c := &p.senders.clocks[clock]
	if age := p.now - s.End - c.shift; age >= -int64(p.config.Skew) && age <= maxAge {
		c.age.add(age)
		c.behind.add(c.newest - s.End - c.shift)
	}
	return c.shift
}

// meet records that trace i has a span of a workload.
func (p *Path) meet(i uint32, t *traceRecord, workload int32) {
	switch {
	case workload == noWorkload || t.workload == workload:
		return
	case t.workload == noWorkload:
		due := t.due
		p.unlist(i)
		t.workload = workload
		p.list(i, p.senders.group(workload), due)
		if e := p.endedTrace(t.id); p.config.Lateness > 0 && e.known && e.id == t.id && e.workload != workload {
			p.senders.join(workload, e.workload, &p.traces)
		}
	default:
		p.senders.join(workload, t.workload, &p.traces)
	}
}

// wait records that trace i got a span that ended at end, and sets when the trace is due: once all
// spans that ended before end have arrived, or, if that time was already checked, all that ended
// before now.
func (p *Path) wait(i uint32, t *traceRecord, end int64) {
	g := p.senders.group(t.workload)
	if end = min(end, p.now); p.config.Lateness == 0 || end <= g.mark {
		end = p.now
	}
	t.end = max(t.end, end)
	if t.due != 0 && (t.due <= end && p.config.Lateness > 0 || t.due == end) {
		return
	}
	p.unlist(i)
	p.list(i, g, end)
}

// list sets when trace i is due. With due 0 the trace is parked: it is in no list.
func (p *Path) list(i uint32, g *group, due int64) {
	if due != 0 {
		p.traces.at(i).due = due
		p.senders.list(g, due).push(&p.traces, i)
	}
}

// endedTrace returns the entry of the hash table for a finished trace.
func (p *Path) endedTrace(id [16]byte) *endedTrace {
	return &p.ended[(binary.LittleEndian.Uint64(id[8:])^binary.LittleEndian.Uint64(id[:8]))*0x9E3779B97F4A7C15>>(64-endedBits)]
}

// makeRoom drops the duplicates of a trace that has reached its limit, once.
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
		k := p.spans.allocate()
		*p.spans.at(k) = n.record
		p.spans.at(k).next = 0
		p.append(t, k)
	}
	return true
}

// load builds the tree of trace t.
func (p *Path) load(t *traceRecord) {
	p.tree.reset(int(t.count))
	p.tree.trace = t.id
	for k := t.head; k != 0; {
		r := p.spans.at(k)
		p.tree.add(r, p.places)
		k = r.next
	}
	p.tree.connect(p.places)
}

// finish analyses trace i and frees it.
func (p *Path) finish(i uint32, cause *uint64) {
	p.load(p.traces.at(i))
	p.release(i, cause)
}

// release analyses trace i, which was just loaded, and frees it.
func (p *Path) release(i uint32, cause *uint64) {
	t := p.traces.at(i)
	*cause++
	p.counts.duplicates += uint64(p.tree.duplicates)
	p.counts.analysed += uint64(len(p.tree.nodes) - p.tree.duplicates)
	p.account()
	p.contribute()
	p.reportRequests()
	p.freeSpans(t)
	delete(p.byTrace, t.id)
	p.oldest.remove(&p.traces, i)
	p.unlist(i)
	if t.workload != noWorkload {
		*p.endedTrace(t.id) = endedTrace{t.id, t.workload, true}
	}
	p.traces.put(i)
	if cap(p.tree.nodes) > 1<<15 {
		p.tree, p.visitor = tree{}, visitor{} // do not keep the memory of a rare huge trace
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
