package beside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// TasksDir is where a host keeps the journal, the output and the learned state of its speculative
// tasks.
func TasksDir(storage string) string { return filepath.Join(storage, "speculate") }

// placeFile is the file that says where the tasks of a storage directory are, for programs that
// clean up.
const placeFile = "place.json"

// taskPlace is the content of placeFile.
type taskPlace struct {
	Root  string `json:"root"`
	Group string `json:"group"`
}

// SweepTasks kills the speculative tasks that a dead agent with this storage directory left behind,
// and reports whether it ever had any.
func SweepTasks(ctx context.Context, storage string) (bool, error) {
	dir := TasksDir(storage)
	b, err := hostfs.ReadFile(filepath.Join(dir, placeFile), hostfs.MaxRead)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	var at taskPlace
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if err == nil {
		err = task.Sweep(ctx, task.Config{Root: at.Root, Group: at.Group, Dir: dir})
	}
	if err != nil {
		return true, fmt.Errorf("sweep speculative tasks of %s: %w", dir, err)
	}
	return true, nil
}

// TasksPart runs speculative tasks on resources of this host that are reserved and idle. The
// planner chooses the tasks; this host decides how much they may use.
func (s *Host) TasksPart(cfg *config.Config) ([]supervise.Part, error) {
	if cfg.Beside.Tasks == nil {
		return nil, nil
	}
	if _, err := throttle.New(throttleConfig(cfg.Beside.Tasks)); err != nil {
		return nil, fmt.Errorf("set up speculative tasks: %w", err)
	}
	root, err := hostfs.CPURoot(cfg.Actuator.CgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("set up speculative tasks: %w", err)
	}
	dir, err := filepath.Abs(TasksDir(cfg.Storage.Path))
	if err != nil {
		return nil, fmt.Errorf("set up speculative tasks: %w", err)
	}
	// The shim and the watchdog are this program, with its hidden commands.
	c := task.Config{Root: root, Group: cfg.Beside.Tasks.Cgroup, Dir: dir, Shim: []string{"task-exec"},
		Watchdog: []string{"task-watchdog", "--root", root, "--group", cfg.Beside.Tasks.Cgroup, "--dir", dir},
		MaxTasks: cfg.Beside.Tasks.Tasks, Keep: 200 - cfg.Beside.Tasks.Tasks, MaxLease: cfg.Beside.Tasks.Lease}
	services := servicesBeside(cfg, s.Process.Host)
	key := supervise.KeyOf(c, *cfg.Beside.Tasks, services, cfg.Pool.Name, s.Process.Host, cfg.Actuator.Reserve, knobs.LockDir(cfg))
	return []supervise.Part{{Name: "speculate", Key: key, Start: func(ctx context.Context) (func() error, error) { return s.startSpeculate(ctx, cfg, c, services) }}}, nil
}

// throttleConfig converts the configuration section for the policy.
func throttleConfig(c *config.BesideTasks) throttle.Config {
	out := throttle.Config{Slack: c.Slack, Queue: c.Queue, MaxLease: 2 * c.Lease, CPU: 0,
		Resources: []throttle.Resource{{Name: trimtab.CPU, Ratio: c.Ratio.CPU}, {Name: trimtab.Memory, Ratio: c.Ratio.Memory, Stock: true}, {Name: "tasks", Ratio: 1, Stock: true}}}
	for _, t := range c.Thresholds.List() {
		out.Metrics = append(out.Metrics, throttle.Metric{Name: t.Name, Upper: t.Upper})
	}
	return out
}

