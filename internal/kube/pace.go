package kube

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// The most that the client asks: in any 20 s or more at most 20 requests a second, and in no
// second more than 39. A server that recovers must not be flooded with what waited for it.
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
		return ctx.Err() // its turn is lost: who waited asked too much
	case <-time.After(turn.Sub(now)):
		return nil
	}
}
