package drf

import (
	"math"
	"sort"
)

// ahead is how many rows are prefetched before the first of them is scattered, so that their
// cache misses overlap.
const (
	ahead   = 16
	perLine = 5 // entries that lie in a line of the cache, whole
)

// scatter subtracts the rows that this pass froze from their resources: F -= a, U -= a x. Each
// thread owns a range of columns and goes through all rows in the same order, so that every cell
// sees the same sequence of operations for any number of threads.
func (f *filler) scatter() {
	rows := f.states.order[f.states.taken:f.states.frozen]
	if f.threads == 1 || perRow*len(rows) < f.worth {
		f.touched += f.scatterAll(rows)
		return
	}
	f.share(rows)
	f.run.Run(f.threads, func(p int) { f.scatterOwn(rows, p) })
}

// share divides the columns so that each thread has about as many entries of this pass. The
// division changes because columns are numbered by when they end.
func (f *filler) share(rows []uint32) {
	sample := rows[:min(len(rows), ahead)]
	f.split = f.split[:0]
	for p := 1; p < f.threads; p++ {
		sum := 0
		for _, i := range sample {
			s := f.m.rows[i]
			sum += int(f.m.entries[int(s.start)+int(s.length)*p/f.threads].column)
		}
		f.split = append(f.split, uint32(sum/len(sample)))
	}
	f.split = append(f.split, math.MaxUint32)
}

// batch has the positions of the next rows to scatter, and their levels.
type batch struct {
	spans  [ahead]Span
	levels [ahead]float64
}

func (f *filler) scatterAll(rows []uint32) (touched uint32) {
	var b batch
	cells, entries := f.cells, f.m.entries
	for len(rows) > 0 {
		n := min(len(rows), ahead)
		touched += f.touch(rows[:n], &b, 0, 1)
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
	return touched
}

// touch prefetches the spans of the next rows and the part of their entries in a thread's
// columns, in loops so short that the processor has as many loads in flight as it can. It returns
// a sum without meaning; without it the compiler would drop the loads.
func (f *filler) touch(rows []uint32, b *batch, part, parts uint32) (touched uint32) {
	spans, levels, entries := f.m.rows, f.states.level, f.m.entries
	for k, i := range rows {
		b.spans[k%ahead] = spans[i]
		b.levels[k%ahead] = levels[i]
	}
	for k := range rows {
		s := b.spans[k%ahead]
		end := int(s.start + s.length*(part+1)/parts)
		for at := int(s.start + s.length*part/parts); at < end; at += perLine {
			touched += entries[at].column
		}
	}
	return touched
}

// scatterOwn does the work of scatterAll for the columns of one thread.
func (f *filler) scatterOwn(rows []uint32, part int) (touched uint32) {
	var b batch
	from, to := uint32(0), f.split[part]
	if part > 0 {
		from = f.split[part-1]
	}
	cells, entries := f.cells, f.m.entries
	for len(rows) > 0 {
		n := min(len(rows), ahead)
		touched += f.touch(rows[:n], &b, uint32(part), uint32(f.threads))
		for k := range n {
			level := b.levels[k]
			row := entries[b.spans[k].start:b.spans[k].end()]
			if from > 0 {
				row = row[find(row, from, len(row)*part/f.threads):]
			}
			for _, e := range row {
				if e.column >= to {
					break
				}
				a := e.rate()
				x := &cells[e.column]
				x.rate -= a
				x.room -= a * level
			}
		}
		rows = rows[n:]
	}
	return touched
}

// find returns the first entry of a row at or after a column, searching from a guess so that a
// thread need not read entries of others.
func find(row []Entry, column uint32, guess int) int {
	if len(row) > 32 {
		return sort.Search(len(row), func(k int) bool { return row[k].column >= column })
	}
	k := guess
	for k > 0 && row[k-1].column >= column {
		k--
	}
	for k < len(row) && row[k].column < column {
		k++
	}
	return k
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
	return row[find(row, c, 0)].rate()
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
