package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/watchdog"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/jobs"
)

// Config configures a Runner.
type Config struct {
	// Root is the hierarchy with the cpu controller; "": this host's.
	Root string
	// Group is the runner's own group in it, which is kept when empty; "": trimtab.
	Group string
	// Dir has the journal and the output of tasks. It is created if missing.
	Dir string
	// Shim are the arguments with which this program calls Exec.
	Shim []string
	// Watchdog are the arguments with which this program becomes the watchdog; nil: if this process
	// dies, nothing kills the tasks until the next Open.
	Watchdog []string
	// MaxTasks is how many tasks may run at a time; 0: 64. Keep is the number of ended tasks whose
	// result and output are kept; 0: 64.
	MaxTasks, Keep int
	// MaxLease is the longest lease; 0: 5 min.
	MaxLease time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

func (c *Config) defaults() error {
	c.Group = cmp.Or(c.Group, defaultGroup)
	if c.MaxTasks == 0 {
		c.MaxTasks = 64
	}
	if c.Keep == 0 {
		c.Keep = 64
	}
	if c.MaxLease == 0 {
		c.MaxLease = 5 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !filepath.IsAbs(c.Dir):
		return trimtab.Invalidf("directory %q of tasks: want an absolute path", c.Dir)
	case len(c.Shim) == 0:
		return trimtab.Invalidf("arguments of the shim: none")
	case strings.ContainsAny(c.Group, "/\n") || strings.HasPrefix(c.Group, "."):
		return trimtab.Invalidf("group %q of tasks: want one part of a path", c.Group)
	case c.MaxTasks < 0 || c.Keep < 0 || c.MaxTasks+c.Keep > 200 || c.MaxLease < 0:
		return trimtab.Invalidf("%d tasks, %d kept, lease %v: want at most 200 together", c.MaxTasks, c.Keep, c.MaxLease)
	}
	return nil
}

const defaultGroup = "trimtab"

// journalSize suffices for 200 records with their last lines, in the longest JSON form.
const journalSize = 4 * hostfs.DefaultJournalSize

// openWait is how long a former runner, or its watchdog, may take to release its lock.
const openWait = 10 * time.Second

// Runner runs the tasks of one host. It is safe for concurrent use.
type Runner struct {
	config Config
	logger *slog.Logger
	tree   *tree
	unlock func()
	lock   *hostfs.Lock
	guard  *watchdog.Guarded
	// spawn is served by one thread, which lives as long as the runner: when a thread ends, the
	// kernel kills the children that it started.
	spawn chan func()
	// stop ends the keepers of unkillable tasks.
	stop    chan struct{}
	keepers sync.WaitGroup
	journal journal
	known   known
}

// Open first cleans up after an earlier runner: it kills tasks that still run and reports them as
// lost. It returns when these have ended, or turn out to be unkillable.
func Open(ctx context.Context, c Config) (*Runner, error) {
	if err := c.defaults(); err != nil {
		return nil, fmt.Errorf("open tasks: %w", err)
	}
	r := &Runner{config: c, logger: c.Logger, known: known{tasks: map[ID]*task{}}, stop: make(chan struct{}), spawn: make(chan func())}
	if err := r.open(ctx); err != nil {
		r.release()
		return nil, fmt.Errorf("open tasks: %w", err)
	}
	go r.serveSpawn()
	if err := r.adopt(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open tasks: %w", err), r.Close(ctx))
	}
	return r, nil
}

func (r *Runner) open(ctx context.Context) (err error) {
	if r.journal.boot, err = hostfs.BootID(); err != nil {
		return err
	}
	if err = os.MkdirAll(r.config.Dir, 0o700); err != nil {
		return err
	}
	if r.lock, err = hostfs.AcquireLock(ctx, r.config.Dir, openWait); err != nil {
		return err
	}
	if r.tree, err = openTree(r.config.Root, r.config.Group); err != nil {
		return err
	}
	if r.unlock, err = r.tree.lock(ctx, openWait); err != nil {
		return err
	}
	if r.journal.file, err = hostfs.OpenJournal(r.config.Dir, journalSize); err != nil {
		return err
	}
	if n := r.journal.file.Damaged(); n > 0 {
		r.logger.Warn("parts of the journal of tasks could not be read", "parts", n)
	}
	var command []string
	if args := r.config.Watchdog; len(args) > 0 {
		command = append([]string{self}, args...)
	}
	r.guard, err = watchdog.Guard(watchdog.Config{Command: command, Slots: 1, Logger: r.logger})
	return err
}

// Group returns the control group with all tasks, as an absolute path.
func (r *Runner) Group() string { return filepath.Join(r.tree.main.Path(), r.tree.base) }

// release closes everything that is open.
func (r *Runner) release() {
	if r.journal.file != nil {
		r.journal.file.Close()
	}
	if r.unlock != nil {
		r.unlock()
	}
	if r.lock != nil {
		r.lock.Close()
	}
	if r.tree != nil {
		r.tree.close()
	}
}

func (r *Runner) serveSpawn() {
	runtime.LockOSThread() // and never unlocked, so that the thread ends with this
	for {
		select {
		case do := <-r.spawn:
			do()
		case <-r.stop:
			return
		}
	}
}

// Start starts a task on a lease and returns once its command runs. If that fails, the error says
// why, and the runner forgets the task.
func (r *Runner) Start(ctx context.Context, s Spec, lease time.Duration) (Info, error) {
	s = s.withDefaults()
	t, err := r.admit(s, lease)
	if err == nil {
		err = r.journal.enter(&r.known, t)
	}
	if err == nil {
		err = r.launch(ctx, t)
	}
	if t == nil {
		return Info{}, fmt.Errorf("start task %v: %w", s.ID, err)
	}
	if err != nil {
		t.failed = true
		go r.keep(t, &verdict{outcome: Lost, reason: "it could not be started"})
		_, bad := r.known.await(ctx, t, Ended, Unkillable)
		return Info{}, fmt.Errorf("start task %v: %w", s.ID, errors.Join(err, bad))
	}
	r.known.change(t, func(i *Info) { i.State, i.PID = Running, t.cmd.Process.Pid })
	go r.keep(t, nil)
	return r.info(t), nil
}

// admit validates a task and adds it.
func (r *Runner) admit(s Spec, lease time.Duration) (*task, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	who, err := account(s.User, s.Group)
	if err != nil {
		return nil, err
	}
	if lease <= 0 {
		return nil, trimtab.Invalidf("lease %v: want more than zero", lease)
	}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	switch {
	case r.known.closed:
		return nil, fmt.Errorf("tasks are closed: %w", trimtab.ErrRefused)
	case r.known.tasks[s.ID] != nil:
		return nil, fmt.Errorf("this attempt was started before: %w", trimtab.ErrRefused)
	case len(r.known.tasks)-len(r.known.ended) >= r.config.MaxTasks:
		return nil, fmt.Errorf("%d tasks run, the most that may: %w", r.config.MaxTasks, trimtab.ErrRefused)
	}
	t := newTask(Info{ID: s.ID, Class: s.Class, State: Starting, Resources: s.Resources, Started: time.Now()}, leafOf(s.ID))
	t.spec, t.who = s, who
	t.until = hostfs.BootTime() + min(lease, r.config.MaxLease)
	r.known.tasks[s.ID] = t
	r.keepers.Add(1)
	return t, nil
}

// Renew extends the leases of tasks. If some have ended, or are not known, it returns an error
// that is trimtab.ErrStale; the others are renewed.
func (r *Runner) Renew(ctx context.Context, lease time.Duration, ids ...ID) error {
	if err := ctx.Err(); err != nil || lease <= 0 {
		return errors.Join(err, unless(lease > 0, "renew tasks: lease %v: want more than zero", lease))
	}
	until := hostfs.BootTime() + min(lease, r.config.MaxLease)
	var stale []error
	var renewed []*task
	r.known.mu.Lock()
	for _, id := range ids {
		t := r.known.tasks[id]
		if t == nil || t.info.State == Ended || t.info.State == Killing || t.info.State == Unkillable {
			stale = append(stale, fmt.Errorf("renew task %v: it does not run: %w", id, trimtab.ErrStale))
			continue
		}
		t.until = max(t.until, until)
		renewed = append(renewed, t)
	}
	r.known.mu.Unlock()
	err := r.journal.enter(&r.known, renewed...)
	for _, t := range renewed {
		select {
		case t.poke <- struct{}{}:
		default:
		}
	}
	return errors.Join(append(stale, err)...)
}

// Freeze freezes a task, also again if another program has thawed it, and waits until none of its
// processes runs.
func (r *Runner) Freeze(ctx context.Context, id ID) error { return r.turn(ctx, id, Frozen) }

// Thaw lets a task continue that Freeze has frozen. One that another program had frozen before
// stays frozen.
func (r *Runner) Thaw(ctx context.Context, id ID) error { return r.turn(ctx, id, Running) }

// Kill asks a task to end with SIGTERM, and ends it with SIGKILL after its grace; one
// that is frozen gets SIGKILL at once, since it would have to run for the other. Kill
// returns when the task has ended, or an error when it is unkillable.
func (r *Runner) Kill(ctx context.Context, id ID, reason string) (Info, error) {
	t, err := r.known.find(id)
	if err != nil {
		return Info{}, err
	}
	t.ask(verdict{outcome: Killed, reason: fmt.Sprintf("%.200s", reason), grace: t.spec.Limits.Grace})
	info, err := r.known.await(ctx, t, Ended, Unkillable)
	if err == nil && info.State == Unkillable {
		err = fmt.Errorf("kill task %v: %s", id, info.Problem)
	}
	return info, err
}

// Wait returns when a task has ended.
func (r *Runner) Wait(ctx context.Context, id ID) (Info, error) {
	t, err := r.known.find(id)
	if err != nil {
		return Info{}, err
	}
	return r.known.await(ctx, t, Ended)
}

// List returns all known tasks, by name.
func (r *Runner) List(ctx context.Context) ([]Info, error) {
	r.known.mu.Lock()
	all := make([]*task, 0, len(r.known.tasks))
	for _, t := range r.known.tasks {
		all = append(all, t)
	}
	r.known.mu.Unlock()
	infos := make([]Info, 0, len(all))
	for _, t := range all {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		infos = append(infos, r.info(t))
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(leafOf(a.ID), leafOf(b.ID)) })
	return infos, nil
}

