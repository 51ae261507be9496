package kube

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// What the client asks at most: in any 20 s or more no more than 20 requests a second,
// and in no second more than 39. A server that comes back must not be buried under what
// waited for it.
const (
	queriesPerSecond = 19
	queryBurst       = 20
)

// Pace is how many of the requests a second are for writes: one is left for journals, and
// for what asks whether the server lives.
const Pace = queriesPerSecond - 1

// pace lets requests through, so many a second, and a few more at once after a pause.
// Every request counts: those that begin a watch, and those that are tried again, too.
type pace struct {
	http.RoundTripper
	every time.Duration
	burst int

	mu sync.Mutex
	// free is when all of the burst is to be had again.
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
