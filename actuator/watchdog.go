package actuator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/watchdog"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Watchdog runs in a child process of the actuator and restores the baselines after the actuator
// was killed. parent is the read end of a pipe whose write end only the actuator has, so it reaches
// its end when the actuator dies. Watchdog then waits until the lease in the journal expires.
// Unless another actuator has taken over the directory, it restores the baselines and returns a
// report.
//
// There are two of them, and each starts the other again, as the actuator does
// (see package watchdog): killing the actuator and a watchdog, in whatever order, leaves
// one that restores.
//
// It also restores when the actuator is alive but its lease has expired, because it was stopped or
// waits for a disk that does not answer.
func Watchdog(ctx context.Context, dir string, parent io.Reader, reopen func(undo []byte) (Knob, error)) (Report, error) {
	r, err := watchAndRestore(ctx, dir, parent, reopen)
	if err != nil {
		return r, fmt.Errorf("watchdog: %w", err)
	}
	return r, nil
}

func watchAndRestore(ctx context.Context, dir string, parent io.Reader, reopen func(undo []byte) (Knob, error)) (Report, error) {
	id, err := hostfs.BootID()
	if err != nil {
		return Report{}, err
	}
	w := &watcher{dir: dir, boot: id, reopen: reopen, follower: hostfs.JournalFollower{Dir: dir}}
	ended := make(chan struct{})
	var at time.Duration // when parent ended, set before ended is closed
	// The pipe of a dying process may be closed before its locks are released.
	there := func() bool { return hostfs.Locked(ctx, presencePath(dir)) }
	successor := func() bool { return hostfs.BootTime()-at > dying && there() }
	if p := watchdog.Inherited(parent); p != nil {
		go p.GuardPartner(ended, func() bool {
			changed, left, _, err := w.leaseLeft()
			return err == nil && changed && left > 0 && !successor()
		}, there)
	}
	due := hostfs.BootTime()
	err = watchdog.Watch(ctx, parent, func() {
		if hostfs.BootTime() >= due {
			due = w.relieve(ctx)
		}
	})
	at = hostfs.BootTime()
	close(ended)
	if err != nil {
		return Report{}, err
	}
	returned := false // whether borrowed amounts were given back
	for {
		changed, left, borrowed, err := w.leaseLeft()
		switch {
		case err != nil:
			return Report{}, err
		case !changed:
			return Report{}, nil // the actuator stopped, or another process restored
		case successor():
			return Report{}, nil // another actuator runs here, with its own watchdogs
		case left == 0:
			lock, err := hostfs.AcquireLock(ctx, dir, 0)
			if err == nil {
				defer lock.Close()
				return w.restore(ctx, false)
			}
			if !errors.Is(err, trimtab.ErrRefused) {
				return Report{}, err
			}
			left = 20 * time.Millisecond // the other watchdog restores, or an actuator starts
		case borrowed == 0 && !returned:
			if lock, err := hostfs.AcquireLock(ctx, dir, 0); err == nil { // else the other watchdog does it
				_, err = w.restore(ctx, true)
				returned = err == nil // on an error it tries again
				_ = lock.Close()
			}
		}
		// In short steps, since a new actuator may renew the lease.
		select {
		case <-ctx.Done():
			return Report{}, ctx.Err()
		case <-time.After(min(left, 200*time.Millisecond)):
		}
	}
}

// watcher is the state of a watchdog.
type watcher struct {
	dir, boot string
	reopen    func(undo []byte) (Knob, error)
	follower  hostfs.JournalFollower
	// last is the content of the journal at the last read; nil: none. It is used if the files were
	// removed or damaged since.
	last map[string][]byte
}

// read reads the journal, or returns the last content if the journal was lost.
func (w *watcher) read() (stored, error) {
	s, err := readRestorable(w.dir)
	if err == nil || w.last == nil {
		return s, err
	}
	return readState(w.last, slices.Sorted(maps.Keys(w.last))), nil
}

