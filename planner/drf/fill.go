package drf

import (
	"math"
	"slices"
)

const (
	// front is how many resources are looked at together.
	front = 512
	// walkBudget bounds the indices that one pass reads from columns after its
	// first.
	walkBudget = 16384
	// fewColumns: a longer column is summed up afresh whenever it counts.
	fewColumns = 1024
	// noise: room below this part of what there was at first is rounding.
	noise = 0x1p-48
)

// The states of a tenant, two bits each.
const (
	isActive  = 0
	isFrozen  = 1
	isBlocked = 2 // in this pass: a resource that was put off demands it
	isTaken   = 3 // in this pass: frozen just now
)

// candidate is a resource that may be the next to be full.
type candidate struct {
	column uint32
	at     uint32 // where its active tenants are in gathered
	count  uint32 // how many
	key    uint64 // bits of T; a lower bound once others were frozen
}

// filler is the state of one solve.
type filler struct {
	*Matrix
	calendar calendar
	cells    []Cell
	guards   []Guard
	whole    map[uint32]float64 // long columns: F when summed up
	level    []float64          // by row
	state    []uint64
	order    []uint32 // rows as they froze
	why      []uint32 // parallel to order: column, or byLimit
	gathered []uint32
	drained  []uint32

	heap    []candidate // more than front of them in one window
	front   []candidate
	put     []uint32 // blocked rows of this pass
	due     []uint32 // limits of this window that were put off
	taken   int      // of order, before this pass
	frozen  int
	limit   int // next of limited
	reached float64
	stopped bool
	threads int
	split   []uint32 // columns at which the threads' shares end
	stats   Stats
	run     Runner
	touched uint32 // means nothing; see touch
}

// Stats counts the work of one solve.
type Stats struct {
	// Passes are batches of saturations between two barriers; Events the
	// saturations and limits that froze somebody; Looks how often a T was
	// computed; Walked the indices read from columns; Resummed the columns
	// that were summed up afresh.
	Passes, Events, Looks, Walked, Resummed int
}

const byLimit = math.MaxUint32

func (f *filler) lay(m *Matrix, a Arena) {
	s := m.size
	f.Matrix = m
	f.cells = take(&a.Cells, s.Resources)
	f.guards = take(&a.Guards, s.Resources)
	f.whole = map[uint32]float64{}
	f.level = take(&a.Numbers, s.Tenants)
	f.state = take(&a.Words, s.Tenants/16+1)
	f.state = f.state[:s.Tenants/32+1]
	f.order, f.why = take(&a.Indices, s.Tenants), take(&a.Indices, s.Tenants)
	f.gathered = take(&a.Indices, s.Tenants+walkBudget)
	f.drained = take(&a.Indices, s.Resources)
}

