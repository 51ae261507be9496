package drf

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// oftenChanged is the number of changes of a column after which its sum is computed again, so that
// rounding errors do not accumulate over intervals.
const oftenChanged = 256

// Update replaces tenant i, in place if the new row is not longer than the old one. It takes time
// in proportion to the columns of the two rows. Errors are those of [Matrix.Add], and leave the
// matrix unchanged; after [ErrMemory] a relayout makes room again.
func (m *Matrix) Update(i int, t Tenant) error {
	if !m.sealed || i < 0 || i >= m.added {
		return fmt.Errorf("row %d of %d: update: %w", i, m.added, trimtab.ErrInvalid)
	}
	row, limit, err := m.normalise(&t)
	at := m.row[i]
	if err == nil {
		err = m.roomFor(m.rows[at], row)
	}
	if err != nil {
		return fmt.Errorf("row %d: %w", i, err)
	}
	old := m.rows[at]
	if len(row) == 0 {
		m.empty++
	}
	if old.length == 0 {
		m.empty--
	}
	for _, e := range m.entries[old.start:old.end()] {
		m.leave(e, at)
	}
	if len(row) > int(old.length) {
		old.start = uint32(m.used)
		m.used += len(row)
	}
	m.rows[at] = Span{old.start, uint32(len(row))}
	copy(m.entries[old.start:], row)
	for _, e := range row {
		m.join(e, at)
	}
	if !math.IsInf(limit, 1) || !math.IsInf(m.limits[at], 1) {
		m.limitedStale = true
	}
	m.limits[at] = limit
	for _, e := range row {
		m.refresh(e.column)
	}
	return nil
}

// roomFor returns an error if a new row does not fit behind the others. It moves columns without
// space for it behind the others, or packs all of them again.
func (m *Matrix) roomFor(old Span, row []Entry) error {
	if len(row) > int(old.length) && m.used+len(row) > len(m.entries) {
		return fmt.Errorf("%d entries behind %d of %d: %w", len(row), m.used, len(m.entries), ErrMemory)
	}
	need := 0
	for _, e := range row {
		if s := m.cols.span[e.column]; s.end() == m.cols.end[e.column] {
			need += moved(s.length)
		}
	}
	if m.cols.used+need > len(m.cols.rows) {
		m.index()
	}
	return nil
}

// moved returns the space that a column of this length gets when it moves.
func moved(length uint32) int { return int(length) + int(length)/8 + 4 }

// leave removes a row from a column.
func (m *Matrix) leave(e Entry, row uint32) {
	s := &m.cols.span[e.column]
	rows := m.cols.rows[s.start:s.end()]
	for k := range rows {
		if rows[k] == row {
			rows[k] = rows[len(rows)-1]
			break
		}
	}
	s.length--
	x := &m.cols.first[e.column]
	x.rate -= e.rate()
	m.refresh(e.column)
}

// join adds a row to a column, which moves behind the others if it is full.
func (m *Matrix) join(e Entry, row uint32) {
	s := &m.cols.span[e.column]
	if s.end() == m.cols.end[e.column] {
		to := uint32(m.cols.used)
		copy(m.cols.rows[to:], m.cols.rows[s.start:s.end()])
		s.start = to
		m.cols.used += moved(s.length)
		m.cols.end[e.column] = uint32(m.cols.used)
	}
	m.cols.rows[s.end()] = row
	s.length++
	x := &m.cols.first[e.column]
	x.rate += e.rate()
	m.cols.guards[e.column].alone = min(m.cols.guards[e.column].alone, float32(e.rate()/2))
}

// refresh sums a column again if it lost digits or changed often.
func (m *Matrix) refresh(c uint32) {
	x := &m.cols.first[c]
	m.cols.changes[c]++
	if m.cols.span[c].length == 0 {
		x.rate, m.cols.changes[c] = 0, 0
		return
	}
	g := m.cols.guards[c]
	smallest := 2 * float64(g.alone)
	n := m.cols.span[c].length
	// The error is relative to the largest F since the last sum.
	most := max(x.rate, float64(g.least)*0x1p12/math.Sqrt(float64(n)))
	if m.cols.changes[c] > oftenChanged || x.lostRate(g) {
		var rate sum
		smallest = math.MaxFloat32
		s := m.cols.span[c]
		for _, i := range m.cols.rows[s.start:s.end()] {
			a := m.rateOf(i, c)
			rate.add(a)
			smallest = min(smallest, a)
		}
		x.rate, m.cols.changes[c] = rate.value(), 0
		most = x.rate
	}
	m.cols.guards[c] = guard(most, n, smallest)
	m.cols.sure.add(m.cols.guards[c])
}
