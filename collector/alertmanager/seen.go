package alertmanager

import (
	"context"
	"sync"
	"time"
)

// maxSeen bounds how many alerts are remembered; when more fire at a time, the
// oldest may be published again, which is harmless.
const maxSeen = 16384

// identity identifies an alert for one workload.
type identity struct {
	fingerprint, workload string
	started               time.Time
}

// seen remembers the last status of each alert that was published.
type seen struct {
	mu    sync.Mutex
	last  map[identity]*status
	order []identity // in order of arrival
}

// status is the last one that was published of an alert, and when.
type status struct {
	known, firing bool
	at            time.Time
	// busy is closed when the present attempt has ended; nil: there is none.
	busy chan struct{}
}

// once calls publish unless this status was the last one published, and reports if it was. A
// firing alert is published again once in leastRepeat, since one without repetition would at last
// be taken for ended. Attempts for one alert do not overlap.
func (s *seen) once(ctx context.Context, id identity, now time.Time, firing bool, publish func() error) (repeated bool, err error) {
	st, repeated, err := s.claim(ctx, id, now, firing)
	if st == nil || err != nil {
		return repeated, err
	}
	err = publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	close(st.busy)
	st.busy = nil
	if err == nil {
		st.known, st.firing, st.at = true, firing, now
	}
	return repeated, err
}

// claim returns the alert's status, locked for the caller; nil: there is nothing to publish.
func (s *seen) claim(ctx context.Context, id identity, now time.Time, firing bool) (st *status, repeated bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if st = s.last[id]; st == nil {
			st = s.add(id)
		}
		switch {
		case st.busy != nil:
			busy := st.busy
			s.mu.Unlock()
			select {
			case <-busy:
			case <-ctx.Done():
			}
			s.mu.Lock()
			if ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
		case st.known && st.firing == firing && (!firing || now.Sub(st.at) < leastRepeat):
			return nil, true, nil
		default:
			st.busy = make(chan struct{})
			return st, st.known && st.firing == firing, nil
		}
	}
}

// add remembers one more alert, and forgets the oldest if there are too many.
func (s *seen) add(id identity) *status {
	if s.last == nil {
		s.last = map[identity]*status{}
	}
	for len(s.order) >= maxSeen {
		oldest := s.order[0]
		s.order = s.order[1:]
		delete(s.last, oldest)
	}
	st := &status{}
	s.last[id] = st
	s.order = append(s.order, id)
	return st
}
