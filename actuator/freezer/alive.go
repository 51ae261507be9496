package freezer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// patience is how long a write waits for killed processes to end, and for processes to freeze
	// before they are killed: most need a few ms, those of a group with little CPU time about 100
	// ms. rounds is how often it tries again if processes may have started others meanwhile.
	patience = 250 * time.Millisecond
	rounds   = 2
	// noWaitFor is how long writes do not wait after a wait that timed out: several groups of
	// processes stuck on one device would each take the full time.
	noWaitFor = 2 * time.Second
	// Processes that have not ended are killed again after firstAgain, then after intervals that
	// double up to lastAgain.
	firstAgain, lastAgain = time.Second, time.Minute
	// pause is the time between two looks at the processes.
	pause = time.Millisecond
)

// Alive says whether one group has processes, 1, or none, 0; writing 0 kills them. A process that
// waits for a device may not end; Read then returns 0, and Effective 1 until it has ended.
type Alive struct {
	group
	doomed *doomed
	// seen caches the value that was just read for the following call of Effective, as reading a
	// large group takes long; nil: none.
	seen *trimtab.Amount
	// vain is when a wait last timed out, for this knob or others of its Kind, in nanoseconds since
	// 1970.
	vain *atomic.Int64
}

// doomed has the processes that were killed and have not ended.
type doomed struct {
	pids []int
	// again is when they are killed again; wait is the interval after that.
	again time.Time
	wait  time.Duration
}

// Traits returns the optional abilities of this knob.
func (k *Alive) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Effective: k.Effective, Restore: k.Restore}
}

// OpenAlive opens the root. It does not check that the group exists; Probe does.
func OpenAlive(c Config) (*Alive, error) {
	g, err := openGroup(c)
	if err != nil {
		return nil, err
	}
	return &Alive{group: g, vain: new(atomic.Int64)}, nil
}

// ReopenAlive opens the knob that undo describes; see [actuator.Reopen].
func ReopenAlive(undo []byte) (*Alive, error) { return actuator.Reopen(aliveKind, undo, OpenAlive) }

// Undo describes the knob for ReopenAlive.
func (k *Alive) Undo() []byte { return actuator.UndoOf(aliveKind, k.Config()) }

// String names version and path.
func (k *Alive) String() string {
	return fmt.Sprintf("cgroup v%d processes of %s", k.version(), k.Group())
}

// Resource returns "alive".
func (k *Alive) Resource() string { return trimtab.Alive }

// Probe returns an error unless the group exists and is a real control group: in a plain file the
// process IDs could be any.
func (k *Alive) Probe(ctx context.Context) error {
	if err := k.Files.Probe(ctx, k.maker(), k.file()); err != nil {
		return err
	}
	return k.real()
}

// real returns an error for a tree of plain files.
func (k *Alive) real() error {
	if k.Root().Filesystem() == hostfs.Ordinary {
		return fmt.Errorf("%s is no control group of a kernel: %w", k.Root().Path(), trimtab.ErrUnsupported)
	}
	return nil
}

// MayWrite returns an error if this process may not kill the group's processes.
func (k *Alive) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.file()) }

// Read returns 1 while the group or one inside it has a process that was not killed.
func (k *Alive) Read(ctx context.Context) (trimtab.Amount, error) {
	some, err := k.some(ctx)
	if err == nil && some && k.doomed != nil {
		some, err = k.others()
	}
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read processes of cgroup %s: %w", k.Group(), err)
	}
	v := units(some)
	k.seen = &v
	return v, nil
}

// Effective returns 1 while there is a process. It kills again those that were killed and have
// not ended, with a back-off, and does not wait for them.
func (k *Alive) Effective(ctx context.Context) (trimtab.Amount, error) {
	if seen := k.seen; seen != nil && k.doomed == nil && ctx.Err() == nil {
		k.seen = nil
		return *seen, nil
	}
	some, err := k.some(ctx)
	if err == nil && some && k.doomed != nil && !time.Now().Before(k.doomed.again) {
		k.doomed.again, k.doomed.wait = time.Now().Add(k.doomed.wait), min(2*k.doomed.wait, lastAgain)
		err = k.kill(ctx)
	}
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read processes of cgroup %s: %w", k.Group(), err)
	}
	return units(some), nil
}

// some reports whether the group has a process. If it has none, some clears the list of killed
// ones.
func (k *Alive) some(ctx context.Context) (bool, error) {
	some, err := false, ctx.Err()
	if err == nil {
		some, err = k.populated()
	}
	if err == nil && !some {
		k.doomed = nil
	}
	return some, err
}

// others reports whether the group has a process that was not killed, so that another program
// started it since.
func (k *Alive) others() (bool, error) {
	all, err := cgroup.Processes(k.Root(), k.Group())
	some := slices.ContainsFunc(all, func(pid int) bool { return !slices.Contains(k.doomed.pids, pid) })
	if some {
		k.doomed = nil
	}
	return some, err
}

