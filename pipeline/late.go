package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
)

// lateness is how late a process is run, when CPU is short or it is stopped
// for a while: the largest delay of the last one to two lateWindows. Delays are
// those of ticks, told too long by one interval of it at most, and what else is
// noted. The zero lateness is ready.
type lateness struct {
	mu         sync.Mutex
	young, old time.Duration
	turned     time.Time // when young became old last
}

// lateWindow is how long a delay is remembered at least.
const lateWindow = time.Minute

// measure measures until ctx ends. A process that was stopped between two ticks was so for
// as long as they are apart, at most, and for that less every, at least.
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
