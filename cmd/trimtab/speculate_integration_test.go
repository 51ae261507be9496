//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator/cpuset"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/speculation"
)

// guests is a host on which real tasks run beside a service in a real control group, and
// a planner, the test, that tells it which.
type guests struct {
	*program
	group, freezer string
	bus            *natsbus.Bus

	mu       sync.Mutex
	machine  *speculation.Machine
	tasks    []speculation.Placement
	silent   bool
	tail     float64 // latency of the service, in seconds
	sequence uint64
}

func newGuests(t *testing.T) *guests {
	root, cpu, freezer := realGroups(t)
	g := &guests{group: ownGroup("trimtab-guests"), freezer: filepath.Dir(freezer), tail: 0.02}
	g.program = prepare(t, fixtureQuotas(t), "")
	before, _, _ := strings.Cut(g.text, "workloads:")
	g.text = strings.Replace(before, fmt.Sprintf("cgroup_root: %q", g.q.root), fmt.Sprintf("cgroup_root: %q, lock_dir: %q", root, filepath.Join(g.dir, "locks")), 1) + fmt.Sprintf(`
analyzer: {report_interval: 200ms, partitions: 1}
beside: {tasks: {user: nobody, cgroup: %s, programs: [/bin/sh], thresholds: {cpu: 100}, slack: 0, regular: {cpu: 1, memory: 1GiB}}}
workloads:
  - {name: hungry, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: %s/web, cpu: {min: 0.05, max: 0.9}}, mode: "off"}
`, g.group, filepath.Base(cpu))
	for _, dir := range []string{cpu, freezer} {
		web := filepath.Join(dir, "web")
		if err := os.Mkdir(web, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(web) })
	}
	service := exec.Command("sleep", "1000") // it waits for requests
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Process.Kill(); _ = service.Wait() })
	if err := os.WriteFile(filepath.Join(cpu, "web", "cgroup.procs"), []byte(strconv.Itoa(service.Process.Pid)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the groups of the classes stay, empty
		for _, group := range g.groups("") {
			for _, part := range []string{"oversubscribed", "regular", "."} {
				if err := os.Remove(filepath.Join(group, part)); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
		}
	})
	return g
}

// groups are those of the agent, or of a task, in all hierarchies.
func (g *guests) groups(below string) []string {
	all, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", g.group, below))
	if err != nil {
		g.Fatal(err)
	}
	return all
}

// plans lets the test answer each report with the list of tasks.
func (g *guests) plans() {
	g.Helper()
	g.until("an answer", func() error { _, _, err := g.get("/-/healthy"); return err })
	b, err := natsbus.Open(g.Context(), natsbus.Config{URL: "nats://" + g.nats, Source: "test"})
	if err != nil {
		g.Fatal(err)
	}
	g.bus = b
	stop, err := b.Subscribe(g.Context(), bus.Subscription{Kind: speculation.KindMachine, Handle: func(ctx context.Context, d bus.Delivery) error {
		g.mu.Lock()
		g.machine = d.Value.(*speculation.Machine)
		g.mu.Unlock()
		return g.answer(ctx)
	}})
	if err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.Context())
	done := make(chan struct{})
	go func() { // how the service stands
		defer close(done)
		for ctx.Err() == nil {
			g.mu.Lock()
			tail := g.tail
			g.mu.Unlock()
			_ = b.Publish(ctx, &colocation.Contributions{Workload: "hungry", Time: time.Now(), Window: 0.2, Load: 10, SLO: 0.1, Quantile: 0.99, Tail: &tail, Requests: 1000})
			time.Sleep(200 * time.Millisecond)
		}
	}()
	g.Cleanup(func() { cancel(); <-done; stop(); _ = b.Close() })
}

func (g *guests) answer(ctx context.Context) error {
	g.mu.Lock()
	if g.silent {
		g.mu.Unlock()
		return nil
	}
	g.sequence++
	p := &speculation.Placements{Pool: g.machine.Pool, Host: g.machine.Host, Epoch: 1, Sequence: g.sequence, Time: time.Now(), Life: g.machine.Life, Report: g.machine.Report, Lease: 12,
		Tasks: append([]speculation.Placement{}, g.tasks...)}
	g.mu.Unlock()
	return g.bus.Publish(ctx, p)
}

// place changes the list, and tells it.
func (g *guests) place(tasks ...speculation.Placement) {
	g.Helper()
	g.until("a report", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.machine == nil {
			return errors.New("none yet")
		}
		return nil
	})
	g.mu.Lock()
	g.tasks = tasks
	g.mu.Unlock()
	if err := g.answer(g.Context()); err != nil {
		g.Fatal(err)
	}
}

// becomes waits until the host tells a state of an attempt.
func (g *guests) becomes(p speculation.Placement, state speculation.AttemptState) (a speculation.Attempt) {
	g.Helper()
	g.until(fmt.Sprintf("%v to be %s", p.AttemptID, state), func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, a = range g.machine.Attempts {
			if a.AttemptID == p.AttemptID && a.State == state {
				return nil
			}
		}
		return fmt.Errorf("%+v, blocked: %q", g.machine.Attempts, g.machine.Blocked)
	})
	return a
}

