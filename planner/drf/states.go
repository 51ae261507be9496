package drf

// The states of a tenant, two bits each.
const (
	isActive  = 0
	isFrozen  = 1
	isBlocked = 2 // in this pass: the row demands a resource that was postponed
	isTaken   = 3 // in this pass: just frozen
)

// states has the state of each tenant, by row.
type states struct {
	level  []float64
	bits   []uint64
	order  []uint32 // rows in the order of freezing
	why    []uint32 // parallel to order: column, or byLimit
	put    []uint32 // blocked rows of this pass
	taken  int      // length of order before this pass
	frozen int
}

// reset makes all tenants active.
func (s *states) reset() {
	clear(s.bits)
	s.frozen, s.put = 0, s.put[:0]
}

// of returns the state of a row.
func (s *states) of(i uint32) uint64 { return s.bits[i/32] >> (i % 32 * 2) & 3 }

// freeze records that a row froze outside of a pass.
func (s *states) freeze(i uint32, level float64, why uint32) {
	s.level[i] = level
	s.bits[i/32] |= isFrozen << (i % 32 * 2)
	s.order[s.frozen], s.why[s.frozen] = i, why
	s.frozen++
}

// block prevents a row from being frozen in this pass.
func (s *states) block(i uint32) {
	s.bits[i/32] |= isBlocked << (i % 32 * 2)
	s.put = append(s.put, i)
}

// free reports whether all rows are active.
func (s *states) free(rows []uint32) bool {
	for _, i := range rows {
		if s.of(i) != isActive {
			return false
		}
	}
	return true
}

// take freezes a row in this pass.
func (s *states) take(i uint32, level float64, why uint32) {
	s.bits[i/32] |= isTaken << (i % 32 * 2)
	s.level[i] = level
	s.order[s.frozen], s.why[s.frozen] = i, why
	s.frozen++
}

// settle converts the states of this pass into those of the next.
func (s *states) settle() {
	for _, i := range s.order[s.taken:s.frozen] {
		s.bits[i/32] &^= isBlocked << (i % 32 * 2)
	}
	for _, i := range s.put {
		s.bits[i/32] &^= isBlocked << (i % 32 * 2)
	}
	s.put = s.put[:0]
}
