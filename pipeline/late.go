package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
)

// lateness measures how late the operating system schedules this process: the largest delay of the
// last one to two lateWindows. It measures the delays of ticks, by at most one interval too long,
// and others reported by note. The zero lateness is ready.
type lateness struct {
	mu         sync.Mutex
	young, old time.Duration
	staleAt    time.Time // when young became old last
}

// lateWindow is how long a delay is remembered at least.
const lateWindow = time.Minute

// measure measures until ctx ends. A process that did not run between two ticks was stopped for
// at most the time between them, and at least for that less every.
func (l *lateness) measure(ctx context.Context, every time.Duration) {
	ticks := pause.Ticks(ctx, every)
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		now := time.Now()
		l.note(now, now.Sub(last))
		last = now
	}
}

// note records one delay.
func (l *lateness) note(now time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.staleAt) >= lateWindow {
		l.old, l.young, l.staleAt = l.young, 0, now
	}
	l.young = max(l.young, d)
}

// worst returns the largest delay that is remembered.
func (l *lateness) worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.young, l.old)
}
