package drf

import (
	"fmt"

	"github.com/trimtab/trimtab"
)

// Options say how to solve a [Matrix]; the zero value is without a deadline.
type Options struct {
	// Stop, if not nil, is called before every batch of events. Once it returns true, all active
	// tenants freeze at the level that all of them have reached: the answer is feasible, fair up to
	// that level, and the unused part of each resource is known exactly ([Result.Room]).
	Stop func() bool
}

// Result is the answer of one solve. It is in the matrix's arena and valid until the next solve
// of the matrix.
type Result struct {
	// Stopped says that Stop was true before all tenants were frozen.
	Stopped bool
	// Reached is the level up to which the answer is exact; if Stopped, the tenants that were
	// active have it.
	Reached float64
	// Active is the number of tenants that Stop froze.
	Active int
	// Stats counts the work.
	Stats Stats

	m *Matrix
}

// Solve fills the matrix. Errors are trimtab.ErrInvalid when it was not
// sealed.
func (m *Matrix) Solve(o Options) (Result, error) {
	if !m.sealed {
		return Result{}, fmt.Errorf("solve matrix: not sealed: %w", trimtab.ErrInvalid)
	}
	f := &m.filler
	f.fill(o.Stop)
	r := Result{Stopped: f.stopped, Reached: f.reached, Stats: f.stats, m: m}
	if f.stopped {
		r.Active = m.added - f.states.frozen
	}
	return r, nil
}

// Level returns x_i of tenant i, >= 0.
func (r Result) Level(i int) float64 { return r.m.filler.levelOf(uint32(i)) }

// Bounds returns for every tenant the resource that froze it, or [ByLimit],
// [ByNothing], [ByStop].
func (r Result) Bounds() []int {
	m := r.m
	out := make([]int, m.added)
	m.filler.finish()
	for k, i := range m.filler.states.order[:m.filler.states.frozen] {
		by := ByNothing
		switch why := m.filler.states.why[k]; {
		case why == byStop:
			by = ByStop
		case why != byLimit:
			by = int(why)
		case m.rows[i].length > 0:
			by = ByLimit
		}
		out[i] = by
	}
	return out
}

// Room returns the unused part of every resource, as a fraction of its capacity: summed again from
// the levels, with compensated rounding; below 0 if the resource is over its capacity.
func (r Result) Room() []float64 {
	m := r.m
	used := make([]sum, m.size.Resources)
	for i := range m.added {
		level := m.filler.levelOf(uint32(i))
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			used[e.column].add(e.rate() * level)
		}
	}
	out := make([]float64, len(used))
	for c := range used {
		used[c].add(-m.room[c])
		out[c] = -used[c].value()
	}
	return out
}

// Sweep adds the rates of all rows, in the order in which they are stored, to cells, one for each
// resource, as large as the solver's own: one stream over the entries with a random
// read-modify-write of the resource array for each, which is the least that a solver of this
// layout does. `trimtab-lab bench drf` measures it as the lower bound.
func (m *Matrix) Sweep(cells []Cell) {
	for i := range m.added {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			cells[e.column].rate += e.rate()
		}
	}
}

// SweepNarrow does the same in an array of half the size, one number for each resource, which
// cannot hold the solver's state.
func (m *Matrix) SweepNarrow(sums []float64) {
	for i := range m.added {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			sums[e.column] += e.rate()
		}
	}
}

// Demanded reports whether any tenant demands a resource.
func (r Result) Demanded(resource int) bool {
	return r.m.cols.span[resource].length > 0
}