// info returns the complete state of a task.
func (r *Runner) info(t *task) Info {
	r.known.mu.Lock()
	i, out := t.info, t.out
	if i.State != Ended {
		i.Lease = max(0, t.until-hostfs.BootTime())
	}
	r.known.mu.Unlock()
	if out != nil && i.State != Ended {
		out.told(&i)
	}
	if i.State == Frozen {
		// Another program may have thawed it. On an error it has ended.
		if frozen, err := r.frozen(context.Background(), r.tree.path(i.Class, t.leaf)); err == nil && !frozen {
			i.State = Running
		}
	}
	if i.State == Running || i.State == Frozen {
		i.CPU = r.tree.used(r.tree.path(i.Class, t.leaf))
	}
	if t.spec.Progress != "" {
		// Strict, since the submitter of a task is not trusted.
		report, err := jobs.Source{Name: t.spec.Progress, Strict: true}.Read()
		if err == nil {
			i.Progress = &report
		} else {
			i.ProgressProblem = err.Error()
		}
	}
	return i
}

// Output returns the output of a task that was kept so far.
func (r *Runner) Output(ctx context.Context, id ID) (Output, error) {
	t, err := r.known.find(id)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return Output{}, err
	}
	out, err := readOutput(r.outputDir(t.leaf))
	out.Dropped = r.info(t).Dropped
	return out, err
}

