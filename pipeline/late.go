package pipeline

import (
	"context"
	"sync"
	"time"
)

// lateness is how late a process is run, when CPU is short or it is stopped
// for a while: the largest delay of the last one to two lateWindows. Delays are
// those of a ticker, and what else is noted. The zero lateness is ready.
type lateness struct {
	mu         sync.Mutex
	young, old time.Duration
	turned     time.Time // when young became old last
}

const (
	// lateEvery is how often the delay is measured.
	lateEvery = 100 * time.Millisecond
	// lateWindow is how long a delay is remembered at least.
	lateWindow = time.Minute
)

// measure measures until ctx ends.
func (l *lateness) measure(ctx context.Context) {
	t := time.NewTicker(lateEvery)
	defer t.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := time.Now()
		l.note(now, now.Sub(last)-lateEvery)
		last = now
	}
}

// note takes in one delay.
func (l *lateness) note(now time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.turned) >= lateWindow {
		l.old, l.young, l.turned = l.young, 0, now
	}
	l.young = max(l.young, d)
}

// worst returns the largest delay that is remembered.
func (l *lateness) worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.young, l.old)
}
