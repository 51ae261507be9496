package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/freezer"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// task is a task that the runner knows. Its keeper, a goroutine, supervises it until its end.
type task struct {
	spec Spec
	leaf string
	who  *syscall.Credential
	// cmd is nil if another agent started the task, or it could not be started.
	cmd *exec.Cmd
	// failed says that starting failed, which only Start reports.
	failed bool
	kill   chan verdict
	poke   chan struct{}
	// turning is locked while the task is frozen or thawed, so that a task that is being killed is
	// not frozen.
	turning sync.Mutex
	// stranger says that another program had frozen the task when the runner froze it, so that the
	// runner does not thaw it. turning guards it.
	stranger bool

	// The runner's mutex guards these. changed is closed at each change of info, whose ID never
	// changes. out is set once. groups are the task's control groups: one, or two while it changes
	// its class.
	info    Info
	groups  []string
	until   time.Duration
	out     *output
	changed chan struct{}
}

func newTask(i Info, leaf string) *task {
	return &task{info: i, leaf: leaf, kill: make(chan verdict, 1), poke: make(chan struct{}, 1), changed: make(chan struct{})}
}

// verdict says why a task is killed, and how long it has after SIGTERM.
type verdict struct {
	outcome Outcome
	reason  string
	grace   time.Duration
}

// ask asks the keeper to kill the task. The first request's reason counts.
func (t *task) ask(v verdict) {
	select {
	case t.kill <- v:
	default:
	}
}

// keep supervises a task until its end; if v is not nil, it kills the task at once.
func (r *Runner) keep(t *task, v *verdict) {
	defer r.keepers.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	gone := make(chan struct{})
	go r.watch(ctx, t, gone)
	if v == nil {
		v = r.live(ctx, t, gone)
	}
	if v != nil {
		r.condemn(ctx, t, v, gone)
	}
	if !r.bury(ctx, t) {
		return
	}
	select {
	case <-gone:
	case <-ctx.Done():
		return
	}
	r.finish(t, v)
}

// watch closes gone when nothing of the task runs any more.
func (r *Runner) watch(ctx context.Context, t *task, gone chan<- struct{}) {
	if t.cmd != nil {
		_ = t.cmd.Wait() // ProcessState has the result
		r.known.change(t, func(i *Info) { i.PID = 0 })
	}
	err := waitEmpty(ctx, func() ([]int, error) {
		t.turning.Lock() // no process changes its group meanwhile
		defer t.turning.Unlock()
		return r.processes(t)
	})
	if err != nil && ctx.Err() == nil {
		// The task cannot be watched, so it is killed.
		r.logger.Error("watch task", "task", t.info.ID.String(), "err", err)
		t.ask(verdict{outcome: Killed, reason: "its processes cannot be watched: " + err.Error()})
		err = nil
	}
	if err == nil {
		close(gone)
	}
}

// live waits until the task has ended, and returns nil, or why it must be killed.
func (r *Runner) live(ctx context.Context, t *task, gone <-chan struct{}) *verdict {
	var wall <-chan time.Time
	if d := t.spec.Limits.Wall; d > 0 {
		timer := time.NewTimer(d - time.Since(t.info.Started))
		defer timer.Stop()
		wall = timer.C
	}
	for {
		r.known.mu.Lock()
		left := t.until - hostfs.BootTime()
		r.known.mu.Unlock()
		if left <= 0 {
			return &verdict{outcome: Killed, reason: "its lease ended, and nobody renewed it"}
		}
		lease := time.NewTimer(left)
		select {
		case <-gone:
			lease.Stop()
			select {
			case v := <-t.kill: // both happened at once: the task could not be watched
				return &v
			default:
				return nil
			}
		case <-ctx.Done():
			lease.Stop()
			return nil
		case v := <-t.kill:
			lease.Stop()
			return &v
		case <-wall:
			lease.Stop()
			return &verdict{outcome: TimedOut, reason: fmt.Sprintf("it ran for %v", t.spec.Limits.Wall), grace: t.spec.Limits.Grace}
		case <-t.poke:
		case <-lease.C:
		}
		lease.Stop()
	}
}

// condemn marks a task as being killed, and gives it its grace period.
func (r *Runner) condemn(ctx context.Context, t *task, v *verdict, gone <-chan struct{}) {
	t.turning.Lock()
	var before State
	r.known.change(t, func(i *Info) {
		before, i.State, i.Reason = i.State, Killing, v.reason
	})
	t.turning.Unlock()
	if v.grace <= 0 || before == Frozen || t.cmd == nil {
		return
	}
	if err := terminate(func() ([]int, error) { return r.processes(t) }); err != nil {
		r.logger.Warn("terminate task", "task", t.info.ID.String(), "err", err)
		return
	}
	grace := time.NewTimer(v.grace)
	defer grace.Stop()
	select {
	case <-gone:
	case <-grace.C:
	case <-ctx.Done():
	case <-t.kill: // a second request, for example by Close
	}
}

// The pauses between attempts to kill an unkillable task.
const (
	firstBackoff   = 500 * time.Millisecond
	longestBackoff = time.Minute
)