// leaseLeft reports whether any knob is changed, and returns the time until all of them, and those
// above their baselines, must be restored.
func (w *watcher) leaseLeft() (changed bool, left, borrowed time.Duration, err error) {
	s, err := w.read()
	if err != nil {
		return false, 0, 0, err
	}
	now := hostfs.BootTime()
	return len(s.entries) > 0, s.lease.left(w.boot, now), s.lease.borrowed().left(w.boot, now), nil
}

// restore restores while the caller has the lock; with borrowed, only knobs above their baselines.
func (w *watcher) restore(ctx context.Context, borrowed bool) (Report, error) {
	s, err := w.read()
	if err != nil {
		return Report{}, err
	}
	return restoreStored(ctx, w.dir, s, w.reopen, borrowed)
}

// dying is how long a dying process may take to release its files and locks: it needs CPU time for
// that, which a busy host or a quota gives it late.
const dying = 5 * time.Second

// presencePath is the lock file that only actuators take. It is empty until there is a
// journal.
func presencePath(dir string) string { return filepath.Join(dir, "actuator") }

// lookAfter is the longest time between two looks at the lease.
const lookAfter = 5 * time.Second

// relieveAfter is how long after the end of the lease a live actuator may still restore by itself.
const relieveAfter = 2 * time.Second

// relieve restores for an actuator that has the lock and does not restore after its lease expired.
// It does not change the journal: if the actuator continues, it finds the baselines restored and
// its lease expired, and drops the entries itself.
//
// It returns when to look again: after a third of the rest of the lease, and no later than
// lookAfter, since the next plan may have a shorter lease. Until the lease expires it reads only
// what was appended to the journal: reading the whole journal of a hundred knobs took most of a
// watchdog's CPU time.
func (w *watcher) relieve(ctx context.Context) (due time.Duration) {
	now := hostfs.BootTime()
	if l, err := w.follow(); err == nil && l.Boot == w.boot && now < saturate(l.borrowed().Until, relieveAfter) {
		return now + min(lookAfter, max(0, l.borrowed().Until-now)/3)
	}
	s, err := w.read()
	if err != nil {
		return now + lookAfter // there is no journal, or it cannot be read
	}
	if s.lease.Boot != w.boot || now < saturate(s.lease.borrowed().Until, relieveAfter) {
		return now
	}
	// It has no way to report: the actuator will, when it continues.
	all := reopenAll(s.entries, w.reopen)
	defer closeAll(all)
	if now < saturate(s.lease.Until, relieveAfter) {
		all = borrowing(ctx, all)
	}
	_ = restoreAll(ctx, all, false)
	return now
}

// follow reads the records appended since, and returns the lease.
func (w *watcher) follow() (l lease, err error) {
	state, err := w.follower.Read()
	if err == nil {
		w.last = state
		err = json.Unmarshal(state[leaseKey], &l)
	}
	return l, err
}

// readDir reads the journal in dir.
func readDir(dir string) (stored, error) {
	state, damage, err := hostfs.ReadJournal(dir)
	if err != nil {
		return stored{}, err
	}
	s := readState(state, slices.Sorted(maps.Keys(state)))
	s.damage = damage
	s.unreadable += damage.Places
	return s, nil
}

// readRestorable reads the journal to restore from. If it names no limit and no copy is complete, it
// returns an error, since limits may be missing.
func readRestorable(dir string) (stored, error) {
	s, err := readDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		info, none := os.Stat(presencePath(dir))
		if none == nil && info.Size() > 0 {
			return stored{}, fmt.Errorf("the journal in %s was removed: %w: %w", dir, hostfs.ErrUnreadable, err)
		}
		return stored{}, nil // there was no journal, so no knob was set
	}
	if err == nil && s.damage.Lost && len(s.entries) == 0 {
		err = fmt.Errorf("what is left of the journal in %s names no limit: %s: %w", dir, &s.damage, hostfs.ErrUnreadable)
	}
	return s, err
}
