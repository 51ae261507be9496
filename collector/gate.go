package collector

import (
	"context"
	"sync"
	"time"
)

// gate bounds the bytes in flight, and the bytes that wait to be. Requests enter in order of
// arrival.
type gate struct {
	limit int64
	wait  time.Duration

	mu      sync.Mutex
	used    int64
	waiting int64
	queue   []*turn
}

// turn is a waiting request; ready is closed when it is admitted.
type turn struct {
	bytes int64
	ready chan struct{}
}

// enter reserves n bytes, at most limit, and returns the number that leave must release; ok is
// false if the wait timed out.
func (g *gate) enter(ctx context.Context, n int64) (taken int64, ok bool) {
	n = min(n, g.limit)
	g.mu.Lock()
	if len(g.queue) == 0 && g.used+n <= g.limit {
		g.used += n
		g.mu.Unlock()
		return n, true
	}
	if g.waiting+n > g.limit {
		g.mu.Unlock()
		return 0, false
	}
	t := &turn{bytes: n, ready: make(chan struct{})}
	g.queue = append(g.queue, t)
	g.waiting += n
	g.mu.Unlock()

	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-t.ready:
		return n, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return g.give(t)
}

// give removes t from the queue, unless it was admitted in that very moment.
func (g *gate) give(t *turn) (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, q := range g.queue {
		if q == t {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			g.waiting -= t.bytes
			g.admit()
			return 0, false
		}
	}
	return t.bytes, true
}

// leave releases the bytes that enter reserved.
func (g *gate) leave(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
	g.admit()
}

// admit admits waiting requests in order while they fit. The caller holds mu.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.used+g.queue[0].bytes <= g.limit {
		t := g.queue[0]
		g.queue = g.queue[1:]
		g.waiting -= t.bytes
		g.used += t.bytes
		close(t.ready)
	}
}

// level returns the bytes in flight and waiting.
func (g *gate) level() (used, waiting int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used, g.waiting
}
