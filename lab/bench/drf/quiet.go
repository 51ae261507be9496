package drf

import (
	"slices"
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
func (q *quiet) solve(m *solver.Matrix, run solver.Runner) (solver.Result, error) {
	q.begin()
	defer q.step()
	return m.Solve(solver.Options{Run: run, Stop: func() bool { q.step(); return false }})
}

// turns is a Runner that runs the parts of each loop one after another on the
// calling thread, and notes how long each took. It tells what threads can
// gain at most.
type turns struct {
	threads     int
	rest, parts quiet
}

func (t *turns) Threads() int { return t.threads }

// Run is only called with as many parts as there are threads.
func (t *turns) Run(n int, f func(part int)) {
	t.rest.step()
	t.parts.at = time.Now()
	for part := range n {
		f(part)
		t.parts.step()
	}
	t.rest.at = time.Now()
}

// solve is a repeat.
func (t *turns) solve(m *solver.Matrix) error {
	t.rest.begin()
	t.parts.begin()
	defer t.rest.step()
	_, err := m.Solve(solver.Options{Run: t})
	return err
}

// atBest is how long the threads would take if no loop cost anything to start
// and no thread slowed another down: what is outside of loops, and the longest
// part of each loop.
func (t *turns) atBest() float64 {
	sum := t.rest.seconds()
	for parts := range slices.Chunk(t.parts.least, t.threads) {
		sum += slices.Max(parts)
	}
	return sum
}
