package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Supervisor configures the workers to run.
type Supervisor struct {
	// Dir is created if missing. Only one supervisor at a time may serve it.
	Dir string
	// Command is the worker's program and arguments.
	Command []string
	// Env is added to the supervisor's own environment.
	Env []string
	// Min and Max bound the number of workers, 0 <= Min <= Max, Max > 0.
	Min, Max int
	// Start is the initial number of workers if workers.max is missing; 0: Max.
	Start int
	// Grace is the time between SIGTERM and SIGKILL; 0: 5 s.
	Grace time.Duration
	// Poll is how often workers.max is read; 0: 50 ms.
	Poll time.Duration
	// Backoff is the pause before the first restart after a crash, which then
	// doubles up to a hundred times itself; 0: 200 ms.
	Backoff time.Duration
	// Output gets what the workers print; nil: the supervisor's stderr.
	Output io.Writer
	// Logger may be nil.
	Logger *slog.Logger
}

func (c *Supervisor) defaults() error {
	if c.Dir == "" || len(c.Command) == 0 {
		return trimtab.Invalidf("supervise: directory %q, command %q: none may be empty", c.Dir, c.Command)
	}
	if c.Min < 0 || c.Max < 1 || c.Min > c.Max || c.Max > MaxWorkers || c.Start < 0 {
		return trimtab.Invalidf("supervise: %d to %d workers, %d at the start", c.Min, c.Max, c.Start)
	}
	if c.Start == 0 {
		c.Start = c.Max
	}
	if c.Grace <= 0 {
		c.Grace = 5 * time.Second
	}
	if c.Poll <= 0 {
		c.Poll = 50 * time.Millisecond
	}
	if c.Backoff <= 0 {
		c.Backoff = 200 * time.Millisecond
	}
	if c.Output == nil {
		c.Output = os.Stderr
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// supervisor is the running state; one goroutine owns it.
type supervisor struct {
	Supervisor
	root    *hostfs.Root
	workers []*worker
	ended   chan ended
	last    string
	want    int
	problem string
	// since is when this process was started, in clock ticks since the boot; 0: unknown.
	since uint64
}

// worker is one slot for a worker process.
type worker struct {
	index   int
	cmd     *exec.Cmd
	since   time.Duration
	started time.Time
	// killAt is when SIGKILL follows SIGTERM; 0: the worker was not told to stop.
	killAt  time.Duration
	crashes int
	// startAt is when a crashed worker is started again.
	startAt time.Duration
}

type ended struct {
	index int
	err   error
}

// Supervise runs workers until ctx ends, then stops them all and returns nil.
// An error means that it could not begin.
func Supervise(ctx context.Context, c Supervisor) error {
	if err := c.defaults(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	lock, err := hostfs.AcquireLock(ctx, c.Dir, 0)
	if err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	defer lock.Close()
	if err := c.prepare(); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	root, err := hostfs.OpenRoot(c.Dir)
	if err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	defer root.Close()
	s := &supervisor{Supervisor: c, root: root, ended: make(chan ended), want: c.Start}
	s.since, _, _ = started(os.Getpid())
	// The kernel sends the workers' death signal when the thread that started them ends: keep
	// this one for as long as the function runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.run(ctx)
	return nil
}

// prepare writes workers.max unless a valid one exists.
func (c *Supervisor) prepare() error {
	name := filepath.Join(c.Dir, MaxFile)
	if b, err := hostfs.ReadFile(name, hostfs.MaxRead); err == nil {
		if _, err := ParseMax(string(b)); err == nil {
			return nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, []byte(formatMax(trimtab.Units(float64(c.Start)))), 0o644)
}

func (s *supervisor) run(ctx context.Context) {
	poll := time.NewTicker(s.Poll)
	defer poll.Stop()
	for ctx.Err() == nil {
		s.look()
		s.match()
		s.publish()
		select {
		case <-ctx.Done():
		case e := <-s.ended:
			s.reap(e)
		case <-poll.C:
		}
	}
	s.want = 0
	for s.match(); s.running() > 0; s.match() {
		select {
		case e := <-s.ended:
			s.reap(e)
		case <-poll.C:
		}
	}
	s.publish()
}

// look reads workers.max. An unreadable file changes nothing.
func (s *supervisor) look() {
	text, err := s.root.Read(MaxFile)
	var v trimtab.Amount
	if err == nil {
		v, err = ParseMax(text)
	}
	if err != nil {
		s.problem = err.Error()
		return
	}
	s.problem = ""
	want := s.Max
	if !v.Unlimited {
		want = min(max(int(v.Value), s.Min), s.Max)
		if want != int(v.Value) {
			s.problem = fmt.Sprintf("%v is outside of %d to %d", v, s.Min, s.Max)
		}
	}
	s.want = want
}

// match starts missing workers from the lowest index, and stops surplus ones from the highest.
func (s *supervisor) match() {
	now := hostfs.BootTime()
	for len(s.workers) < s.want {
		s.workers = append(s.workers, &worker{index: len(s.workers)})
	}
	for _, w := range s.workers {
		wanted := w.index < s.want
		switch {
		case wanted && w.cmd == nil && now >= w.startAt:
			s.start(w, now)
		case !wanted && w.cmd != nil && w.killAt == 0:
			w.killAt = now + s.Grace
			w.signal(syscall.SIGTERM)
		case w.cmd != nil && w.killAt != 0 && now >= w.killAt:
			w.signal(syscall.SIGKILL)
		}
	}
	s.workers = slices.DeleteFunc(s.workers, func(w *worker) bool { return w.index >= s.want && w.cmd == nil })
}

func (s *supervisor) start(w *worker, now time.Duration) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env = append(append(os.Environ(), s.Env...), "TRIMTAB_WORKER="+strconv.Itoa(w.index))
	cmd.Stdout, cmd.Stderr = s.Output, s.Output
	cmd.WaitDelay = time.Second
	// A process group of its own, so that the worker's children get its signals too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.crashed(w, now, err)
		return
	}
	w.cmd, w.since, w.started, w.killAt = cmd, now, time.Now(), 0
	index := w.index
	go func() { s.ended <- ended{index, cmd.Wait()} }()
}

// signal sends a signal to the worker's process group.
func (w *worker) signal(sig syscall.Signal) {
	// On an error the worker has just ended; reap will notice.
	_ = syscall.Kill(-w.cmd.Process.Pid, sig)
}

func (s *supervisor) reap(e ended) {
	for _, w := range s.workers {
		if w.index != e.index {
			continue
		}
		// Ends processes that the worker left in its group.
		w.signal(syscall.SIGKILL)
		stopped := w.killAt != 0
		w.cmd, w.killAt = nil, 0
		if now := hostfs.BootTime(); !stopped {
			if now-w.since > 100*s.Backoff {
				w.crashes = 0
			}
			s.crashed(w, now, e.err)
		}
	}
}

// crashed delays the next start, twice as long each time.
func (s *supervisor) crashed(w *worker, now time.Duration, err error) {
	w.startAt = now + min(s.Backoff<<min(w.crashes, 10), 100*s.Backoff)
	w.crashes++
	s.Logger.Warn("worker ended", "index", w.index, "crashes", w.crashes, "err", err)
}

func (s *supervisor) running() int {
	n := 0
	for _, w := range s.workers {
		if w.cmd != nil {
			n++
		}
	}
	return n
}

// publish writes workers.current when it changed.
func (s *supervisor) publish() {
	state := State{Supervisor: os.Getpid(), Start: s.since, Want: s.want, Problem: s.problem, Workers: []Worker{}}
	for _, w := range s.workers {
		v := Worker{Index: w.index, Crashes: w.crashes, Stopping: w.killAt != 0}
		if w.cmd != nil {
			v.PID, v.Since = w.cmd.Process.Pid, w.started
		}
		state.Workers = append(state.Workers, v)
	}
	if text := fmt.Sprint(state); text != s.last {
		if err := state.write(s.Dir); err != nil {
			s.Logger.Error("state", "err", err)
			return
		}
		s.last = text
	}
}