// fill raises the levels until everybody is frozen, or stop says so.
func (f *filler) fill(run Runner, stop func() bool) {
	f.start(run)
	for f.frozen < f.added {
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
func (f *filler) start(run Runner) {
	f.run, f.threads = run, run.Threads()
	copy(f.cells, f.first)
	copy(f.guards, f.firstGuard)
	clear(f.whole)
	clear(f.state)
	f.frozen, f.limit, f.stopped, f.reached = 0, 0, false, 0
	f.stats = Stats{}
	f.heap, f.front, f.due, f.put = f.heap[:0], f.front[:0], f.due[:0], f.put[:0]
	for i := range f.added {
		if f.rows[i].length == 0 {
			f.freeze(uint32(i), 0, byLimit)
		}
	}
	f.share()
	least := uint64(never)
	for c := range f.cells {
		if x := &f.cells[c]; x.rate > 0 {
			least = min(least, math.Float64bits(x.room/x.rate))
		}
	}
	if f.finite > 0 {
		least = min(least, math.Float64bits(f.limits[f.limited[0]]))
	}
	f.calendar.reset(least)
	for c := range f.cells {
		if x := &f.cells[c]; x.rate > 0 {
			f.calendar.add(uint32(c), math.Float64bits(x.room/x.rate))
		}
	}
	f.stats.Looks += len(f.cells)
}

// freeze notes that a row is frozen outside of a pass.
func (f *filler) freeze(i uint32, level float64, why uint32) {
	f.level[i] = level
	f.state[i/32] |= isFrozen << (i % 32 * 2)
	f.order[f.frozen], f.why[f.frozen] = i, why
	f.frozen++
}

// share cuts the columns so that each thread has as many entries.
func (f *filler) share() {
	f.split = f.split[:0]
	sum := 0
	for c := range f.column {
		sum += int(f.column[c].length)
		if len(f.split) < f.threads-1 && sum*f.threads >= f.used*(len(f.split)+1) {
			f.split = append(f.split, uint32(c+1))
		}
	}
	for len(f.split) < f.threads {
		f.split = append(f.split, uint32(len(f.column)))
	}
}

// renew lays the windows out anew from the least T that is left. It says
// whether anything is left.
func (f *filler) renew() bool {
	low := f.calendar.low()
	f.drained = f.calendar.drain(f.drained[:0])
	least := uint64(never)
	keys := f.drained[:0]
	for _, c := range f.drained {
		if key := f.look(c, low); key != never {
			least = min(least, key)
			keys = append(keys, c)
		}
	}
	for k := f.limit; k < f.finite; k++ {
		if i := f.limited[k]; f.stateOf(i) == isActive {
			least = min(least, math.Float64bits(f.limits[i]))
			break
		}
	}
	f.calendar.reset(least)
	for _, c := range keys {
		f.calendar.add(c, f.look(c, low))
	}
	return least != never
}

func (f *filler) stateOf(i uint32) uint64 { return f.state[i/32] >> (i % 32 * 2) & 3 }

// look returns the bits of T of a column, at least those of the level low
// that all have reached, or never.
func (f *filler) look(c uint32, low uint64) uint64 {
	x := &f.cells[c]
	g := f.guards[c]
	if x.rate < float64(g.alone) {
		return never
	}
	if x.lostRate(g) {
		f.resumRate(c)
	}
	if x.rate == 0 {
		return never
	}
	if x.lostRoom(&f.column[c]) {
		f.resum(c)
	}
	if x.room < noise && x.room <= noise*f.first[c].room {
		return low
	}
	return max(low, math.Float64bits(x.room/x.rate))
}

// window works off all events of the present window.
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

// sift puts the columns whose T lies in the present window into the front, the
// others into the calendar.
func (f *filler) sift(columns []uint32, low, high uint64) (touched uint32) {
	for len(columns) > 0 {
		n, t := f.touchCells(columns)
		touched += t
		for _, c := range columns[:n] {
			switch key := f.look(c, low); {
			case key == never:
			case key >= high:
				f.calendar.add(c, key)
			default:
				f.front = append(f.front, candidate{column: c, key: key})
			}
		}
		columns = columns[n:]
	}
	return touched
}

// refill exchanges what was put off for the smallest of the heap, where there
// is one, and returns up to which key the front is complete.
func (f *filler) refill(low, high uint64) (bound uint64) {
	if len(f.heap) > 0 {
		for _, c := range f.front {
			push(&f.heap, c)
		}
		f.front = f.front[:0]
	}
	for len(f.front) < front && len(f.heap) > 0 {
		c := &f.heap[0]
		switch key := f.look(c.column, max(low, c.key)); {
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

// lookAgain computes T of those that were put off, and lets go of those that
// belong into a later window.
func (f *filler) lookAgain(low, high uint64) {
	kept := f.front[:0]
	for _, c := range f.front {
		switch key := f.look(c.column, max(low, c.key)); {
		case key == never:
		case key >= high:
			f.calendar.add(c.column, key)
		default:
			kept = append(kept, candidate{column: c.column, key: key})
		}
	}
	f.front = kept
}

// limitDue says whether a limit lies before high.
func (f *filler) limitDue(high uint64) bool {
	if len(f.due) > 0 {
		return true
	}
	for ; f.limit < f.finite; f.limit++ {
		if i := f.limited[f.limit]; f.stateOf(i) == isActive {
			return math.Float64bits(f.limits[i]) < high
		}
	}
	return false
}

// byKey orders candidates by T, ties by column, so that no other order leaves
// a trace.
func byKey(a, b candidate) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return int(a.column) - int(b.column)
}

// pass freezes, in the order of T up to bound, whoever a saturation or a limit
// freezes that shares no active tenant with an earlier one of this pass.
// Those that do are put off, and whoever they would freeze with them.
func (f *filler) pass(bound uint64) {
	slices.SortFunc(f.front, byKey)
	n := f.choose(bound)
	f.gather(f.front[:n])
	f.taken = f.frozen
	if n < len(f.front) {
		bound = min(bound, f.front[n].key)
	}
	kept := f.front[:0]
	due := f.due
	f.due = f.due[:0]
	for k := range n {
		c := f.front[k]
		due = f.limitsUpTo(due, c.key)
		if !f.saturate(c) {
			kept = append(kept, c)
		}
	}
	due = f.limitsUpTo(due, bound)
	f.due = append(f.due, due...)
	f.front = append(kept, f.front[n:]...)
	f.scatter()
	f.settle()
	f.stats.Passes++
}

// choose says how many of the front this pass looks at: one, and more while
// their columns are short and their T is not beyond bound.
func (f *filler) choose(bound uint64) int {
	walked := 0
	for k, c := range f.front {
		length := int(f.column[c.column].length)
		if c.key > bound || k > 0 && walked+length > walkBudget {
			return k
		}
		if f.long(c.column) {
			// Only the first is summed up afresh: the next may change.
			if k > 0 {
				return k
			}
			if f.resumFirst(); len(f.front) > 1 && f.front[0].key > f.front[1].key {
				slices.SortFunc(f.front, byKey)
				return f.choose(bound)
			}
			if f.front[0].key > bound {
				return 0
			}
		}
		walked += length
		f.stats.Walked += length
	}
	return len(f.front)
}

// long says whether a column has to be summed up before it may count.
func (f *filler) long(c uint32) bool {
	if f.column[c].length <= fewColumns {
		return false
	}
	rate, ok := f.whole[c]
	return !ok || rate != f.cells[c].rate
}

// resumFirst sums the first of the front up afresh.
func (f *filler) resumFirst() {
	c := &f.front[0]
	f.resum(c.column)
	f.whole[c.column] = f.cells[c.column].rate
	c.key = f.look(c.column, f.calendar.low())
}

// gather lists the active rows of each candidate, in parallel.
func (f *filler) gather(of []candidate) {
	at := uint32(0)
	for k := range of {
		of[k].at = at
		at += f.column[of[k].column].length
	}
	parts := f.threads
	if parts == 1 || at < 256 {
		f.touched += f.gatherSome(of)
		return
	}
	f.run.Run(parts, func(p int) {
		f.gatherSome(of[len(of)*p/parts : len(of)*(p+1)/parts])
	})
}

func (f *filler) gatherSome(of []candidate) (touched uint32) {
	for len(of) > 0 {
		n, t := f.touchColumns(of)
		touched += t
		for k := range of[:n] {
			f.gatherOne(&of[k])
		}
		of = of[n:]
	}
	return touched
}

func (f *filler) gatherOne(c *candidate) {
	s := f.column[c.column]
	to := f.gathered[c.at : c.at+s.length]
	n := 0
	for _, i := range f.columns[s.start:s.end()] {
		if f.stateOf(i) == isActive {
			to[n] = i
			n++
		}
	}
	c.count = uint32(n)
}

// saturate freezes the active tenants of a candidate, unless one of them was
// frozen or blocked in this pass: then it blocks them all.
func (f *filler) saturate(c candidate) bool {
	rows := f.gathered[c.at : c.at+c.count]
	if !f.free(rows) {
		for _, i := range rows {
			if f.stateOf(i) == isActive {
				f.state[i/32] |= isBlocked << (i % 32 * 2)
				f.put = append(f.put, i)
			}
		}
		return false
	}
	level := math.Float64frombits(c.key)
	for _, i := range rows {
		f.take(i, level, c.column)
	}
	f.stats.Events++
	return true
}

func (f *filler) free(rows []uint32) bool {
	for _, i := range rows {
		if f.stateOf(i) != isActive {
			return false
		}
	}
	return true
}

// take freezes a row in this pass.
func (f *filler) take(i uint32, level float64, why uint32) {
	f.state[i/32] |= isTaken << (i % 32 * 2)
	f.level[i] = level
	f.order[f.frozen], f.why[f.frozen] = i, why
	f.frozen++
}

// limitsUpTo takes all limits up to key: those put off earlier, then new ones.
// It returns what is left of those put off.
func (f *filler) limitsUpTo(due []uint32, key uint64) []uint32 {
	if f.finite == 0 {
		return due
	}
	for len(due) > 0 && math.Float64bits(f.limits[due[0]]) <= key {
		f.takeLimit(due[0])
		due = due[1:]
	}
	for f.limit < f.finite && math.Float64bits(f.limits[f.limited[f.limit]]) <= key {
		f.takeLimit(f.limited[f.limit])
		f.limit++
	}
	return due
}

func (f *filler) takeLimit(i uint32) {
	switch f.stateOf(i) {
	case isActive:
		f.take(i, f.limits[i], byLimit)
		f.stats.Events++
	case isBlocked:
		f.due = append(f.due, i)
	}
}

// settle makes the states of this pass those of the next.
func (f *filler) settle() {
	for _, i := range f.order[f.taken:f.frozen] {
		f.state[i/32] &^= isBlocked << (i % 32 * 2)
	}
	for _, i := range f.put {
		f.state[i/32] &^= isBlocked << (i % 32 * 2)
	}
	f.put = f.put[:0]
}

// halt ends the solve: everybody who is active stays at the level that all
// have reached. That takes no time; [filler.levelOf] says so when asked.
func (f *filler) halt() {
	f.stopped = true
	f.reached = math.Float64frombits(f.calendar.low())
}

// levelOf returns the level of a row.
func (f *filler) levelOf(i uint32) float64 {
	if f.stopped && f.stateOf(i) == isActive {
		return f.reached
	}
	return f.level[i]
}

// finish freezes everybody whom halt left active, for those who need the whole
// order.
func (f *filler) finish() {
	for i := uint32(0); f.frozen < f.added; i++ {
		if f.stateOf(i) == isActive {
			f.freeze(i, f.reached, byStop)
		}
	}
}

const byStop = math.MaxUint32 - 1
