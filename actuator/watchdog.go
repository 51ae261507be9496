package actuator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	ended := make(chan struct{})
	var at time.Duration // when it ended, before ended is closed
	// The pipe of a process that dies may end before its locks do.
	successor := func() bool {
		return hostfs.BootTime()-at > dying && hostfs.Taken(ctx, presencePath(dir))
	}
	if p := inheritedPack(parent); p != nil {
		go p.guardPartner(ended, func() bool {
			held, left, _, err := leaseLeft(dir, id)
			return err == nil && held && left > 0 && !successor()
		})
	}
	due, follower := hostfs.BootTime(), &hostfs.JournalFollower{Dir: dir}
	err = watch(ctx, dir, parent, func() {
		if hostfs.BootTime() >= due {
			due = relieve(ctx, follower, id, reopen)
		}
	})
	at = hostfs.BootTime()
	close(ended)
	if err != nil {
		return Report{}, err
	}
	returned := false // what was borrowed
	for {
		held, left, borrowed, err := leaseLeft(dir, id)
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
				return restoreLocked(ctx, dir, reopen, false)
			}
			if !errors.Is(err, trimtab.ErrRefused) {
				return Report{}, err
			}
			left = 20 * time.Millisecond // the other one restores, or an actuator starts
		case borrowed == 0 && !returned:
			if lock, err := hostfs.TakeLock(ctx, dir, 0); err == nil { // else the other one does it
				_, err = restoreLocked(ctx, dir, reopen, true)
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

// dying is how long a process that dies may take to let go of everything.
const dying = 500 * time.Millisecond

// presencePath is the lock file that only actuators take.
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
func relieve(ctx context.Context, follower *hostfs.JournalFollower, boot string, reopen func(undo []byte) (Knob, error)) (due time.Duration) {
	now := hostfs.BootTime()
	if l, err := followLease(follower); err == nil && l.Boot == boot && now < saturate(l.borrowed().Until, relieveAfter) {
		return now + min(lookAfter, max(0, l.borrowed().Until-now)/3)
	}
	s, err := readDir(follower.Dir)
	if err != nil || s.lease.Boot != boot || now < saturate(s.lease.borrowed().Until, relieveAfter) {
		return now
	}
	// Nobody to tell: the actuator reports when it can again.
	all := reopenAll(s.entries, reopen)
	defer closeAll(all)
	if now < saturate(s.lease.Until, relieveAfter) {
		all = borrowing(ctx, all)
	}
	_ = restoreAll(ctx, all, false)
	return now
}

// followLease reads the lease alone.
func followLease(f *hostfs.JournalFollower) (l lease, err error) {
	state, err := f.Read()
	if err == nil {
		err = json.Unmarshal(state[leaseKey], &l)
	}
	return l, err
}

// readDir reads the journal in dir.
func readDir(dir string) (stored, error) {
	state, damaged, err := hostfs.ReadJournal(dir)
	if err != nil {
		return stored{}, err
	}
	s := readState(state, slices.Sorted(maps.Keys(state)))
	s.unreadable += damaged
	return s, nil
}

// leaseLeft reads from the journal whether anything is held, and for how long: all of it,
// and what is above its baseline.
func leaseLeft(dir, boot string) (held bool, left, borrowed time.Duration, err error) {
	s, err := readDir(dir)
	if err != nil {
		return false, 0, 0, err
	}
	now := hostfs.BootTime()
	return len(s.entries) > 0, s.lease.left(boot, now), s.lease.borrowed().left(boot, now), nil
}
