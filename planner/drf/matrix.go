package drf

import (
	"fmt"
	"math"
	"slices"
)

// Matrix is a sparse demand matrix: rows of rates, one per tenant, and for each resource the rows
// that demand it. Rows are added, then the matrix is sealed; after that it can be solved any number
// of times.
type Matrix struct {
	size       Size
	capacities []float64
	room       []float64 // as a fraction of the capacity, by resource

	entries []Entry
	used    int // number of entries in use
	rows    []Span
	limits  []float64 // highest level by the tenant's own limit; +Inf: none

	cols columns

	limited []uint32 // rows with a finite limit, ascending
	added   int
	empty   int // rows without entries
	sealed  bool
	scratch []Entry
	filler  filler
}

// columns has, for each resource, the rows that demand it.
type columns struct {
	rows   []uint32 // row numbers, by column
	span   []Span   // the rows of each column
	first  []Cell   // the cells before any tenant freezes
	guards []Guard
	sure   sure
}

// NewMatrix returns an empty matrix in the arena's memory. capacities and room
// are as in [Problem]; the matrix keeps capacities. Errors are [ErrCapacity]
// and [ErrMemory].
func NewMatrix(capacities, room []float64, size Size, arena Arena) (*Matrix, error) {
	p := Problem{Capacities: capacities, Room: room}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := size.check(); err != nil {
		return nil, err
	}
	if len(capacities) != size.Resources || !arena.holds(size.Need()) {
		return nil, fmt.Errorf("%d capacities for %d resources, or an arena too small: %w", len(capacities), size.Resources, ErrMemory)
	}
	m := &Matrix{size: size, capacities: capacities, room: take(&arena.Numbers, size.Resources)}
	for r, c := range capacities {
		if m.room[r] = 1; room != nil && c > 0 {
			m.room[r] = room[r] / c
		}
	}
	m.lay(arena)
	return m, nil
}

// lay divides the arena among the slices.
func (m *Matrix) lay(a Arena) {
	s := m.size
	m.filler.calendar.lay(s.Resources, &a) // first: its chunks are lines of the cache
	m.entries = take(&a.Entries, s.Entries)
	m.rows, m.cols.span = take(&a.Spans, s.Tenants), take(&a.Spans, s.Resources)
	m.limits = take(&a.Numbers, s.Tenants)
	m.cols.rows = take(&a.Indices, s.Entries)
	m.limited = take(&a.Indices, s.Tenants)[:0]
	m.cols.first = take(&a.Cells, s.Resources)
	m.cols.guards = take(&a.Guards, s.Resources)
	m.filler.lay(m, a)
}

// Tenants returns how many tenants the matrix holds.
func (m *Matrix) Tenants() int { return m.added }

// Entries returns the number of positive demands.
func (m *Matrix) Entries() int { return m.used }

// Add appends the next tenant. Errors name its row and are [ErrDemand],
// [ErrResource], [ErrWeight], [ErrLimit] or [ErrMemory].
func (m *Matrix) Add(t Tenant) error {
	i := m.added
	if i >= m.size.Tenants {
		return fmt.Errorf("row %d: %w", i, ErrMemory)
	}
	row, limit, err := m.normalise(&t)
	if err == nil && m.used+len(row) > m.size.Entries {
		err = fmt.Errorf("%d entries more than %d of %d: %w", len(row), m.used, m.size.Entries, ErrMemory)
	}
	if err != nil {
		return fmt.Errorf("row %d: %w", i, err)
	}
	m.rows[i] = Span{uint32(m.used), uint32(len(row))}
	m.used += copy(m.entries[m.used:], row)
	m.limits[i] = limit
	m.added++
	if len(row) == 0 {
		m.empty++
	}
	return nil
}

// Rates beyond these leave the range in which products and quotients of them
// keep all their digits.
const (
	leastRate = 0x1p-100
	mostRate  = 0x1p100
)