func (r *Runner) outputDir(leaf string) string { return filepath.Join(r.config.Dir, "output", leaf) }

// Forget drops the result and the output of a task that has ended.
func (r *Runner) Forget(id ID) error {
	t, err := r.known.find(id)
	if err != nil {
		return err
	}
	if r.known.get(t).State != Ended {
		return fmt.Errorf("forget task %v: it has not ended: %w", id, trimtab.ErrRefused)
	}
	return r.forget(t)
}

func (r *Runner) forget(t *task) error {
	r.known.forget(t)
	return errors.Join(r.journal.append(hostfs.Entry{Key: recordPrefix + t.leaf}), os.RemoveAll(r.outputDir(t.leaf)))
}

// Close kills all tasks and returns when they have ended. When ctx ends, it leaves the remaining
// tasks to the watchdog, and names them in the error. Closing again does nothing.
func (r *Runner) Close(ctx context.Context) error {
	r.known.mu.Lock()
	if r.known.closed {
		r.known.mu.Unlock()
		return nil
	}
	r.known.closed = true
	var live []*task
	for _, t := range r.known.tasks {
		if t.info.State != Ended {
			live = append(live, t)
		}
	}
	r.known.mu.Unlock()
	for _, t := range live {
		t.ask(verdict{outcome: Killed, reason: "trimtab stopped"})
	}
	var left []error
	for _, t := range live {
		if info, err := r.known.await(ctx, t, Ended); err != nil {
			left = append(left, fmt.Errorf("close task %v: %w: %s", t.info.ID, err, info.Problem))
		}
	}
	close(r.stop)
	r.keepers.Wait()
	r.release()
	r.guard.Release(len(left) > 0)
	return errors.Join(left...)
}
