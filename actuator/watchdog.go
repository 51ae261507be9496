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
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Watchdog runs in a child process of the actuator and restores for it when it
// was killed. parent is the read end of a pipe of which the actuator alone has
// the other: it ends when the actuator does, however it dies. Then Watchdog
// waits for the lease in the journal, and unless another actuator took the
// directory over, restores the baselines and returns what it did.
//
// There are two of them, and each starts the other again, as the actuator does
// (see pack): killing the actuator and a watchdog, in whatever order, leaves
// one that restores.
//
// It also restores for an actuator that is there and does nothing: stopped, or
// stuck in a disk that does not answer, with a lease that ran out.
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
	var at time.Duration // when it ended, before ended is closed
	// The pipe of a process that dies may end before its locks do.
	there := func() bool { return hostfs.Taken(ctx, presencePath(dir)) }
	successor := func() bool { return hostfs.BootTime()-at > dying && there() }
	if p := inheritedPack(parent); p != nil {
		go p.guardPartner(ended, func() bool {
			held, left, _, err := w.leaseLeft()
			return err == nil && held && left > 0 && !successor()
		}, there)
	}
	due := hostfs.BootTime()
	err = watch(ctx, dir, parent, func() {
		if hostfs.BootTime() >= due {
			due = w.relieve(ctx)
		}
	})
	at = hostfs.BootTime()
	close(ended)
	if err != nil {
		return Report{}, err
	}
	returned := false // what was borrowed
	for {
		held, left, borrowed, err := w.leaseLeft()
		switch {
		case err != nil:
			return Report{}, err
		case !held:
			return Report{}, nil // it was stopped, or another restored
		case successor():
			return Report{}, nil // another actuator has it, and watchdogs of its own
		case left == 0:
			lock, err := hostfs.TakeLock(ctx, dir, 0)
			if err == nil {
				defer lock.Close()
				return w.restore(ctx, false)
			}
			if !errors.Is(err, trimtab.ErrRefused) {
				return Report{}, err
			}
			left = 20 * time.Millisecond // the other one restores, or an actuator starts
		case borrowed == 0 && !returned:
			if lock, err := hostfs.TakeLock(ctx, dir, 0); err == nil { // else the other one does it
				_, err = w.restore(ctx, true)
				returned = err == nil // else it is tried again
				_ = lock.Close()
			}
		}
		// In short steps: an actuator that came back renews the lease.
		select {
		case <-ctx.Done():
			return Report{}, ctx.Err()
		case <-time.After(min(left, 200*time.Millisecond)):
		}
	}
}

// watcher is what a watchdog knows.
type watcher struct {
	dir, boot string
	reopen    func(undo []byte) (Knob, error)
	follower  hostfs.JournalFollower
	// last is the journal as it was read last; nil: never. It counts where the files were
	// removed or overwritten since.
	last map[string][]byte
}

// read reads the journal, or says what was read of it before it was lost.
func (w *watcher) read() (stored, error) {
	s, err := readHeld(w.dir)
	if err == nil || w.last == nil {
		return s, err
	}
	return readState(w.last, slices.Sorted(maps.Keys(w.last))), nil
}

// leaseLeft tells whether anything is held, and for how long: all of it, and what is above
// its baseline.
func (w *watcher) leaseLeft() (held bool, left, borrowed time.Duration, err error) {
	s, err := w.read()
	if err != nil {
		return false, 0, 0, err
	}
	now := hostfs.BootTime()
	return len(s.entries) > 0, s.lease.left(w.boot, now), s.lease.borrowed().left(w.boot, now), nil
}

// restore restores when the lock is held. borrowed: only what is above its baseline.
func (w *watcher) restore(ctx context.Context, borrowed bool) (Report, error) {
	s, err := w.read()
	if err != nil {
		return Report{}, err
	}
	return restoreStored(ctx, w.dir, s, w.reopen, borrowed)
}

// dying is how long a process that dies may take to let go of everything: it needs CPU time
// for that, which a busy host or a quota gives it late.
const dying = 5 * time.Second

// presencePath is the lock file that only actuators take. It is empty until there is a
// journal.
func presencePath(dir string) string { return filepath.Join(dir, "actuator") }

// watch returns when parent ends, and calls look every second until then.
// What is read means nothing.
func watch(ctx context.Context, dir string, parent io.Reader, look func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, parent) // an error is an end, too
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", dir, ctx.Err())
		case <-tick.C:
			look()
		}
	}
}

// lookAfter is after how long a watchdog looks at the lease again, at the latest.
const lookAfter = 5 * time.Second

// relieveAfter is how long after the lease an actuator that lives may still
// restore by itself.
const relieveAfter = 2 * time.Second

// relieve restores for an actuator that holds the lock and lets its lease go
// by. It leaves the journal alone: when the actuator goes on, it finds the
// baselines in place and its lease over, and drops the entries itself.
//
// It returns when to look again: after a third of what is left of the lease, and no
// later than lookAfter, for the next plan may bring a shorter one. Until the lease is
// over it reads only what was appended to the journal: to read all of that of a hundred
// knobs is what a watchdog took its CPU time for.
func (w *watcher) relieve(ctx context.Context) (due time.Duration) {
	now := hostfs.BootTime()
	if l, err := w.follow(); err == nil && l.Boot == w.boot && now < saturate(l.borrowed().Until, relieveAfter) {
		return now + min(lookAfter, max(0, l.borrowed().Until-now)/3)
	}
	s, err := w.read()
	if err != nil {
		return now + lookAfter // there is none, or none that can be read
	}
	if s.lease.Boot != w.boot || now < saturate(s.lease.borrowed().Until, relieveAfter) {
		return now
	}
	// Nobody to tell: the actuator reports when it can again.
	all := reopenAll(s.entries, w.reopen)
	defer closeAll(all)
	if now < saturate(s.lease.Until, relieveAfter) {
		all = borrowing(ctx, all)
	}
	_ = restoreAll(ctx, all, false)
	return now
}

// follow reads what was appended, and returns the lease.
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

// readHeld reads the journal for what is to be restored. Where that names no limit, and
// no copy is whole, there may be some that it does not name.
func readHeld(dir string) (stored, error) {
	s, err := readDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		info, none := os.Stat(presencePath(dir))
		if none == nil && info.Size() > 0 {
			return stored{}, fmt.Errorf("the journal in %s was removed: %w: %w", dir, hostfs.ErrUnreadable, err)
		}
		return stored{}, nil // none was made, so nothing was set
	}
	if err == nil && s.damage.Lost && len(s.entries) == 0 {
		err = fmt.Errorf("what is left of the journal in %s names no limit: %s: %w", dir, &s.damage, hostfs.ErrUnreadable)
	}
	return s, err
}
