package natsbus

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/trimtab/trimtab/bus"
)

// watched is a subscription that can report its queue.
type watched interface {
	queue(context.Context) (bus.Queue, error)
}

// subscriptions are those that have not ended.
type subscriptions struct {
	mu     sync.Mutex
	closed bool
	stops  map[int]func()
	nextID int
	live   map[watched]struct{}
}

// keep registers stop for Close, and returns the function to hand out: its first call stops, the
// others wait for the first.
func (s *subscriptions) keep(stop func()) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.nextID++
	id := s.nextID
	once := sync.OnceFunc(func() {
		stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stops, id)
	})
	s.stops[id] = once
	return once, nil
}

// watch adds w to the subscriptions that Queues reports, until forget is called.
func (s *subscriptions) watch(w watched) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, w)
	}
}

// watched returns the subscriptions that Queues reports.
func (s *subscriptions) watched() (all []watched, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live)), s.closed
}

// close marks the subscriptions as closed, so that no other can begin, and returns the function
// that stops each. first is false if they were closed before.
func (s *subscriptions) close() (stops []func(), first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.closed = true
	return slices.Collect(maps.Values(s.stops)), true
}
