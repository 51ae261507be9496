package drf

import (
	"math"
)

const (
	// front is how many resources are compared exactly at a time.
	front = 512
	// walkBudget bounds the indices that one pass reads from columns after its
	// first.
	walkBudget = 16384
	// fewColumns is the length of a column above which F is summed again whenever it counts.
	fewColumns = 1024
	// noise is the part of its initial room below which a resource's room is a rounding error.
	noise = 0x1p-48
	// siftBlock is how many columns are computed before any is queued.
	siftBlock = 8192
)

// candidate is a resource that may be the next to become full.
type candidate struct {
	column uint32
	at     uint32 // index of its active tenants in gathered
	count  uint32 // number of them
	key    uint64 // bits of T; only a lower bound once other tenants froze
}

// filler is the state of one solve.
type filler struct {
	m        *Matrix
	states   states
	calendar calendar
	cells    []Cell
	whole    map[uint32]float64 // F of long columns at their last sum
	gathered []uint32
	drained  []uint32
	keys     []uint64 // of a block of columns

	heap    []candidate // the candidates of a window beyond front
	front   []candidate
	due     []uint32 // postponed limits of this window
	limit   int      // index of the next limit in limited
	reached float64
	stopped bool
	stats   Stats
	touched uint32 // no meaning; see touch
}

// Stats counts the work of one solve.
type Stats struct {
	// Passes are batches of saturations between two barriers; Events the saturations and limits
	// that froze a tenant; Looks how often a T was computed; Walked the indices read from
	// columns.
	Passes, Events, Looks, Walked int
}

const byLimit = math.MaxUint32

func (f *filler) lay(m *Matrix, a Arena) {
	s := m.size
	f.m = m
	f.cells = take(&a.Cells, s.Resources)
	f.whole = map[uint32]float64{}
	f.states.level = take(&a.Numbers, s.Tenants)
	f.states.bits, f.keys = take(&a.Words, s.Tenants/32+1), take(&a.Words, siftBlock)
	f.states.order, f.states.why = take(&a.Indices, s.Tenants), take(&a.Indices, s.Tenants)
	f.gathered = take(&a.Indices, s.Tenants+walkBudget)
	f.drained = take(&a.Indices, s.Resources)
}

// fill raises the levels until every tenant is frozen, or stop returns true.
func (f *filler) fill(stop func() bool) {
	f.start()
	for f.states.frozen < f.m.added {
		if f.calendar.later() && !f.renew() {
			break
		}
		if f.window(stop) {
			f.halt()
			return
		}
		f.calendar.now++
	}
}

// start sets the cells to their first sums and queues all resources.
func (f *filler) start() {
	copy(f.cells, f.m.cols.first)
	clear(f.whole)
	f.states.reset()
	f.limit, f.stopped, f.reached = 0, false, 0
	f.stats = Stats{}
	f.heap, f.front, f.due = f.heap[:0], f.front[:0], f.due[:0]
	f.freezeEmpty()
	least := uint64(never)
	f.drained = f.drained[:0]
	for c := range f.cells {
		if x := &f.cells[c]; x.rate > 0 {
			least = min(least, math.Float64bits(x.room/x.rate))
			f.drained = append(f.drained, uint32(c))
		}
	}
	if len(f.m.limited) > 0 {
		least = min(least, math.Float64bits(f.m.limits[f.m.limited[0]]))
	}
	f.calendar.reset(least)
	f.stats.Looks += len(f.drained)
	f.sift(f.drained, 0, 0)
}

// freezeEmpty freezes the tenants that demand nothing.
func (f *filler) freezeEmpty() {
	for i := 0; f.states.frozen < f.m.empty; i++ {
		if f.m.rows[i].length == 0 {
			f.states.freeze(uint32(i), 0, byLimit)
		}
	}
}

// renew lays the windows out again from the least T that is left. It reports whether any is left.
func (f *filler) renew() bool {
	low := f.calendar.low()
	f.drained = f.calendar.drain(f.drained[:0])
	least := uint64(never)
	keys := f.drained[:0]
	for _, c := range f.drained {
		if key := f.look(c, low, low); key != never {
			least = min(least, key)
			keys = append(keys, c)
		}
	}
	for k := f.limit; k < len(f.m.limited); k++ {
		if i := f.m.limited[k]; f.states.of(i) == isActive {
			least = min(least, math.Float64bits(f.m.limits[i]))
			break
		}
	}
	f.calendar.reset(least)
	for _, c := range keys {
		f.calendar.add(c, f.look(c, low, low))
	}
	return least != never
}

// look returns the bits of T of a column, but at least low, the level that all tenants have
// reached; or never. From high on the result is only a lower bound, since the exact value is not
// needed yet.
func (f *filler) look(c uint32, low, high uint64) uint64 {
	x := &f.cells[c]
	if x.rate >= f.m.cols.sure.rate && x.rate >= f.m.cols.sure.perRoom*x.room && x.room >= littleRoom {
		return max(low, math.Float64bits(x.room/x.rate))
	}
	if x.rate < f.m.cols.sure.alone {
		return never
	}
	return f.lookClosely(c, low, high)
}

