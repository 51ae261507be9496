package drf

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// Relayout returns the same matrix, sealed, in the memory of another arena: rows in the order in
// which the last solve froze them, resources numbered by when their last tenant froze. The next
// solve then reads memory almost in order, even if some tenants change: levels change between
// intervals, their order hardly does. size may differ, to change the slack. The numbers by which
// callers name tenants and resources do not change. Errors are trimtab.ErrInvalid if nothing was
// solved yet, and [ErrMemory].
func (m *Matrix) Relayout(size Size, arena Arena) (*Matrix, error) {
	if m.filler.stopped {
		m.filler.finish()
	}
	order := m.filler.states.order[:m.filler.states.frozen]
	if !m.sealed || len(order) != m.added {
		return nil, fmt.Errorf("relayout: nothing was solved yet: %w", trimtab.ErrInvalid)
	}
	if err := size.check(); err != nil {
		return nil, err
	}
	if size.Resources != m.size.Resources || size.Tenants < m.added || !arena.holds(size.Need()) {
		return nil, fmt.Errorf("relayout: %d tenants, %d resources, or an arena too small: %w", size.Tenants, size.Resources, ErrMemory)
	}
	n := &Matrix{size: size, capacities: m.capacities, room: take(&arena.Numbers, size.Resources)}
	copy(n.room, m.room)
	n.lay(arena)
	number := n.filler.drained[:size.Resources] // scratch: column → its new number
	m.renumber(order, number, n)
	for k, i := range order {
		row := m.entries[m.rows[i].start:m.rows[i].end()]
		if n.used+len(row) > size.Entries {
			return nil, fmt.Errorf("relayout: more than %d entries: %w", size.Entries, ErrMemory)
		}
		to := n.entries[n.used : n.used+len(row)]
		for j, e := range row {
			to[j] = Entry{number[e.column], e.low, e.high}
		}
		sortRow(to)
		n.rows[k] = Span{uint32(n.used), uint32(len(row))}
		n.used += len(row)
		n.limits[k] = m.limits[i]
		n.tenant[k] = m.tenant[i]
		n.row[m.tenant[i]] = uint32(k)
	}
	n.added, n.empty = m.added, m.empty
	n.Seal()
	return n, nil
}

// renumber numbers the columns by the last row that demands them.
func (m *Matrix) renumber(order, number []uint32, n *Matrix) {
	last := n.place // scratch: column → 1 + position of the last row
	clear(last)
	for k, i := range order {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			last[e.column] = uint32(k + 1)
		}
	}
	next := uint32(0)
	for k, i := range order {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			if last[e.column] == uint32(k+1) {
				number[e.column] = next
				next++
			}
		}
	}
	for c := range last {
		if last[c] == 0 {
			number[c] = next
			next++
		}
	}
	for c, r := range m.resource {
		n.place[r], n.resource[number[c]] = number[c], r
	}
}
