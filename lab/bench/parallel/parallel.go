// Package parallel runs the parts of short loops on several threads: a pool of
// workers that wait for the next loop by spinning, so that starting one costs
// a fraction of a microsecond, and that sleep when none comes.
//
// It is what the pure packages take as their Runner (planner/drf). It decides
// nothing about the result: each part writes to its own place. Who is late
// finds its parts done by the others: a loop waits for nobody who has not
// begun.
//
//	p := parallel.New(2)
//	defer p.Close()
//	p.Run(2, func(part int) { … })
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// spins is how often a worker polls for work before it sleeps: some tens of microseconds.
const spins = 20000

// Pool is a fixed number of threads, the caller's among them. Run may be
// called by one goroutine at a time.
type Pool struct {
	loop    atomic.Pointer[loop] // the newest
	closed  atomic.Bool
	workers []worker
	ended   sync.WaitGroup
}

// loop is one call of Run. A late worker may have an old one, in which nothing is left to claim.
type loop struct {
	f             func(part int)
	n             int64
	claimed, done atomic.Int64
}

type worker struct {
	pool   *Pool
	asleep atomic.Bool
	wake   chan struct{}
}

// New starts threads-1 workers; threads < 1 counts as 1.
func New(threads int) *Pool {
	p := &Pool{workers: make([]worker, max(threads, 1)-1)}
	for k := range p.workers {
		w := &p.workers[k]
		w.pool, w.wake = p, make(chan struct{}, 1)
		p.ended.Go(w.work)
	}
	return p
}

// Threads returns how many parts run at a time.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Run calls f with 0 … n-1, each once, and returns when all have returned.
func (p *Pool) Run(n int, f func(part int)) {
	if len(p.workers) == 0 || n < 2 {
		for part := range n {
			f(part)
		}
		return
	}
	l := &loop{f: f, n: int64(n)}
	p.loop.Store(l)
	for k := range p.workers {
		p.workers[k].rouse()
	}
	l.work()
	for i := 1; l.done.Load() < l.n; i++ {
		if i%1000 == 0 {
			runtime.Gosched()
		}
	}
}

// Close ends the workers.
func (p *Pool) Close() {
	p.closed.Store(true)
	for k := range p.workers {
		p.workers[k].rouse()
	}
	p.ended.Wait()
}

// work claims parts and runs them while there are any.
func (l *loop) work() {
	for part := l.claimed.Add(1) - 1; part < l.n; part = l.claimed.Add(1) - 1 {
		l.f(int(part))
		l.done.Add(1)
	}
}

func (w *worker) rouse() {
	if w.asleep.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *worker) work() {
	var last *loop
	for w.await(last) {
		last = w.pool.loop.Load()
		last.work()
	}
}

// await returns when there is another loop than the last, or false when the pool is closed. A
// token in wake may be left from before; then it checks again.
func (w *worker) await(last *loop) bool {
	p := w.pool
	for i := 1; p.loop.Load() == last; i++ {
		if p.closed.Load() {
			return false
		}
		if i%1000 == 0 {
			runtime.Gosched()
		}
		if i < spins {
			continue
		}
		w.asleep.Store(true)
		if p.loop.Load() == last && !p.closed.Load() {
			<-w.wake
		}
		w.asleep.Store(false)
		i = 0
	}
	return true
}
