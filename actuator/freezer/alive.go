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
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// patience is how long a write waits for killed processes to end, and for processes to freeze
	// before they are killed: most take a few ms, those of a group with little CPU time some 100
	// ms. rounds is how often it tries where a process may start another meanwhile.
	patience = 250 * time.Millisecond
	rounds   = 2
	// noWaitFor is for how long writes do not wait after a wait that timed out: processes stuck on
	// the same device would each take as long.
	noWaitFor = 2 * time.Second
	// What has not ended is killed again after firstAgain, then each time after twice as
	// long as before, at most lastAgain.
	firstAgain, lastAgain = time.Second, time.Minute
	// pause is between two looks at them.
	pause = time.Millisecond
)

// Alive says whether one group has processes, 1, or none, 0; writing 0 kills them. A process that
// waits for a device may not end: 0 is then the set value, and in force only once it has.
type Alive struct {
	group
	config Config
	doomed *doomed
	// seen is the value that was just read, for the Effective that follows, as looking through a
	// large group takes long; nil: none.
	seen *trimtab.Amount
	// vain is when a wait was last in vain, of this knob or of others of its Kind, in
	// nanoseconds since 1970.
	vain *atomic.Int64
}

// doomed are processes that were killed and have not ended.
type doomed struct {
	pids []int
	// again is when they are killed again, wait how long after that the next time.
	again time.Time
	wait  time.Duration
}

// Traits returns what the knob can do beyond what every knob can.
func (k *Alive) Traits() actuator.Traits {
	return actuator.Traits{Place: k.Place, Effective: k.Effective, Restore: k.Restore}
}

// OpenAlive opens the root. Whether the group is there is for Probe to say.
func OpenAlive(c Config) (*Alive, error) {
	g, err := openGroup(c)
	if err != nil {
		return nil, err
	}
	c.Path = g.Group()
	return &Alive{group: g, config: c, vain: new(atomic.Int64)}, nil
}

// ReopenAlive opens the knob that undo describes. The error is
// trimtab.ErrUnsupported when undo is another kind of knob's.
func ReopenAlive(b []byte) (*Alive, error) {
	c, err := decode(aliveKind, b)
	if err != nil {
		return nil, err
	}
	return OpenAlive(c)
}

// Undo describes the knob for ReopenAlive.
func (k *Alive) Undo() []byte { return encode(aliveKind, k.config) }

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

// real refuses a tree of plain files.
func (k *Alive) real() error {
	if k.Root().Filesystem() == hostfs.Ordinary {
		return fmt.Errorf("%s is no control group of a kernel: %w", k.Root().Path(), trimtab.ErrUnsupported)
	}
	return nil
}

// MayWrite says whether the processes may be killed by this process.
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

// some reports whether there is a process. When there is none, the list of killed ones is
// cleared.
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

// others reports whether there is a process that was not killed: another program has started it
// since.
func (k *Alive) others() (bool, error) {
	all, err := k.processes()
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
	all, err := k.processes() // in a group inside it, or too many to read at once
	return len(all) > 0, err
}

// Nearest is 1 from a half on, also without limit.
func (k *Alive) Nearest(a trimtab.Amount) trimtab.Amount { return nearest(a) }

// Write of 0 kills all processes of the group with SIGKILL, and waits a moment for them to end.
// Write of 1 is refused where there is none: this knob starts nothing.
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
	all, err := k.processes()
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

// killEach kills in groups without cgroup.kill. A group that was frozen before is frozen again
// afterwards, and no other.
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
	// They end when they run.
	return errors.Join(err, k.freeze(false))
}

// signal sends SIGKILL to each process.
func (k *Alive) signal() error {
	if err := k.spared(); err != nil { // one may have moved in
		return err
	}
	all, err := k.processes()
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

// ended waits a moment until there is no process, and reports whether that is so.
func (k *Alive) ended(ctx context.Context) (bool, error) {
	empty, err := k.until(ctx, func() (bool, error) {
		some, err := k.populated()
		return !some, err
	})
	if isGone(err) { // somebody removed the group when it was empty
		return true, nil
	}
	return empty, err
}

// until polls so for at most patience, and reports whether it became true.
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

// Restore starts nothing: where processes were killed, its error is trimtab.ErrUnsupported. Those
// that have not ended are not killed again.
func (k *Alive) Restore(ctx context.Context, _ []byte) error {
	v, err := k.Read(ctx)
	if err == nil && v.Value == 0 {
		k.doomed = nil
		err = fmt.Errorf("the processes of cgroup %s were killed, and cannot be restored: start them again: %w", k.Group(), trimtab.ErrUnsupported)
	}
	return err
}
