package drf

import (
	"math"
	"slices"
)

// byKey orders candidates by T, and by column if these are equal, so that the result does not
// depend on any other order.
func byKey(a, b candidate) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return int(a.column) - int(b.column)
}

// pass freezes, in the order of T up to bound, the tenants of saturations and limits that share
// no active tenant with an earlier one of this pass. The others are postponed, with the tenants
// that they would freeze.
func (f *filler) pass(bound uint64) {
	slices.SortFunc(f.front, byKey)
	n := f.choose(bound)
	f.gather(f.front[:n])
	f.states.taken = f.states.frozen
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
	f.states.settle()
	f.stats.Passes++
}

// choose returns how many of the front this pass processes: one, and more while their columns are
// short and their T is not beyond bound.
func (f *filler) choose(bound uint64) int {
	walked := 0
	for k, c := range f.front {
		length := int(f.m.cols.span[c.column].length)
		if c.key > bound || k > 0 && walked+length > walkBudget {
			return k
		}
		if f.long(c.column) {
			// Only the first is summed again, since the next may still change.
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

// long reports whether a column must be summed again before its T counts.
func (f *filler) long(c uint32) bool {
	if f.m.cols.span[c].length <= fewColumns {
		return false
	}
	rate, ok := f.whole[c]
	return !ok || rate != f.cells[c].rate
}

// resumFirst sums the first candidate of the front again.
func (f *filler) resumFirst() {
	c := &f.front[0]
	f.resumRate(c.column)
	f.resumRoom(c.column)
	f.whole[c.column] = f.cells[c.column].rate
	c.key = f.look(c.column, f.calendar.low(), never)
}

// gather lists the active rows of each candidate.
func (f *filler) gather(of []candidate) {
	at := uint32(0)
	for k := range of {
		of[k].at = at
		at += f.m.cols.span[of[k].column].length
	}
	for len(of) > 0 {
		n, touched := f.touchColumns(of)
		f.touched += touched
		for k := range of[:n] {
			f.gatherOne(&of[k])
		}
		of = of[n:]
	}
}

func (f *filler) gatherOne(c *candidate) {
	s := f.m.cols.span[c.column]
	to := f.gathered[c.at : c.at+s.length]
	n := 0
	state := f.states.bits
	for _, i := range f.m.cols.rows[s.start:s.end()] {
		to[n] = i
		n += int((state[i/32]>>(i%32*2)&3 - 1) >> 63) // 1 if the row is active; the branch would be unpredictable
	}
	c.count = uint32(n)
}

// saturate freezes the active tenants of a candidate, unless one of them was
// frozen or blocked in this pass: then it blocks them all.
func (f *filler) saturate(c candidate) bool {
	rows := f.gathered[c.at : c.at+c.count]
	if !f.states.free(rows) {
		for _, i := range rows {
			if f.states.of(i) == isActive {
				f.states.block(i)
			}
		}
		return false
	}
	level := math.Float64frombits(c.key)
	for _, i := range rows {
		f.states.take(i, level, c.column)
	}
	f.stats.Events++
	return true
}

// limitsUpTo applies all limits up to key: postponed ones, then new ones. It returns the rest of
// the postponed ones.
func (f *filler) limitsUpTo(due []uint32, key uint64) []uint32 {
	if len(f.m.limited) == 0 {
		return due
	}
	for len(due) > 0 && math.Float64bits(f.m.limits[due[0]]) <= key {
		f.takeLimit(due[0])
		due = due[1:]
	}
	for f.limit < len(f.m.limited) && math.Float64bits(f.m.limits[f.m.limited[f.limit]]) <= key {
		f.takeLimit(f.m.limited[f.limit])
		f.limit++
	}
	return due
}

func (f *filler) takeLimit(i uint32) {
	switch f.states.of(i) {
	case isActive:
		f.states.take(i, f.m.limits[i], byLimit)
		f.stats.Events++
	case isBlocked:
		f.due = append(f.due, i)
	}
}
