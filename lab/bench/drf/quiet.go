package drf

import (
	"time"

	solver "github.com/trimtab/trimtab/planner/drf"
)

// quiet is how long something takes while no other program uses the
// processors: the sum over its steps of the least time of each step,
//
//	quiet = sum_k min_repeat t_(k, repeat).
//
// The steps must be the same work in every repeat, as the batches of events of
// a solve are. Another program lengthens some steps of each repeat, but hardly
// ever one step of all of them.
type quiet struct {
	least []float64
	next  int // step
	at    time.Time
}

// begin starts a repeat.
func (q *quiet) begin() { q.next, q.at = 0, time.Now() }

// step ends a step and begins the next.
func (q *quiet) step() {
	now := time.Now()
	took := now.Sub(q.at).Seconds()
	if q.at = now; q.next == len(q.least) {
		q.least = append(q.least, took)
	} else {
		q.least[q.next] = min(q.least[q.next], took)
	}
	q.next++
}

func (q *quiet) seconds() float64 {
	sum := 0.0
	for _, s := range q.least {
		sum += s
	}
	return sum
}

// solve is a repeat whose steps are the batches of events of a solve.
func (q *quiet) solve(m *solver.Matrix) (solver.Result, error) {
	q.begin()
	defer q.step()
	return m.Solve(solver.Options{Stop: func() bool { q.step(); return false }})
}
