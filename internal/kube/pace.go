package kube

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// The rate limit of the client: at most 20 requests a second over any 20 s or more, and at most 39
// in any second. Waiting requests must not flood a server that recovers.
const (
	queriesPerSecond = 19
	queryBurst       = 20
)

// Pace is the rate limit of requests for writes, in requests a second: one is reserved for journals
// and the heartbeat.
const Pace = queriesPerSecond - 1

// pace limits the rate of requests, and allows a few more at once after a pause. Every request
// counts, also those that begin a watch and retries.
type pace struct {
	http.RoundTripper
	every time.Duration
	burst int

	mu sync.Mutex
	// free is when the whole burst is available again.
	free time.Time
}

// RoundTrip waits for its turn.
func (p *pace) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.wait(r.Context()); err != nil {
		return nil, err
	}
	return p.RoundTripper.RoundTrip(r)
}

func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	turn := p.free.Add(-time.Duration(p.burst-1) * p.every)
	p.free = p.free.Add(p.every)
	p.mu.Unlock()
	if !turn.After(now) {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err() // its turn is lost: waiting requests count, too
	case <-time.After(turn.Sub(now)):
		return nil
	}
}