// runsOn waits until a task is bound to so many CPUs, where they are of different cores.
func (g *guests) runsOn(p speculation.Placement, class string, cpus int) {
	g.Helper()
	file := filepath.Join("/sys/fs/cgroup/cpuset", g.group, class, leafOf(p), "cpuset.cpus")
	topology, err := new(cpuset.Machine).Topology()
	if _, none := os.Stat("/sys/fs/cgroup/cpuset/cgroup.procs"); none != nil || err != nil || len(topology) != runtime.NumCPU() || len(topology) < 2 {
		g.Logf("cores of %s are not looked at: %v, %v", p.Task, none, err)
		return
	}
	g.until("the cores of "+p.Task, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if set, err := cpuset.ParseSet(strings.TrimSpace(string(text))); err != nil || len(set) != cpus {
			return fmt.Errorf("it runs on %q, %v: want %d CPUs", text, err, cpus)
		}
		return nil
	})
}

func spins(name string) speculation.Placement {
	return speculation.Placement{AttemptID: speculation.AttemptID{Job: "job", Task: name, Attempt: 1}, Class: speculation.OversubscribedTask,
		Spec: speculation.TaskSpec{Command: []string{"/bin/sh", "-c", "id -u; while :; do :; done"}, Cores: 0.2, Memory: 64 << 20, Env: map[string]string{"PATH": "/usr/bin:/bin"}}}
}

func leafOf(p speculation.Placement) string { return fmt.Sprintf("%s@%s@%d", p.Job, p.Task, p.Attempt) }

// gone waits until nothing of a task is left in any class.
func (g *guests) gone(p speculation.Placement) {
	g.Helper()
	g.until("nothing of "+p.Task, func() error {
		if left := g.groups("*/" + leafOf(p)); len(left) > 0 {
			return fmt.Errorf("%v are there", left)
		}
		return nil
	})
}

func TestRealTasksRunBesideAServiceAreFrozenForItKilledAndEndWithTheirLease(t *testing.T) {
	t.Parallel()
	g := newGuests(t)
	g.run()
	g.plans()
	a, b := spins("a"), spins("b")
	g.place(a)
	g.becomes(a, speculation.AttemptRunning)
	if len(g.groups("oversubscribed/"+leafOf(a))) < 2 {
		t.Errorf("in %v", g.groups("*/*"))
	}
	g.runsOn(a, "oversubscribed", runtime.NumCPU()-1) // the service has one core, of the first class
	g.mu.Lock()
	g.tail = 0.5
	g.mu.Unlock()
	g.becomes(a, speculation.AttemptFrozen)
	state, err := os.ReadFile(filepath.Join(g.freezer, g.group, "oversubscribed", leafOf(a), "freezer.state"))
	if err != nil || strings.TrimSpace(string(state)) != "FROZEN" {
		t.Errorf("%q, %v", state, err)
	}
	g.mu.Lock()
	g.tail = 0.02
	g.mu.Unlock()
	a.Kill = "the job was cancelled"
	g.place(a)
	if end := g.becomes(a, speculation.AttemptEnded); end.Outcome != "killed" || end.Reason != a.Kill || len(end.LastLines) != 1 || end.LastLines[0] != "65534" {
		t.Errorf("%+v", end)
	}
	g.gone(a)
	// One with a grant starts whatever the service feels, and ends with its lease.
	b.Class = speculation.RegularTask
	g.place(b)
	g.becomes(b, speculation.AttemptRunning)
	if len(g.groups("regular/"+leafOf(b))) < 2 {
		t.Errorf("in %v", g.groups("*/*"))
	}
	g.runsOn(b, "regular", runtime.NumCPU())
	g.mu.Lock()
	g.silent = true
	g.mu.Unlock()
	if end := g.becomes(b, speculation.AttemptEnded); end.Outcome != "killed" || !strings.Contains(end.Reason, "lease") {
		t.Errorf("%+v", end)
	}
	g.gone(b)
	g.until("everything that the board of tasks shows", func() error {
		var panels []string // nothing is refused here
		for _, title := range []string{"Tasks", "Started", "Ended", "Verdicts", "Load of hosts", "CPUs for tasks", "What was done", "Lists", "Time of a decision"} {
			panels = append(panels, "speculate.json / "+title)
		}
		return g.boardHasMetrics("speculate.json", panels...)
	})
	g.stop()
	if left := g.groups("*/*@*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNothingOfATaskOutlivesTheAgentThatIsKilled(t *testing.T) {
	t.Parallel()
	g := newGuests(t)
	g.run()
	g.plans()
	a := spins("a")
	a.Class = speculation.RegularTask
	g.place(a)
	g.becomes(a, speculation.AttemptRunning)
	g.mu.Lock()
	life := g.machine.Life
	g.mu.Unlock()
	g.kill(false) // its watchdog kills the task
	g.gone(a)
	_ = g.bus.Close()
	g.run()
	g.mu.Lock()
	g.machine, g.tasks, g.sequence, g.silent = nil, nil, 0, true
	g.mu.Unlock()
	g.plans()
	if end := g.becomesInLife(a, speculation.AttemptEnded, life); end.Outcome != "lost" {
		t.Errorf("%+v", end)
	}
	// Without a watchdog either, whoever stops the unit cleans up.
	g.mu.Lock()
	g.silent = false
	g.mu.Unlock()
	b := spins("b")
	b.Class = speculation.RegularTask
	g.place(b)
	g.becomes(b, speculation.AttemptRunning)
	g.kill(true)
	if code, out := g.command("restore", "--storage.path", g.storage()); code != exitDone || !strings.Contains(out, "no speculative task is left") {
		t.Errorf("restore: %d\n%s", code, out)
	}
	g.gone(b)
}

// becomesInLife is becomes, in a life after another.
func (g *guests) becomesInLife(p speculation.Placement, state speculation.AttemptState, life uint64) speculation.Attempt {
	g.Helper()
	g.until("another life", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.machine == nil || g.machine.Life <= life {
			return errors.New("not yet")
		}
		return nil
	})
	return g.becomes(p, state)
}
