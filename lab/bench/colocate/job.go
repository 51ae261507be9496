package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// again is how long after its end a job is started anew, as a batch system would.
const again = time.Second

// spec is what a best-effort job runs.
type spec struct {
	Name string
	// Args are its command; of a worker it begins with "".
	Args []string
	// Worker: it has progress and checkpoints in files of its directory. The others
	// make one task of about 15 s of CPU time after another, and what they did of one
	// is lost with a kill.
	Worker bool
}

// specs are the jobs of every run: work for the CPU alone, and work that also needs
// cache and memory bandwidth; each with what is soon saved and what is lost.
func specs() []spec {
	return []spec{
		{Name: "hash", Worker: true, Args: []string{"", "-worker", "-size", strconv.Itoa(1 << 20), "-checkpoint", "3s"}},
		{Name: "scan", Worker: true, Args: []string{"", "-worker", "-size", strconv.Itoa(64 << 20), "-checkpoint", "30s"}},
		{Name: "matrix", Args: []string{"stress-ng", "--quiet", "--cpu", "1", "--cpu-method", "matrixprod", "--cpu-ops", "16000"}},
		{Name: "stream", Args: []string{"stress-ng", "--quiet", "--stream", "1", "--stream-ops", "160"}},
	}
}

// job is a best-effort job in a group of its own.
type job struct {
	spec
	group *rig.Group
	dir   string
	stop  context.CancelFunc
	done  chan struct{}

	mu sync.Mutex
	// process is the one that runs; nil: none.
	process *rig.Process
	// began is the CPU time that the group had used when its task began.
	began time.Duration
	// lost is the work that kills have taken, kills how many there were.
	lost  float64
	kills int
	// failed is why it cannot be kept running.
	failed error
}

func newJob(h *rig.Host, dir string, s spec, weight int) (*job, error) {
	j := &job{spec: s, dir: filepath.Join(dir, s.Name)}
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", s.Name, err)
	}
	var err error
	if j.group, err = h.Group(s.Name, weight); err != nil {
		return nil, err
	}
	return j, errors.Join(j.group.Everywhere())
}

// start keeps the job running from its beginning on, until halt.
func (j *job) start(frozen bool) error {
	for _, name := range []string{doneFile, savedFile, progressFile} {
		if err := os.Remove(filepath.Join(j.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("start %s: %w", j.Name, err)
		}
	}
	j.lost, j.kills, j.failed = 0, 0, nil
	if err := j.group.Freeze(frozen); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	j.stop, j.done = stop, make(chan struct{})
	if err := j.launch(); err != nil {
		close(j.done)
		return err
	}
	go func() {
		defer close(j.done)
		j.keep(ctx)
	}()
	return nil
}

// launch starts the process.
func (j *job) launch() error {
	args := append([]string(nil), j.Args...)
	var err error
	if j.Worker {
		if args[0], err = os.Executable(); err != nil {
			return fmt.Errorf("start %s: %w", j.Name, err)
		}
		args = append(args, "-dir", j.dir)
	} else if args[0], err = rig.Lookup(args[0], args[0]); err != nil {
		return err
	}
	used, err := j.group.Used()
	if err != nil {
		return err
	}
	p, err := rig.Start(rig.Program{Args: args, Dir: j.dir, Log: filepath.Join(j.dir, "log"), Stop: syscall.SIGKILL}, j.group)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.process, j.began = p, used
	return nil
}

// keep starts the job again whenever it has ended, until ctx ends.
func (j *job) keep(ctx context.Context) {
	for {
		select {
		case <-j.process.Done():
		case <-ctx.Done():
			return
		}
		j.ended()
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
		if err := j.launch(); err != nil {
			j.mu.Lock()
			j.failed = err
			j.mu.Unlock()
			return
		}
	}
}

// ended counts what a kill has taken.
func (j *job) ended() {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.process.Err()
	j.process = nil
	if err == nil {
		return
	}
	j.kills++
	if j.Worker {
		if s, err := j.state(); err == nil {
			j.lost += s.Done - s.Saved
		}
		return
	}
	if used, err := j.group.Used(); err == nil {
		j.lost += (used - j.began).Seconds()
	}
}

// state is how far a worker is; one that never ran is at 0.
func (j *job) state() (s state, err error) {
	if err = read(filepath.Join(j.dir, doneFile), &s); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return s, err
}

// work returns what was done and not lost: steps of a worker, else seconds of CPU
// time. Only differences mean something.
func (j *job) work() (float64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return 0, j.failed
	}
	if j.Worker {
		s, err := j.state()
		if j.process == nil {
			return s.Saved, err
		}
		return s.Done, err
	}
	used, err := j.group.Used()
	return used.Seconds() - j.lost, err
}

// there says whether the job has a process.
func (j *job) there() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.process != nil
}

// atRisk is what a kill would take now, in seconds of CPU time.
func (j *job) atRisk() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	used, err := j.group.Used()
	if err != nil || j.process == nil {
		return 0
	}
	if s, err := j.state(); j.Worker && err == nil && s.Done > 0 {
		return (used - j.began).Seconds() * (s.Done - s.Saved) / s.Done
	}
	return (used - j.began).Seconds()
}

// toll returns how many kills there were, and what they took.
func (j *job) toll() (kills int, lost float64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kills, j.lost
}

// halt ends the job and leaves its group empty, running and without a quota.
func (j *job) halt(ctx context.Context) error {
	if j.stop == nil {
		return nil
	}
	j.stop()
	j.group.Kill()
	<-j.done
	// keep may just have started it again.
	j.group.Kill()
	if j.process != nil {
		<-j.process.Done()
	}
	j.stop = nil
	return errors.Join(j.group.Freeze(false), j.group.Free(ctx))
}

// close ends the job and removes its group.
func (j *job) close() error {
	err := j.halt(context.WithoutCancel(context.Background()))
	return errors.Join(err, j.group.Close())
}
