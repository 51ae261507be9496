package drf

import (
	"math"
	"slices"
)

// ahead is how many rows are prefetched before the first of them is scattered, so that their
// cache misses overlap.
const (
	ahead   = 16
	perLine = 5 // entries that lie in a line of the cache, whole
)

// batch has the positions of the next rows to scatter, and their levels.
type batch struct {
	spans  [ahead]Span
	levels [ahead]float64
}

// scatter subtracts the rows that this pass froze from their resources: F -= a, U -= a x.
func (f *filler) scatter() {
	var b batch
	cells, entries := f.cells, f.m.entries
	for rows := f.states.order[f.states.taken:f.states.frozen]; len(rows) > 0; {
		n := min(len(rows), ahead)
		f.touched += f.touch(rows[:n], &b)
		for k := range n {
			level := b.levels[k]
			for _, e := range entries[b.spans[k].start:b.spans[k].end()] {
				a := e.rate()
				x := &cells[e.column]
				x.rate -= a
				x.room -= a * level
			}
		}
		rows = rows[n:]
	}
}

// touch prefetches the spans of the next rows and their entries, in loops so short that the
// processor has as many loads in flight as it can. It returns a sum without meaning; without it the
// compiler would drop the loads.
func (f *filler) touch(rows []uint32, b *batch) (touched uint32) {
	spans, levels, entries := f.m.rows, f.states.level, f.m.entries
	for k, i := range rows {
		b.spans[k%ahead] = spans[i]
		b.levels[k%ahead] = levels[i]
	}
	for k := range rows {
		s := b.spans[k%ahead]
		for at := s.start; at < s.end(); at += perLine {
			touched += entries[at].column
		}
	}
	return touched
}

// touchColumns does the same for the columns of the next candidates.
func (f *filler) touchColumns(of []candidate) (n int, touched uint32) {
	n = min(len(of), ahead)
	for _, c := range of[:n] {
		touched += f.m.cols.rows[f.m.cols.span[c.column].start]
	}
	return n, touched
}

// touchCells does the same for the cells of columns about to be looked at.
func (f *filler) touchCells(of []uint32) (n int, touched uint32) {
	n = min(len(of), 2*ahead)
	cells := f.cells
	for _, c := range of[:n] {
		touched += uint32(math.Float64bits(cells[c].rate))
	}
	return n, touched
}

// resumRate sums F again over the active tenants, with compensation of rounding errors (Neumaier).
func (f *filler) resumRate(c uint32) {
	var rate sum
	s := f.m.cols.span[c]
	for _, i := range f.m.cols.rows[s.start:s.end()] {
		if f.states.of(i)&isFrozen == 0 {
			rate.add(f.m.rateOf(i, c))
		}
	}
	f.cells[c].rate = rate.value()
}

// resumRoom does the same for U, over the frozen tenants.
func (f *filler) resumRoom(c uint32) {
	var used sum
	s := f.m.cols.span[c]
	for _, i := range f.m.cols.rows[s.start:s.end()] {
		if f.states.of(i)&isFrozen != 0 {
			used.add(f.m.rateOf(i, c) * f.states.level[i])
		}
	}
	used.add(-f.m.cols.first[c].room)
	f.cells[c].room = -used.value()
}

// rateOf returns the entry of column c in row i.
func (m *Matrix) rateOf(i, c uint32) float64 {
	row := m.entries[m.rows[i].start:m.rows[i].end()]
	k, _ := slices.BinarySearchFunc(row, c, func(e Entry, c uint32) int { return int(e.column) - int(c) })
	return row[k].rate()
}

// sum is a sum with compensation of rounding errors.
type sum struct{ high, low float64 }

func (s *sum) add(x float64) {
	t := s.high + x
	if math.Abs(s.high) >= math.Abs(x) {
		s.low += (s.high - t) + x
	} else {
		s.low += (x - t) + s.high
	}
	s.high = t
}

func (s *sum) value() float64 { return s.high + s.low }
