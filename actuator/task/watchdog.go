package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/watchdog"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// lookAfter is the longest time between two checks of the leases by a watchdog; relieveAfter is
// how long after the end of a lease it leaves the kill to a living runner.
const (
	lookAfter    = 5 * time.Second
	relieveAfter = 2 * time.Second
)

// Watchdog runs in a child process of a runner, with the runner's Root, Group and Dir. parent is
// the read end of a pipe whose write end only the runner has: when it is closed, Watchdog kills
// all tasks, unless another runner has taken over, and returns when none is left. Before that, it
// kills tasks whose lease has ended if the runner does not.
func Watchdog(ctx context.Context, c Config, parent io.Reader) error {
	t, err := openTree(c.Root, cmp.Or(c.Group, defaultGroup))
	if err != nil {
		return fmt.Errorf("watch tasks: %w", err)
	}
	defer t.close()
	boot, err := hostfs.BootID()
	if err != nil {
		return fmt.Errorf("watch tasks: %w", err)
	}
	follower, due := &hostfs.JournalFollower{Dir: c.Dir}, hostfs.BootTime()
	err = watchdog.Watch(ctx, parent, func() {
		if hostfs.BootTime() >= due {
			due = t.relieve(ctx, follower, boot)
		}
	})
	if err != nil {
		return fmt.Errorf("watch tasks: %w", err)
	}
	return t.sweep(ctx)
}

// relieve kills the tasks whose lease ended a while ago, and returns when to check again.
func (t *tree) relieve(ctx context.Context, follower *hostfs.JournalFollower, boot string) (due time.Duration) {
	now := hostfs.BootTime()
	state, err := follower.Read()
	if err != nil {
		return now + lookAfter // the runner is writing it, or has not made one yet
	}
	next := lookAfter
	for key, value := range state {
		var rec record
		leaf, ok := strings.CutPrefix(key, recordPrefix)
		if !ok || json.Unmarshal(value, &rec) != nil || leafOf(rec.ID) != leaf || rec.State == Ended || rec.Boot != boot {
			continue
		}
		left := rec.Until + relieveAfter - now
		if left <= 0 {
			_ = t.kill(ctx, t.path(rec.Class, leaf)) // if that fails, the next round tries again
			left = lookAfter
		}
		// The next record may have a shorter lease, so it looks again after a third of the rest.
		next = min(next, left/3)
	}
	return now + next
}

// letGo is how long the locks of a dead process may outlive its pipe.
const letGo = 2 * time.Second

// sweep kills all tasks of a runner that died, until none is left or another has them.
func (t *tree) sweep(ctx context.Context) error {
	for pause := firstBackoff; ; pause = min(2*pause, longestBackoff) {
		left, err := t.sweepOnce(ctx)
		switch {
		case errors.Is(err, trimtab.ErrRefused):
			return nil // another runner cleans up
		case gone(err):
			return nil // the groups were removed, so no task is left
		case err == nil && left == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sweep tasks: %d are left: %w", left, errors.Join(ctx.Err(), err))
		case <-time.After(pause):
		}
	}
}

// sweepOnce tries to kill all tasks once, concurrently, so that one that cannot be killed does
// not delay the others.
func (t *tree) sweepOnce(ctx context.Context) (left int, err error) {
	unlock, err := t.lock(ctx, letGo)
	if err != nil {
		return 0, err
	}
	defer unlock()
	all, err := t.leftovers()
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	failed := make(chan error, len(all))
	for _, l := range all {
		wg.Go(func() { failed <- t.bury(ctx, t.path(l.class, l.leaf)) })
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			left++
		}
	}
	return left, nil
}

// Sweep kills all tasks that a runner left behind, for use when a service stops (ExecStopPost). It
// does nothing if another runner controls them.
func Sweep(ctx context.Context, c Config) error {
	t, err := openTree(c.Root, cmp.Or(c.Group, defaultGroup))
	if err != nil {
		return fmt.Errorf("sweep tasks: %w", err)
	}
	defer t.close()
	return t.sweep(ctx)
}
