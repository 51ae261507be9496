package drf

import (
	"math"
	"sort"
)

// ahead is how many rows are touched before the first of them is scattered,
// so that their cache misses overlap.
const ahead = 16

// scatter takes the rows that this pass froze out of their resources:
// F -= a, U -= a x. Each thread owns a range of columns and goes through all
// rows in the same order, so that every cell sees the same sequence of
// operations for any number of threads.
func (f *filler) scatter() {
	rows := f.order[f.taken:f.frozen]
	if f.threads == 1 || len(rows) < 4 {
		f.scatterAll(rows)
		return
	}
	f.run.Run(f.threads, func(p int) {
		from := uint32(0)
		if p > 0 {
			from = f.split[p-1]
		}
		f.scatterOwn(rows, from, f.split[p])
	})
}

func (f *filler) scatterAll(rows []uint32) (touched uint32) {
	var spans [ahead]Span
	var levels [ahead]float64
	cells, entries := f.cells, f.entries
	for len(rows) > 0 {
		n, t := f.touch(rows, &spans, &levels)
		touched += t
		for k := range n {
			level := levels[k]
			for _, e := range entries[spans[k].start:spans[k].end()] {
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

// touch loads where the next rows are and their first entries. The sum of what
// it loads means nothing; without it the compiler would drop the loads.
func (f *filler) touch(rows []uint32, spans *[ahead]Span, levels *[ahead]float64) (n int, touched uint32) {
	n = min(len(rows), ahead)
	for k, i := range rows[:n] {
		spans[k&(ahead-1)] = f.rows[i]
		levels[k&(ahead-1)] = f.level[i]
	}
	for k := range n {
		s := spans[k&(ahead-1)]
		for at := s.start; at < s.end(); at += 5 {
			touched += f.entries[at].column
		}
	}
	return n, touched
}

// touchColumns does the same for the columns of the next candidates.
func (f *filler) touchColumns(of []candidate) (n int, touched uint32) {
	n = min(len(of), ahead)
	for _, c := range of[:n] {
		touched += f.columns[f.column[c.column].start]
	}
	return n, touched
}

// scatterOwn is scatterAll for the columns in [from, to).
func (f *filler) scatterOwn(rows []uint32, from, to uint32) (touched uint32) {
	var spans [ahead]Span
	var levels [ahead]float64
	cells, entries := f.cells, f.entries
	for len(rows) > 0 {
		n, t := f.touch(rows, &spans, &levels)
		touched += t
		for k := range n {
			level := levels[k]
			row := entries[spans[k].start:spans[k].end()]
			if from > 0 {
				row = skip(row, from)
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

// skip drops the entries before column from.
func skip(row []Entry, from uint32) []Entry {
	if len(row) > 32 {
		return row[sort.Search(len(row), func(k int) bool { return row[k].column >= from }):]
	}
	k := 0
	for k < len(row) && row[k].column < from {
		k++
	}
	return row[k:]
}

// touchCells does the same for the cells of columns about to be looked at.
func (f *filler) touchCells(of []uint32) (n int, touched uint32) {
	n = min(len(of), 2*ahead)
	cells, guards := f.cells, f.guards
	for _, c := range of[:n] {
		touched += uint32(math.Float64bits(cells[c].rate)) + math.Float32bits(guards[c].least)
	}
	return n, touched
}

// resum sums a column up afresh: F over the active, U over the frozen, each
// with the rounding error carried along (Neumaier).
func (f *filler) resum(c uint32) {
	var rate, used sum
	active, smallest := uint32(0), math.MaxFloat32
	s := f.column[c]
	for _, i := range f.columns[s.start:s.end()] {
		a := f.rateOf(i, c)
		if f.stateOf(i)&isFrozen != 0 {
			used.add(a * f.level[i])
		} else {
			rate.add(a)
			active++
			smallest = min(smallest, a)
		}
	}
	x := &f.cells[c]
	used.add(-f.first[c].room)
	x.rate, x.room = rate.value(), -used.value()
	f.guards[c] = guard(x.rate, active, smallest)
	f.stats.Resummed++
}

// resumRate sums F up afresh, over the active alone.
func (f *filler) resumRate(c uint32) {
	var rate sum
	active, smallest := uint32(0), math.MaxFloat32
	s := f.column[c]
	for _, i := range f.columns[s.start:s.end()] {
		if f.stateOf(i)&isFrozen == 0 {
			a := f.rateOf(i, c)
			rate.add(a)
			active++
			smallest = min(smallest, a)
		}
	}
	x := &f.cells[c]
	x.rate = rate.value()
	f.guards[c] = guard(x.rate, active, smallest)
	f.stats.Resummed++
}

// rateOf finds the entry of column c in row i.
func (m *Matrix) rateOf(i, c uint32) float64 {
	row := m.entries[m.rows[i].start:m.rows[i].end()]
	return skip(row, c)[0].rate()
}

// sum adds numbers and carries the error of rounding along.
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
