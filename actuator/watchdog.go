package actuator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Watchdog runs in a child process of the actuator and restores for it when it
// was killed. parent is the read end of a pipe of which the actuator holds the
// other: it ends when the actuator does, however it dies. Then Watchdog waits
// for the lease in the journal, and unless another actuator took the
// directory over, restores the baselines and returns what it did.
//
// It also restores for an actuator that is there and does nothing: stopped, or
// stuck in a disk that does not answer, with a lease that ran out.
func Watchdog(ctx context.Context, dir string, parent io.Reader, reopen func(undo []byte) (Knob, error)) (Report, error) {
	id, err := hostfs.BootID()
	if err != nil {
		return Report{}, fmt.Errorf("watchdog: %w", err)
	}
	if err := watch(ctx, dir, parent, func() { relieve(ctx, dir, id, reopen) }); err != nil {
		return Report{}, fmt.Errorf("watchdog: %w", err)
	}
	for {
		left, err := leaseLeft(dir, id)
		if err != nil {
			return Report{}, fmt.Errorf("watchdog: %w", err)
		}
		if left == 0 {
			break
		}
		// In short steps: an actuator that came back renews the lease.
		select {
		case <-ctx.Done():
			return Report{}, fmt.Errorf("watchdog: %w", ctx.Err())
		case <-time.After(min(left, 200*time.Millisecond)):
		}
		if busy(ctx, dir) {
			return Report{}, nil
		}
	}
	lock, err := hostfs.TakeLock(ctx, dir, 0)
	if errors.Is(err, trimtab.ErrRefused) {
		return Report{}, nil // another actuator has it, and a watchdog of its own
	}
	if err != nil {
		return Report{}, fmt.Errorf("watchdog: %w", err)
	}
	defer lock.Close()
	return restoreLocked(ctx, dir, reopen)
}

// busy reports whether an actuator holds the directory.
func busy(ctx context.Context, dir string) bool {
	lock, err := hostfs.TakeLock(ctx, dir, 0)
	if err != nil {
		return errors.Is(err, trimtab.ErrRefused)
	}
	lock.Close()
	return false
}

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

// relieveAfter is how long after the lease an actuator that lives may still
// restore by itself.
const relieveAfter = 2 * time.Second

// relieve restores for an actuator that holds the lock and lets its lease go
// by. It leaves the journal alone: when the actuator goes on, it finds the
// baselines in place and its lease over, and drops the entries itself.
func relieve(ctx context.Context, dir, boot string, reopen func(undo []byte) (Knob, error)) {
	s, err := readDir(dir)
	if err != nil || s.lease.Boot != boot || hostfs.BootTime() < saturate(s.lease.Until, relieveAfter) {
		return
	}
	// Nobody to tell: the actuator reports when it can again.
	_ = restoreAll(ctx, reopenAll(s.entries, reopen))
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

// leaseLeft reads from the journal how long the allocation holds; 0 when
// nothing is held.
func leaseLeft(dir, boot string) (time.Duration, error) {
	s, err := readDir(dir)
	if err != nil {
		return 0, err
	}
	if len(s.entries) == 0 {
		return 0, nil
	}
	return s.lease.left(boot, hostfs.BootTime()), nil
}

// guarded is the watchdog that is kept running while an actuator is open.
type guarded struct {
	stop chan struct{}
	done chan struct{}
}

// dog is one watchdog process.
type dog struct {
	pipe  io.Closer
	ended chan error
}

// guard starts a watchdog, before it returns, and starts another whenever it
// ends, until release.
func (a *Actuator) guard() *guarded {
	g := &guarded{stop: make(chan struct{}), done: make(chan struct{})}
	if len(a.config.Watchdog) == 0 {
		close(g.done)
		return g
	}
	d, err := a.startWatchdog()
	go func() {
		defer close(g.done)
		for pause := watchdogPause; ; pause = min(2*pause, 25*watchdogPause) {
			started := a.clock.boot()
			if err == nil {
				err = a.attend(d, g.stop)
			}
			if a.clock.boot()-started > time.Minute {
				pause = watchdogPause
			}
			select {
			case <-g.stop:
				return
			case <-time.After(pause):
			}
			a.logger.Warn("the watchdog ended and is started again", "err", err)
			d, err = a.startWatchdog()
		}
	}()
	return g
}

// watchdogPause is the first pause before a watchdog is started again; it
// doubles, so that one that cannot start does not fill the log.
const watchdogPause = 200 * time.Millisecond

// release closes the pipe. A watchdog that finds nothing to restore then ends
// at once; one that must wait for the lease is left to it.
func (g *guarded) release() {
	close(g.stop)
	<-g.done
}

// startWatchdog starts one watchdog process.
func (a *Actuator) startWatchdog() (*dog, error) {
	cmd := exec.Command(a.config.Watchdog[0], a.config.Watchdog[1:]...)
	// A session of its own: Ctrl-C on the terminal is for the actuator. Not a
	// pipe for its errors: writing to one whose reader died would kill it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	a.metrics.Counter("trimtab_actuator_watchdog_starts_total").Inc()
	d := &dog{pipe: pipe, ended: make(chan error, 1)}
	go func() { d.ended <- cmd.Wait() }()
	return d, nil
}

// attend waits until the watchdog ends or stop is closed.
func (a *Actuator) attend(d *dog, stop <-chan struct{}) error {
	select {
	case err := <-d.ended:
		return err
	case <-stop:
	}
	d.pipe.Close()
	if a.config.KeepOnStop {
		return nil
	}
	select {
	case err := <-d.ended:
		return err
	case <-time.After(lockWait):
		return nil // it found something to wait for, and does
	}
}