// account returns the user and group of tasks as numbers, so that a later change of a name cannot
// give the tasks to another user. It returns an error for root.
func account(c *config.BesideTasks) (uid, gid string, err error) {
	u, err := user.Lookup(c.User)
	if err != nil {
		if _, bad := strconv.ParseUint(c.User, 10, 31); bad != nil {
			return "", "", fmt.Errorf("find user %q of speculative tasks: %w", c.User, err)
		}
		u = &user.User{Uid: c.User, Gid: c.User}
		if known, err := user.LookupId(c.User); err == nil {
			u = known
		}
	}
	gid = u.Gid
	if c.Group != "" {
		gid = c.Group
		if g, err := user.LookupGroup(c.Group); err == nil {
			gid = g.Gid
		}
		if _, err := strconv.ParseUint(gid, 10, 31); err != nil {
			return "", "", trimtab.Invalidf("group %q of speculative tasks is not known here", c.Group)
		}
	}
	if n, err := strconv.ParseUint(u.Uid, 10, 31); err != nil || n == 0 {
		return "", "", trimtab.Invalidf("user %q of speculative tasks is root", c.User)
	}
	return u.Uid, gid, nil
}

// missingCapabilities lists the capabilities that this process lacks to run tasks as another user
// and to end them. If that is unknown, the list is empty, and starting a task reports the error.
func missingCapabilities(status string) (lacks []string) {
	for line := range strings.Lines(status) {
		text, found := strings.CutPrefix(line, "CapEff:")
		effective, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if !found || err != nil {
			continue
		}
		for _, c := range []struct {
			name string
			bit  int
		}{{"CAP_KILL", 5}, {"CAP_SETGID", 6}, {"CAP_SETUID", 7}} { // linux/capability.h
			if effective&(1<<c.bit) == 0 {
				lacks = append(lacks, c.name)
			}
		}
	}
	return lacks
}

// startSpeculate opens the task runner. If this host cannot run tasks, it reports the reason and
// the other parts continue, since all hosts may have the same configuration file.
func (s *Host) startSpeculate(ctx context.Context, cfg *config.Config, c task.Config, services []signals.Service) (func() error, error) {
	s.Process.Ready.Set("speculate", "starting")
	c.Logger = s.Process.Logger
	h, err := s.openTasks(ctx, cfg, c, services)
	s.Process.Ready.Set("speculate", "")
	if err != nil {
		s.Process.Logger.Warn("no speculative task runs on this host", "cause", err)
		s.Process.Ready.Note("speculate", "no speculative task runs on this host: "+err.Error())
		return func() error { s.Process.Ready.Forget("speculate"); return nil }, nil
	}
	health := pipeline.NewHealth(pipeline.Work{Round: tellMachine, Every: speculation.KindMachine})
	b := health.Bus(s.Process.Bus)
	h.publish = func(ctx context.Context, m *speculation.Machine) error { return b.Publish(ctx, m) }
	stop := s.Process.Background(ctx, "speculate", s.Process.Working("speculate", health, func(ctx context.Context) error {
		end := h.listen(ctx, b)
		defer end()
		return h.run(ctx)
	}))
	return func() error {
		err := stop()
		ctx, cancel := s.Process.Ending.Within(20 * time.Second)
		defer cancel()
		return errors.Join(err, h.close(ctx))
	}, nil
}

