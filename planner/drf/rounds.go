package drf

import "math"

// RoundsResult is the result of the round-based baselines.
type RoundsResult struct {
	// Level has x_i of each tenant.
	Level []float64
	// Rounds is the number of passes over the active rows.
	Rounds int
	// Stopped says that stop returned true first; the active tenants then keep their level.
	Stopped bool
}

// Rounds is the textbook extended DRF, for comparison: in each round the rates
// of the active rows are summed up for every resource; the smallest of
// residual / sum is granted to all active tenants; full resources and the
// tenants that demand them are eliminated. With epsilon > 0 it is the inner
// loop of DC-DRF: a resource is eliminated when it is 1 - epsilon full, which
// loses utilization and saves rounds. stop, when not nil, is asked once a
// round.
func (m *Matrix) Rounds(epsilon float64, stop func() bool) RoundsResult {
	r := RoundsResult{Level: make([]float64, m.added)}
	active := make([]uint32, 0, m.added)
	for i := range uint32(m.added) {
		if m.rows[i].length > 0 {
			active = append(active, i)
		}
	}
	sums, left := make([]float64, m.size.Resources), make([]float64, m.size.Resources)
	for c := range left {
		left[c] = m.room[c]
	}
	level := 0.0
	for ; len(active) > 0; r.Rounds++ {
		if stop != nil && stop() {
			r.Stopped = true
			break
		}
		level += m.grant(active, level, sums, left)
		active = m.eliminate(active, level, epsilon, sums, left, r.Level)
	}
	for _, i := range active {
		r.Level[i] = level
	}
	return r
}

// grant sums the rates of the active rows, takes the largest step that fits everywhere, and
// subtracts it from left. Resources that it fills have left = 0.
func (m *Matrix) grant(active []uint32, level float64, sums, left []float64) float64 {
	clear(sums)
	step := math.Inf(1)
	for _, i := range active {
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			sums[e.column] += e.rate()
		}
		step = min(step, max(0, m.limits[i]-level))
	}
	for c, f := range sums {
		if f > 0 {
			step = min(step, left[c]/f)
		}
	}
	for c, f := range sums {
		if f > 0 && left[c]/f <= step*(1+1e-14) {
			left[c] = 0
		} else {
			left[c] -= f * step
		}
	}
	return step
}

// eliminate records the level of the tenants that are finished and returns the others.
func (m *Matrix) eliminate(active []uint32, level, epsilon float64, sums, left, levels []float64) []uint32 {
	kept := active[:0]
	for _, i := range active {
		done := m.limits[i] <= level
		for _, e := range m.entries[m.rows[i].start:m.rows[i].end()] {
			done = done || sums[e.column] > 0 && left[e.column] <= epsilon*m.room[e.column]
		}
		if done {
			levels[i] = level
		} else {
			kept = append(kept, i)
		}
	}
	return kept
}