// bury kills the remaining processes of a task and removes its group, and retries as long as
// needed. It returns false if the runner is closed meanwhile.
func (r *Runner) bury(ctx context.Context, t *task) bool {
	if t.failed && t.cmd != nil {
		_ = t.cmd.Process.Kill() // a shim that has not entered the group yet, if any
	}
	groups := r.groupsOf(t)
	r.readOOM(t, groups)
	for pause := firstBackoff; ; pause = min(2*pause, longestBackoff) {
		var err error
		for _, group := range groups {
			err = errors.Join(err, r.tree.bury(ctx, group))
		}
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.logger.Warn("a task cannot be killed", "task", t.info.ID.String(), "again_in", pause, "err", err)
		r.known.change(t, func(i *Info) { i.State, i.Problem = Unkillable, err.Error() })
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// readOOM records the kills by the group's memory limit, before the group is removed.
func (r *Runner) readOOM(t *task, groups []string) {
	n := 0
	for _, group := range groups {
		n += r.tree.oomKills(group)
	}
	r.known.change(t, func(i *Info) { i.OOMKills += n })
}

// groupsOf returns the control groups of a task.
func (r *Runner) groupsOf(t *task) []string {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if len(t.groups) == 0 {
		return []string{r.tree.path(t.info.Class, t.leaf)}
	}
	return t.groups
}

// processes lists the processes of a task in all its groups.
func (r *Runner) processes(t *task) (all []int, err error) {
	for _, group := range r.groupsOf(t) {
		some, bad := r.tree.processes(group)
		all, err = append(all, some...), errors.Join(err, bad)
	}
	return all, err
}

// finish records how a task ended, in the journal before anyone else sees it.
func (r *Runner) finish(t *task, v *verdict) {
	if t.out != nil {
		t.out.end()
	}
	i := r.known.get(t)
	i.State, i.Ended, i.Problem = Ended, time.Now(), ""
	if t.out != nil {
		t.out.told(&i)
	}
	ended(&i, t.cmd)
	if v != nil {
		i.Outcome = v.outcome
	}
	var err error
	if t.failed {
		err = r.forget(t)
	} else {
		err = r.journal.store(record{i, r.journal.boot, 0})
	}
	if err != nil {
		r.logger.Error("store the end of a task", "task", i.ID.String(), "err", err)
	}
	if !t.failed {
		r.makeRoom()
	}
	r.known.change(t, func(now *Info) {
		*now = i
		if !t.failed {
			r.known.ended = append(r.known.ended, i.ID)
		}
	})
}

// ended fills in the result of the first process.
func ended(i *Info, cmd *exec.Cmd) {
	i.Outcome = Lost
	if cmd == nil || cmd.ProcessState == nil {
		return
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return
	case status.Signaled():
		i.Outcome, i.Signal = Signaled, unix.SignalName(status.Signal())
	default:
		i.Outcome, i.Code = Exited, status.ExitStatus()
	}
	if i.OOMKills > 0 && !i.Succeeded() {
		i.Outcome = OutOfMemory
	}
}

// makeRoom forgets the tasks that ended longest ago, to keep their number limited.
func (r *Runner) makeRoom() {
	for _, t := range r.known.beyond(r.config.Keep - 1) {
		if err := r.forget(t); err != nil {
			r.logger.Error("forget task", "task", t.info.ID.String(), "err", err)
		}
	}
}

// freezeWait is how long freezing may take.
const freezeWait = 2 * time.Second

// turn freezes or thaws a task.
func (r *Runner) turn(ctx context.Context, id ID, to State) error {
	t, err := r.known.find(id)
	if err != nil {
		return err
	}
	k, err := r.switchTo(ctx, t, to)
	if err != nil {
		return fmt.Errorf("turn task %v to %s: %w", id, to, err)
	}
	defer func() { _ = k.Close() }() // the error of each write was checked
	ctx, cancel := context.WithTimeout(ctx, freezeWait)
	defer cancel()
	for to == Frozen {
		still, err := r.still(ctx, t, k)
		if errors.Is(err, os.ErrNotExist) || still {
			return nil // it has ended, or is frozen
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("freeze task %v: %w", id, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("freeze task %v: not all of its processes stand still yet: %w", id, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// switchTo requests freezing or thawing, unless the task is being killed.
func (r *Runner) switchTo(ctx context.Context, t *task, to State) (*freezer.Running, error) {
	t.turning.Lock()
	defer t.turning.Unlock()
	state := r.known.get(t).State
	groups := r.groupsOf(t)
	if state != Running && state != Frozen || len(groups) != 1 {
		return nil, fmt.Errorf("it is %s, in %d groups: %w", state, len(groups), trimtab.ErrRefused)
	}
	k, err := freezer.OpenRunning(freezer.Config{Root: r.tree.main.Path(), Path: groups[0]})
	if err != nil {
		return nil, err
	}
	if state == Running && to == Frozen {
		now, err := k.Read(ctx)
		t.stranger = err == nil && now.Value == 0
	}
	if value := map[State]float64{Running: 1, Frozen: 0}[to]; to == Frozen || !t.stranger {
		if err := k.Write(ctx, trimtab.Units(value)); err != nil {
			return nil, errors.Join(err, k.Close())
		}
	}
	r.known.change(t, func(i *Info) { i.State = to })
	return k, nil
}

// frozen reports whether any program asked to freeze a group, and none to thaw it since.
func (r *Runner) frozen(ctx context.Context, group string) (bool, error) {
	k, err := freezer.OpenRunning(freezer.Config{Root: r.tree.main.Path(), Path: group})
	if err != nil {
		return false, err
	}
	defer func() { _ = k.Close() }() // only read
	now, err := k.Read(ctx)
	return err == nil && now.Value == 0, err
}

// still reports whether the whole task is frozen, or need not be any more because it was thawed
// since or is being killed.
func (r *Runner) still(ctx context.Context, t *task, k *freezer.Running) (bool, error) {
	t.turning.Lock()
	defer t.turning.Unlock()
	state := r.known.get(t).State
	if state != Frozen {
		return true, nil
	}
	now, err := k.Effective(ctx)
	return err == nil && now.Value == 0, err
}
