package collector

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate bounds the bytes in flight, and the bytes that wait to be. Requests enter in order of
// arrival.
type gate struct {
	limit         int64
	wait          time.Duration
	budget        *semaphore.Weighted
	used, waiting atomic.Int64
}

func newGate(limit int64, wait time.Duration) *gate {
	return &gate{limit: limit, wait: wait, budget: semaphore.NewWeighted(limit)}
}

// enter reserves n bytes, at most limit, and returns the number that leave must release; ok is
// false if too many bytes wait already, or the wait timed out.
func (g *gate) enter(ctx context.Context, n int64) (taken int64, ok bool) {
	n = min(n, g.limit)
	if !g.budget.TryAcquire(n) && !g.await(ctx, n) {
		return 0, false
	}
	g.used.Add(n)
	return n, true
}

func (g *gate) await(ctx context.Context, n int64) bool {
	for {
		waiting := g.waiting.Load()
		if waiting+n > g.limit {
			return false
		}
		if g.waiting.CompareAndSwap(waiting, waiting+n) {
			break
		}
	}
	defer g.waiting.Add(-n)
	ctx, cancel := context.WithTimeout(ctx, g.wait)
	defer cancel()
	return g.budget.Acquire(ctx, n) == nil
}

// leave releases the bytes that enter reserved.
func (g *gate) leave(n int64) {
	g.used.Add(-n)
	g.budget.Release(n)
}