func (f *filler) lookClosely(c uint32, low, high uint64) uint64 {
	x, g, s := &f.cells[c], f.m.cols.guards[c], &f.m.cols.span[c]
	if x.rate < float64(g.alone) {
		return never
	}
	lostRate, lostRoom := x.lostRate(g), x.lostRoom(s)
	if lostRate || lostRoom {
		if key := max(low, math.Float64bits(x.atLeast(g, s.length))); key >= high {
			return key
		}
	}
	if lostRate {
		f.resumRate(c)
	}
	if x.rate == 0 {
		return never
	}
	if lostRoom {
		f.resumRoom(c)
	}
	if x.room < noise && x.room <= noise*f.m.cols.first[c].room {
		return low
	}
	return max(low, math.Float64bits(x.room/x.rate))
}

// window processes all events of the present window.
func (f *filler) window(stop func() bool) (stopped bool) {
	low, high := f.calendar.low(), f.calendar.high()
	f.drained = f.calendar.drain(f.drained[:0])
	f.stats.Looks += len(f.drained)
	f.sift(f.drained, low, high)
	if len(f.front) > front {
		f.heap, f.front = append(f.heap[:0], f.front...), f.front[:0]
		heapify(f.heap)
	}
	for first := true; ; first = false {
		bound := f.refill(low, high)
		if len(f.front) == 0 && len(f.heap) == 0 && !f.limitDue(high) {
			return false
		}
		if stop != nil && stop() {
			return true
		}
		if !first {
			f.stats.Looks += len(f.front)
		}
		f.pass(bound)
		f.lookAgain(low, high)
	}
}

// sift puts the columns whose T is in the present window into the front, and the others into the
// calendar.
func (f *filler) sift(columns []uint32, low, high uint64) {
	for len(columns) > 0 {
		n := min(len(columns), siftBlock)
		f.glance(columns[:n], f.keys[:n], low, high)
		for k, c := range columns[:n] {
			switch key := f.keys[k]; {
			case key == never:
			case key >= high:
				f.calendar.add(c, key)
			default:
				f.front = append(f.front, candidate{column: c, key: key})
			}
		}
		columns = columns[n:]
	}
}

// glance computes T of many columns.
func (f *filler) glance(columns []uint32, keys []uint64, low, high uint64) {
	for len(columns) > 0 {
		n, touched := f.touchCells(columns)
		f.touched += touched
		for k, c := range columns[:n] {
			keys[k] = f.look(c, low, high)
		}
		columns, keys = columns[n:], keys[n:]
	}
}

// refill exchanges postponed candidates for the smallest of the heap, if it has any, and returns
// the key up to which the front is complete.
func (f *filler) refill(low, high uint64) (bound uint64) {
	if len(f.heap) > 0 {
		for _, c := range f.front {
			push(&f.heap, c)
		}
		f.front = f.front[:0]
	}
	for len(f.front) < front && len(f.heap) > 0 {
		c := &f.heap[0]
		switch key := f.look(c.column, max(low, c.key), high); {
		case key == c.key:
			f.front = append(f.front, pop(&f.heap))
		case key == never:
			pop(&f.heap)
		case key >= high:
			f.calendar.add(pop(&f.heap).column, key)
		default:
			c.key = key
			down(f.heap, 0)
		}
	}
	if len(f.heap) > 0 {
		return f.heap[0].key
	}
	return high - 1
}

// lookAgain computes T of the postponed columns, and moves those of a later window to the
// calendar.
func (f *filler) lookAgain(low, high uint64) {
	kept := f.front[:0]
	for _, c := range f.front {
		switch key := f.look(c.column, max(low, c.key), high); {
		case key == never:
		case key >= high:
			f.calendar.add(c.column, key)
		default:
			kept = append(kept, candidate{column: c.column, key: key})
		}
	}
	f.front = kept
}

// limitDue reports whether a limit lies before high.
func (f *filler) limitDue(high uint64) bool {
	if len(f.due) > 0 {
		return true
	}
	for ; f.limit < len(f.m.limited); f.limit++ {
		if i := f.m.limited[f.limit]; f.states.of(i) == isActive {
			return math.Float64bits(f.m.limits[i]) < high
		}
	}
	return false
}

// halt ends the solve: every active tenant stays at the level that all have reached. That takes
// no time: [filler.levelOf] returns it on demand.
func (f *filler) halt() {
	f.stopped = true
	f.reached = math.Float64frombits(f.calendar.low())
}

// levelOf returns the level of a row.
func (f *filler) levelOf(i uint32) float64 {
	if f.stopped && f.states.of(i) == isActive {
		return f.reached
	}
	return f.states.level[i]
}

// finish freezes the tenants that halt left active, for callers that need the whole order.
func (f *filler) finish() {
	for i := uint32(0); f.states.frozen < f.m.added; i++ {
		if f.states.of(i) == isActive {
			f.states.freeze(i, f.reached, byStop)
		}
	}
}

const byStop = math.MaxUint32 - 1