func (k *Alive) populated() (bool, error) {
	if k.version() == 2 {
		return k.event("populated")
	}
	if text, err := k.Files.Read(procs); err == nil && text != "" && text[0] != '0' {
		return true, nil
	}
	all, err := cgroup.Processes(k.Root(), k.Group()) // the processes are in a group inside it, or too many to read at once
	return len(all) > 0, err
}

// Nearest returns 1 for amounts of at least 0.5 and for unlimited, else 0.
func (k *Alive) Nearest(a trimtab.Amount) trimtab.Amount { return nearest(a) }

// Write of 0 kills all processes of the group with SIGKILL, and waits up to patience for them to
// end. Write of 1 is refused if the group has no process, since this knob cannot start any.
func (k *Alive) Write(ctx context.Context, a trimtab.Amount) error {
	k.seen = nil
	if err := k.write(ctx, a); err != nil {
		return fmt.Errorf("kill processes of cgroup %s: %w", k.Group(), err)
	}
	return nil
}

func (k *Alive) write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return err
	}
	if err := errors.Join(k.Owned(), k.real()); err != nil {
		return err
	}
	some, err := k.populated()
	switch {
	case err != nil:
		return err
	case nearest(a).Value == 1 && !some:
		return fmt.Errorf("it has none, and none is brought back: start it again: %w", trimtab.ErrRefused)
	case nearest(a).Value == 1 || !some:
		return nil
	}
	if err := k.kill(ctx); err != nil {
		return err
	}
	ended, err := k.ended(ctx)
	if err != nil || ended {
		return err
	}
	all, err := cgroup.Processes(k.Root(), k.Group())
	if err == nil {
		k.doomed = &doomed{pids: all, again: time.Now().Add(firstAgain), wait: 2 * firstAgain}
	}
	return err
}

// kill sends SIGKILL to all processes.
func (k *Alive) kill(ctx context.Context) error {
	if err := k.spared(); err != nil {
		return err
	}
	if k.version() == 2 {
		err := k.Files.Write(kill2, "1")
		if err == nil {
			return nil
		}
		if ok, bad := k.Root().Exists(path.Join(k.Group(), kill2)); ok || bad != nil {
			return err
		}
	}
	return k.killEach(ctx)
}

// killEach kills the processes of a group without cgroup.kill. It freezes the group for that, and
// thaws it afterwards unless it was frozen before.
func (k *Alive) killEach(ctx context.Context) error {
	was, err := k.frozenBySelf()
	if err != nil {
		return err
	}
	for range rounds {
		if err = k.killFrozen(ctx); err != nil {
			break
		}
		var ended bool
		if ended, err = k.ended(ctx); ended || err != nil {
			break
		}
	}
	if was && !isGone(err) {
		err = errors.Join(err, k.freeze(true))
	}
	return err
}

// killFrozen sends SIGKILL to each process while all are frozen, so that none starts another, and
// no process ID is reused.
func (k *Alive) killFrozen(ctx context.Context) error {
	if err := k.freeze(true); err != nil {
		return err
	}
	_, err := k.until(ctx, k.refrozen)
	if err == nil {
		err = k.signal()
	}
	// Frozen processes end only once they are thawed.
	return errors.Join(err, k.freeze(false))
}

// signal sends SIGKILL to each process.
func (k *Alive) signal() error {
	if err := k.spared(); err != nil { // this process may have moved into the group
		return err
	}
	all, err := cgroup.Processes(k.Root(), k.Group())
	if err != nil {
		return err
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return nil
}

// ended waits up to patience for all processes to end, and reports whether they have.
func (k *Alive) ended(ctx context.Context) (bool, error) {
	empty, err := k.until(ctx, func() (bool, error) {
		some, err := k.populated()
		return !some, err
	})
	if isGone(err) { // the empty group was removed
		return true, nil
	}
	return empty, err
}

// until calls so repeatedly for at most patience, and reports whether it returned true.
func (k *Alive) until(ctx context.Context, so func() (bool, error)) (bool, error) {
	wait := patience
	if time.Since(time.Unix(0, k.vain.Load())) < noWaitFor {
		wait = 0
	}
	end := time.After(wait)
	for {
		if ok, err := so(); ok || err != nil {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-end:
			if wait > 0 {
				k.vain.Store(time.Now().UnixNano())
			}
			return false, nil
		case <-time.After(pause):
		}
	}
}

// isGone reports whether the group was removed.
func isGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// Restore cannot start processes: if some were killed, its error is trimtab.ErrUnsupported. It
// stops killing those that have not ended.
func (k *Alive) Restore(ctx context.Context, _ []byte) error {
	v, err := k.Read(ctx)
	if err == nil && v.Value == 0 {
		k.doomed = nil
		err = fmt.Errorf("the processes of cgroup %s were killed, and cannot be restored: start them again: %w", k.Group(), trimtab.ErrUnsupported)
	}
	return err
}