// normalise returns the rates a_ir of a tenant, ascending by column, and the
// level of its limit. A tenant of a resource without capacity has no rates.
func (m *Matrix) normalise(t *Tenant) (row []Entry, limit float64, err error) {
	if err := t.check(len(m.capacities)); err != nil {
		return nil, 0, err
	}
	key, blocked, err := t.key(m.capacities)
	if err != nil {
		return nil, 0, err
	}
	row = m.scratch[:0]
	for _, d := range t.Demands {
		if d.Amount == 0 || blocked >= 0 {
			continue
		}
		a := d.Amount / m.capacities[d.Resource] / key
		if !(a >= leastRate && a <= mostRate) {
			return nil, 0, fmt.Errorf("rate %v of resource %d against the dominant one's weight: %w", a, d.Resource, ErrWeight)
		}
		row = append(row, entry(uint32(d.Resource), a))
	}
	m.scratch = row
	sortRow(row)
	for k := 1; k < len(row); k++ {
		if row[k].column == row[k-1].column {
			return nil, 0, fmt.Errorf("resource %d stands there twice: %w", row[k].column, ErrResource)
		}
	}
	limit = math.Inf(1)
	if t.Limit != nil {
		limit = *t.Limit * key
	}
	return row, limit, nil
}

// key returns max_r d_ir / (c_r w_ir), and the demanded resource without capacity, or -1.
func (t *Tenant) key(capacities []float64) (key float64, blocked int, err error) {
	blocked = -1
	for _, d := range t.Demands {
		if d.Amount == 0 {
			continue
		}
		c := capacities[d.Resource]
		if c == 0 {
			blocked = d.Resource
			continue
		}
		w := d.Weight
		if w == 0 {
			w = t.Weight
		}
		f := d.Amount / c
		if k := f / w; k >= leastRate && k <= mostRate && f <= mostRate {
			key = max(key, k)
		} else {
			return 0, blocked, fmt.Errorf("demand %v of capacity %v at weight %v: %w", d.Amount, c, w, ErrWeight)
		}
	}
	return key, blocked, nil
}

// sortRow orders by column; most rows are short.
func sortRow(row []Entry) {
	if len(row) > 32 {
		slices.SortFunc(row, func(a, b Entry) int { return int(a.column) - int(b.column) })
		return
	}
	for i := 1; i < len(row); i++ {
		e := row[i]
		k := i
		for ; k > 0 && row[k-1].column > e.column; k-- {
			row[k] = row[k-1]
		}
		row[k] = e
	}
}

// Seal builds the columns and the first sums. It must be called once, after
// the last Add and before Solve.
func (m *Matrix) Seal() {
	m.index()
	for c := range m.cols.first {
		m.cols.first[c] = Cell{room: m.room[c]}
		m.cols.guards[c].alone = math.MaxFloat32
	}
	for i := range m.added {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			a := e.rate()
			m.cols.first[e.column].rate += a
			g := &m.cols.guards[e.column]
			g.alone = min(g.alone, float32(a)) // alone has the least rate here, until it is computed below
		}
	}
	m.cols.sure = sure{alone: math.MaxFloat64}
	for c := range m.cols.first {
		m.cols.guards[c] = guard(m.cols.first[c].rate, m.cols.span[c].length, float64(m.cols.guards[c].alone))
		m.cols.sure.add(m.cols.guards[c])
	}
	m.orderLimits()
	m.sealed = true
}

// index lists the rows of each column.
func (m *Matrix) index() {
	clear(m.cols.span)
	for i := range m.added {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			m.cols.span[e.column].length++
		}
	}
	at := uint32(0)
	for c := range m.cols.span {
		m.cols.span[c].start = at
		at += m.cols.span[c].length
		m.cols.span[c].length = 0
	}
	for i := range m.added {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			s := &m.cols.span[e.column]
			m.cols.rows[s.end()] = uint32(i)
			s.length++
		}
	}
}

// orderLimits lists the rows with a finite limit, lowest first.
func (m *Matrix) orderLimits() {
	for i := range m.added {
		if !math.IsInf(m.limits[i], 1) && m.rows[i].length > 0 {
			m.limited = append(m.limited, uint32(i))
		}
	}
	slices.SortFunc(m.limited, func(i, j uint32) int {
		switch a, b := m.limits[i], m.limits[j]; {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return int(i) - int(j)
	})
}