// openTasks opens the runner, which kills the tasks of an earlier process, and then the other
// resources.
func (s *Host) openTasks(ctx context.Context, cfg *config.Config, c task.Config, services []signals.Service) (*taskHost, error) {
	uid, gid, err := account(cfg.Beside.Tasks)
	if err != nil {
		return nil, err
	}
	status, _ := os.ReadFile("/proc/self/status") // see missingCapabilities
	if lacks := missingCapabilities(string(status)); len(lacks) > 0 {
		return nil, fmt.Errorf("run tasks as user %s: this process lacks %s (a drop-in of its unit: docs/operations.md): %w", cfg.Beside.Tasks.User, strings.Join(lacks, ", "), trimtab.ErrUnsupported)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep tasks: %w", err)
	}
	place, err := json.Marshal(taskPlace{c.Root, c.Group})
	if err == nil {
		err = hostfs.ReplaceFile(filepath.Join(c.Dir, placeFile), place)
	}
	if err != nil {
		return nil, fmt.Errorf("keep tasks: %w", err)
	}
	life, err := nextLife(c.Dir, time.Now())
	if err != nil {
		return nil, err
	}
	runner, err := task.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	h, err := newTaskHost(cfg, s.Process.Host, life, runner, services)
	if err != nil {
		return nil, errors.Join(err, runner.Close(ctx))
	}
	h.dir, h.user, h.group = c.Dir, uid, gid
	h.account = openAccount(cfg, c, runner.Group(), s.Process.Logger)
	h.metrics, h.logger = s.Process.Metrics, s.Process.Logger
	h.loads.read = load.Reader{Groups: func() []string { return h.signals.Groups(c.Root) }}.Read
	if err := h.signals.Restore(c.Dir, h.policy); err != nil {
		s.Process.Logger.Warn("what was learned of speculative tasks is lost, and learned again", "err", err)
	}
	if cfg.Beside.Tasks.Mode == config.Responsiveness && len(services) > 0 {
		counter, err := supervise.Command(s.Counter, "perf-counter")
		if err == nil {
			err = h.signals.Open(s.Process.Host, c.Root, counter, s.Process.Logger)
		}
		if err != nil {
			return nil, errors.Join(err, h.close(ctx))
		}
		if h.pins, err = openPins(runner, c.Root, services); err != nil {
			h.signals.Lacks = append(h.signals.Lacks, "cores of their own for services: "+err.Error())
		}
		s.Process.Ready.Note("speculate", strings.Join(h.signals.Lacks, "; "))
	}
	return h, nil
}

// nextLife returns a number for this run of the agent that is higher than that of any earlier run,
// even if the clock was set back.
func nextLife(dir string, now time.Time) (uint64, error) {
	name := filepath.Join(dir, "life")
	var last uint64
	if b, err := hostfs.ReadFile(name, hostfs.MaxRead); err == nil {
		last, _ = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 53) // else the clock decides
	}
	life := max(last+1, uint64(max(0, now.UnixMicro())))
	if err := hostfs.ReplaceFile(name, strconv.AppendUint(nil, life, 10)); err != nil {
		return 0, fmt.Errorf("keep number of this life: %w", err)
	}
	return life, nil
}

// servicesBeside lists the services that have a group on this host.
func servicesBeside(cfg *config.Config, host string) (all []signals.Service) {
	pooled := cfg.Pooled()
	for i := range pooled.Workloads {
		w := &pooled.Workloads[i]
		if w.Class == trimtab.BestEffort || w.Knob.Cgroup == "" || !w.OnHost(host) {
			continue
		}
		one := signals.Service{Workload: w.Name, Path: w.Knob.Cgroup, SLO: w.SLO.Latency}
		if b, ok := w.Knob.BoundsOf(trimtab.CPU); ok {
			one.Cores = b.Max
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b signals.Service) int { return strings.Compare(a.Workload, b.Workload) })
	return all
}

// listen subscribes to the planner's lists and the services' reports. It retries while the bus
// fails. Without the bus, leases are not renewed and end.
func (h *taskHost) listen(ctx context.Context, b bus.Bus) (stop func()) {
	key := (&speculation.Placements{Pool: h.pool, Host: h.host}).Key()
	return agent.Listen(ctx, b, time.Second, h.logger,
		bus.Subscription{Kind: speculation.KindPlacements, Key: key, For: "speculate", Handle: func(_ context.Context, d bus.Delivery) error {
			if p, ok := d.Value.(*speculation.Placements); ok {
				h.inbox.put(p)
			}
			return nil
		}},
		bus.Subscription{Kind: colocation.KindContributions, For: "speculate", Handle: func(_ context.Context, d bus.Delivery) error {
			if c, ok := d.Value.(*colocation.Contributions); ok {
				h.signals.Hear(c)
			}
			return nil
		}})
}
