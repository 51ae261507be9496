package actuator

import (
	"context"
	"errors"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// OpenAt opens an actuator with clocks that a test can make jump.
func OpenAt(ctx context.Context, c Config, wall func() time.Time, boot func() time.Duration, id string) (*Actuator, error) {
	return open(ctx, c, clock{wall: wall, boot: boot, id: id})
}

// Abandon lets go of the directory without restoring, as SIGKILL would.
func (a *Actuator) Abandon() error {
	a.mu.Lock()
	a.fence.closed = true
	err := errors.Join(a.host.close(false), a.knobs.letGo(), a.journal.Close(), a.presence.Close(), a.lock.Close())
	a.mu.Unlock()
	a.watchdog.Release(false)
	return err
}

// DecodeRecord reads one record of the journal as Open and Restore do, and
// returns the amounts that a restore would write or compare with.
func DecodeRecord(k string, value []byte) []trimtab.Amount {
	s := readState(map[string][]byte{k: value}, []string{k})
	var all []trimtab.Amount
	for _, e := range s.entries {
		all = append(append(all, e.Baseline), e.Wrote...)
	}
	return all
}

// Watch returns what one look of a watchdog at a journal does, and what it restores when
// the actuator is dead.
func Watch(dir, boot string, reopen func([]byte) (Knob, error)) (look func(context.Context), restore func(context.Context) (Report, error)) {
	w := &watcher{dir: dir, boot: boot, reopen: reopen, follower: hostfs.JournalFollower{Dir: dir}}
	return func(ctx context.Context) { w.relieve(ctx) }, func(ctx context.Context) (Report, error) { return w.restore(ctx, false) }
}
