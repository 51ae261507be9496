// Package parallel runs the parts of short loops on several threads: a pool of
// workers that wait for the next loop by spinning, so that starting one costs
// a fraction of a microsecond, and that sleep when none comes.
//
// It is what the pure packages take as their Runner (planner/drf). It decides
// nothing about the result: each part writes to its own place.
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

// spins is how often a worker looks for work before it sleeps: some tens of
// microseconds.
const spins = 20000

// Pool is a fixed number of threads, the caller's among them. Run may be
// called by one goroutine at a time.
type Pool struct {
	workers []worker
	ended   sync.WaitGroup
}

// worker has a cache line of its own.
type worker struct {
	_      [64]byte
	asked  atomic.Uint64 // loops given to it
	done   atomic.Uint64 // loops that it has finished
	asleep atomic.Bool
	wake   chan struct{}
	f      func(part int)
	part   int
	stride int
	n      int
	stop   bool
	_      [64]byte
}

// New starts threads-1 workers; threads < 1 counts as 1.
func New(threads int) *Pool {
	p := &Pool{workers: make([]worker, max(threads, 1)-1)}
	for k := range p.workers {
		w := &p.workers[k]
		w.wake = make(chan struct{}, 1)
		p.ended.Go(w.work)
	}
	return p
}

// Threads is how many parts run at a time.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Run calls f with 0 … n-1, each once, and returns when all have returned.
func (p *Pool) Run(n int, f func(part int)) {
	threads := len(p.workers) + 1
	for k := range p.workers {
		if k+1 < n {
			w := &p.workers[k]
			w.f, w.part, w.stride, w.n = f, k+1, threads, n
			w.ask()
		}
	}
	for part := 0; part < n; part += threads {
		f(part)
	}
	for k := range p.workers {
		w := &p.workers[k]
		for i := 1; w.done.Load() != w.asked.Load(); i++ {
			if i%1000 == 0 {
				runtime.Gosched()
			}
		}
	}
}

// Close ends the workers.
func (p *Pool) Close() {
	for k := range p.workers {
		p.workers[k].stop = true
		p.workers[k].ask()
	}
	p.ended.Wait()
}

func (w *worker) ask() {
	w.asked.Add(1)
	if w.asleep.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *worker) work() {
	for loop := uint64(1); ; loop++ {
		w.await(loop)
		if w.stop {
			return
		}
		for part := w.part; part < w.n; part += w.stride {
			w.f(part)
		}
		w.done.Store(loop)
	}
}

// await returns when the loop of this number has been given. A token in wake
// may be left from before; then it looks again.
func (w *worker) await(loop uint64) {
	for i := 1; w.asked.Load() < loop; i++ {
		if i%1000 == 0 {
			runtime.Gosched()
		}
		if i < spins {
			continue
		}
		w.asleep.Store(true)
		if w.asked.Load() < loop {
			<-w.wake
		}
		w.asleep.Store(false)
		i = 0
	}
}
