package beside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/speculation"
)

// fakeRunner runs nothing: it notes what it is asked. The real one is in the integration
// test of cmd/trimtab.
type fakeRunner struct {
	mu      sync.Mutex
	tasks   map[task.ID]task.Info
	specs   map[task.ID]task.Spec
	started []task.ID
	killed  map[task.ID]string
	pinned  map[task.ID]string
	broken  error // why nothing can be started
}

func (r *fakeRunner) Start(_ context.Context, s task.Spec, lease time.Duration) (task.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil || lease <= 0 {
		return task.Info{}, errors.Join(r.broken, s.Validate())
	}
	r.started = append(r.started, s.ID)
	r.specs[s.ID] = s
	r.tasks[s.ID] = task.Info{ID: s.ID, Class: s.Class, State: task.Running}
	return r.tasks[s.ID], nil
}

func (r *fakeRunner) change(id task.ID, how func(*task.Info)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, known := r.tasks[id]
	if !known {
		return trimtab.ErrStale
	}
	how(&i)
	r.tasks[id] = i
	return nil
}

func (r *fakeRunner) Renew(context.Context, time.Duration, ...task.ID) error { return nil }
func (r *fakeRunner) Freeze(_ context.Context, id task.ID) error {
	return r.change(id, func(i *task.Info) { i.State = task.Frozen })
}
func (r *fakeRunner) Thaw(_ context.Context, id task.ID) error {
	return r.change(id, func(i *task.Info) { i.State = task.Running })
}
func (r *fakeRunner) Relabel(_ context.Context, id task.ID, c task.Class) error {
	return r.change(id, func(i *task.Info) { i.Class = c })
}
func (r *fakeRunner) Pin(_ context.Context, id task.ID, cpus string) error {
	return r.change(id, func(*task.Info) { r.pinned[id] = cpus })
}
func (r *fakeRunner) Close(context.Context) error { return nil }
func (r *fakeRunner) Forget(id task.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, id)
	return nil
}

func (r *fakeRunner) Kill(_ context.Context, id task.ID, why string) (task.Info, error) {
	r.mu.Lock()
	r.killed[id] = why
	r.mu.Unlock()
	return task.Info{}, r.change(id, func(i *task.Info) { i.State, i.Outcome, i.Reason = task.Ended, task.Killed, why })
}

func (r *fakeRunner) List(context.Context) (all []task.Info, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.tasks {
		all = append(all, i)
	}
	return all, nil
}

// taskWorld is a host whose planner, clock and kernel are the test's.
type taskWorld struct {
	testing.TB
	*taskHost
	run      *fakeRunner
	now      time.Duration
	proc     string
	busy     int // percent of its CPUs, 2
	free     int // MiB of its 1000 MiB
	told     *speculation.Machine
	sequence uint64
}

func newTaskWorld(t testing.TB, section string) *taskWorld {
	t.Helper()
	w := &taskWorld{TB: t, now: 1000 * time.Second, proc: t.TempDir(), busy: 20, free: 900,
		run: &fakeRunner{tasks: map[task.ID]task.Info{}, specs: map[task.ID]task.Spec{}, killed: map[task.ID]string{}, pinned: map[task.ID]string{}}}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, "pool: {cpu: 4}\nspeculate: {user: nobody, programs: [/bin/*]%s}\n", section))
	if err != nil {
		t.Fatal(err)
	}
	if w.taskHost, err = newTaskHost(cfg, "h", 7, w.run, []signals.Service{{Workload: "shop", Cores: 1}}); err != nil {
		t.Fatal(err)
	}
	w.clock, w.dir, w.user = func() time.Duration { return w.now }, t.TempDir(), "65534"
	ticks := [2]int{1000, 1000}
	w.loads.read = func() load.Reading {
		ticks[0], ticks[1] = ticks[0]+w.busy, ticks[1]+100-w.busy
		for name, text := range map[string]string{"stat": fmt.Sprintf("cpu %d 0 0 %d 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0\n", ticks[0], ticks[1]),
			"meminfo": fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\n", 1000<<10, w.free<<10)} {
			if err := os.WriteFile(filepath.Join(w.proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := load.Reader{Proc: w.proc, Sys: w.proc}.Read()
		r.At = w.now
		return r
	}
	w.publish = func(_ context.Context, m *speculation.Machine) error {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		w.told = m
		return nil
	}
	w.adopt(t.Context())
	w.seconds(2)
	return w
}

// seconds lets time pass, a decision each, and what was begun end.
func (w *taskWorld) seconds(n int) {
	w.Helper()
	for range n {
		w.now += time.Second
		w.frame.Round(w.Context(), signals.Time(w.now))
		w.turns.running.Wait()
	}
}

// list gives a list that answers the last report, and lets it be carried out.
func (w *taskWorld) list(tasks ...speculation.Placement) {
	w.Helper()
	w.sequence++
	w.inbox.put(&speculation.Placements{Pool: "default", Host: "h", Epoch: 1, Sequence: w.sequence, Time: time.Now(), Life: w.told.Life, Report: w.told.Report, Lease: 30, Tasks: tasks})
	w.seconds(2)
}

func place(name string, command ...string) speculation.Placement {
	if len(command) == 0 {
		command = []string{"/bin/true"}
	}
	return speculation.Placement{AttemptID: speculation.AttemptID{Job: "j", Task: name, Attempt: 1}, Class: speculation.OversubscribedTask, Spec: speculation.TaskSpec{Command: command, Cores: 0.5, Memory: 64 << 20}}
}

// state is what was told last of an attempt.
func (w *taskWorld) state(p speculation.Placement) speculation.Attempt {
	for _, a := range w.told.Attempts {
		if a.AttemptID == p.AttemptID {
			return a
		}
	}
	return speculation.Attempt{}
}

func TestATaskOfAListStartsEndsIsToldAndForgotten(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	a := place("a", "/bin/sh", "-c", "exit 3")
	w.list(a)
	if s := w.state(a); s.State != speculation.AttemptRunning || w.told.Running != 1 || w.told.Sequence != 1 {
		t.Fatalf("%+v of %+v", s, w.told)
	}
	spec := w.run.specs[a.AttemptID]
	if spec.User != "65534" || spec.Dir != "/" || spec.Class != task.Oversubscribed || spec.Cores != trimtab.Units(0.5) || spec.Limits.Processes != 1024 {
		t.Errorf("%+v", spec)
	}
	if err := w.run.change(a.AttemptID, func(i *task.Info) {
		i.State, i.Outcome, i.Code, i.LastLines = task.Ended, task.Exited, 3, []string{"bye"}
	}); err != nil {
		t.Fatal(err)
	}
	w.seconds(1) // told at once
	if s := w.state(a); s.State != speculation.AttemptEnded || s.Outcome != "exited" || s.Code != 3 || len(s.LastLines) != 1 {
		t.Errorf("%+v", s)
	}
	w.list(a)
	w.list()
	w.list(a) // late, or of a planner that went back
	if s := w.state(a); s.State != speculation.AttemptRefused || len(w.run.started) != 1 || len(w.known.infos) != 0 {
		t.Errorf("%+v, started %v, known %v", s, w.run.started, w.known.infos)
	}
}

func TestWhatAHostDoesNotAllowIsRefusedAndNeverStarted(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP, queue: 1, tasks: 1, thresholds: {cpu: 0.1}")
	env := func(p speculation.Placement, name, value string) speculation.Placement {
		p.Spec.Env = map[string]string{name: value}
		return p
	}
	large := place("large")
	large.Spec.Memory = 500 << 20 // 40% of 1000 MiB may be promised
	small := place("small")
	small.Spec.Memory = 1
	first := place("first")
	all := []speculation.Placement{first, place("elsewhere", "/usr/sbin/x"), place("climbs", "/bin/../usr/sbin/x"), place("deeper", "/bin/a/b"), place("relative", "bin/sh"),
		place("nowhere", "sh"), env(place("dot", "sh"), "PATH", ".:bin"), env(place("loads"), "LD_PRELOAD", "/tmp/x"), large, small, place("full")}
	w.list(all...)
	for _, p := range all[1:] {
		if s := w.state(p); s.State != speculation.AttemptRefused || s.Reason == "" {
			t.Errorf("%s: %+v", p.Task, s)
		}
	}
	if s := w.state(first); s.State != speculation.AttemptQueued || len(w.run.started) > 0 || w.told.Waiting != 1 || w.told.Blocked == "" {
		t.Errorf("%+v, started %v, blocked %q", s, w.run.started, w.told.Blocked)
	}
}

func TestANameIsLookedForInItsPATHOnceAndCheckedAsAPath(t *testing.T) {
	c := &config.BesideTasks{Programs: []string{"/bin/sh"}}
	if got, err := allowedProgram(c, []string{"sh"}, map[string]string{"PATH": "bin:/nowhere:/bin:/usr/bin"}); err != nil || got != "/bin/sh" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := allowedProgram(c, []string{"sh"}, map[string]string{"PATH": "/usr/bin:/bin"}); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("/usr/bin/sh: %v", err)
	}
}

func TestNothingStartsOnALoadedHostAndAllThatWaitsWhenItIsIdle(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	w.busy = 95
	w.seconds(40)
	a, b := place("a"), place("b")
	b.Priority = 1
	w.list(a, b)
	if len(w.run.started) > 0 || w.told.Waiting != 2 || w.told.Blocked != "a metric is not under its threshold" || w.told.Load["cpu"] < 1.8 || w.told.Capacity["cpu"] != 2 {
		t.Fatalf("%v, %+v", w.run.started, w.told)
	}
	w.busy = 10
	for range 6 { // leases are renewed meanwhile
		w.list(a, b)
		w.seconds(5)
	}
	if len(w.run.started) != 2 {
		t.Errorf("%v", w.run.started)
	}
}

func TestOverTheMostTasksThatMayRunATaskWaitsAndIsNotRefused(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP, tasks: 2")
	all := []speculation.Placement{place("a"), place("b"), place("c")}
	for range 3 {
		w.list(all...)
		w.seconds(5)
	}
	if w.told.Running != 2 || w.told.Waiting != 1 || len(w.run.started) != 2 {
		t.Fatalf("started %v: %+v", w.run.started, w.told)
	}
	if err := w.run.change(w.run.started[0], func(i *task.Info) { i.State, i.Outcome = task.Ended, task.Exited }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.list(all...)
		w.seconds(5)
	}
	if len(w.run.started) != 3 || w.told.Running != 2 || w.told.Waiting != 0 {
		t.Errorf("started %v: %+v", w.run.started, w.told)
	}
}

func TestWithoutAWordOfThePlannerATaskEndsWithItsLease(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	a, waits := place("a"), place("waits")
	waits.Spec.Cores = 1.9
	w.list(a, waits)
	w.seconds(25)
	if len(w.run.killed) > 0 {
		t.Fatalf("%v", w.run.killed)
	}
	w.seconds(10)
	if s := w.state(a); s.State != speculation.AttemptEnded || s.Outcome != "killed" || !strings.Contains(s.Reason, "lease") {
		t.Errorf("%+v", s)
	}
	if s := w.state(waits); s.State != speculation.AttemptRefused || !strings.Contains(s.Reason, "lease") {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsToEndIsKilledAndWhatIsNotListedToo(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	a, b := place("a"), place("b")
	w.list(a, b)
	a.Kill = "the job was cancelled"
	w.list(a)
	w.seconds(1)
	if w.run.killed[a.AttemptID] != a.Kill || w.run.killed[b.AttemptID] != "the planner does not list it any more" {
		t.Errorf("%v", w.run.killed)
	}
	if s := w.state(a); s.State != speculation.AttemptEnded || s.Reason != a.Kill {
		t.Errorf("%+v", s)
	}
}

func TestATaskThatCannotBeStartedIsRefused(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	w.run.broken = errors.New("no cgroups left")
	a := place("a")
	w.list(a)
	w.seconds(1)
	if s := w.state(a); s.State != speculation.AttemptRefused || s.Reason != "no cgroups left" {
		t.Errorf("%+v", s)
	}
}

func TestAGrantCountsAsFarAsTheFileSays(t *testing.T) {
	a := place("a")
	a.Class = speculation.RegularTask
	w := newTaskWorld(t, ", mode: UP, thresholds: {cpu: 0.1}")
	w.list(a)
	if s := w.state(a); s.State != speculation.AttemptQueued || s.Class != speculation.OversubscribedTask {
		t.Errorf("without a word in the file: %+v", s)
	}
	w = newTaskWorld(t, ", mode: UP, thresholds: {cpu: 0.1}, regular: {cpu: 0.5, memory: 1GiB}")
	b := place("b")
	b.Class = speculation.RegularTask
	w.list(a, b)
	if s := w.state(a); s.State != speculation.AttemptRunning || s.Class != speculation.RegularTask || w.told.Regular != 1 {
		t.Errorf("%+v", s)
	}
	if s := w.state(b); s.State != speculation.AttemptQueued || s.Class != speculation.OversubscribedTask {
		t.Errorf("more than the file allows: %+v", s)
	}
}

func TestATaskThatRunsBecomesRegularAndGoesBack(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP, regular: {cpu: 1, memory: 1GiB}")
	a := place("a")
	w.list(a)
	for _, class := range []speculation.TaskClass{speculation.RegularTask, speculation.OversubscribedTask} {
		a.Class = class
		w.list(a)
		w.seconds(1)
		if s := w.state(a); s.State != speculation.AttemptRunning || s.Class != class {
			t.Errorf("%+v, want %s", s, class)
		}
	}
	if len(w.run.started) != 1 {
		t.Error(w.run.started)
	}
}

func TestAGrantedTaskTakesBackTheMemoryOfSpeculativeOnes(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP, regular: {cpu: 1, memory: 1GiB}")
	a, b := place("a"), place("b")
	w.list(a)
	w.free = 32
	w.seconds(2)
	b.Class = speculation.RegularTask
	w.list(a, b)
	w.seconds(2)
	if w.run.killed[a.AttemptID] != "regular tasks ask for what it holds" {
		t.Errorf("%v", w.run.killed)
	}
	if s := w.state(b); s.State != speculation.AttemptRunning {
		t.Errorf("%+v", s)
	}
}

func TestWhatEndedInAFormerLifeIsToldAndNotStartedAgain(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	a := place("a")
	w.run.tasks[a.AttemptID] = task.Info{ID: a.AttemptID, Class: task.Oversubscribed, State: task.Ended, Outcome: task.Lost, Reason: "the agent that started it died"}
	w.adopt(t.Context())
	w.seconds(1)
	w.list(a)
	if s := w.state(a); s.State != speculation.AttemptEnded || s.Outcome != "lost" || len(w.run.started) > 0 {
		t.Errorf("%+v", s)
	}
	w.list()
	if len(w.told.Attempts) != 0 || len(w.run.tasks) != 0 {
		t.Errorf("%+v", w.told)
	}
}

func TestALifeIsHigherThanAnyBeforeWhateverTheClockSays(t *testing.T) {
	dir := t.TempDir()
	var last uint64
	for _, at := range []time.Time{time.Unix(1_700_000_000, 0), time.Unix(1_600_000_000, 0), time.Unix(-5, 0), time.Unix(1_800_000_000, 0)} {
		life, err := nextLife(dir, at)
		if err != nil || life <= last {
			t.Errorf("%d after %d, %v", life, last, err)
		}
		last = life
	}
}

func TestTasksAreNotRoots(t *testing.T) {
	if _, _, err := account(&config.BesideTasks{User: "0"}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
	if uid, gid, err := account(&config.BesideTasks{User: "nobody"}); err != nil || uid == "0" || gid == "" {
		t.Errorf("%s, %s, %v", uid, gid, err)
	}
	if _, _, err := account(&config.BesideTasks{User: "there-is-none"}); err == nil {
		t.Error("no error")
	}
	if _, _, err := account(&config.BesideTasks{User: "nobody", Group: "there-is-none"}); err == nil {
		t.Error("no error")
	}
}

func TestWhatAnAttemptIsCalledIsReadBack(t *testing.T) {
	for _, id := range []task.ID{{Job: "a.b", Task: "c-1", Attempt: 12}, {Job: "x", Task: "x", Attempt: 1}} {
		if got, ok := parseAttempt(id.String()); !ok || got != id {
			t.Errorf("%v: %v, %v", id, got, ok)
		}
	}
	for _, bad := range []string{"", "a", "a/b", "a/b#", "a/b#0", "a/b#x", "#1", "/#1"} {
		if got, ok := parseAttempt(bad); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestTheCapabilitiesThatAreMissingAreNamed(t *testing.T) {
	for status, want := range map[string]string{"CapEff:\t000001ffffffffff\n": "[]", "CapInh:\t0\nCapEff:\t0000000000000000\n": "[CAP_KILL CAP_SETGID CAP_SETUID]", "CapEff: 00000000000000c0\n": "[CAP_KILL]", "CapEff: x\n": "[]", "": "[]"} {
		if got := fmt.Sprint(missingCapabilities(status)); got != want {
			t.Errorf("%q: %s, want %s", status, got, want)
		}
	}
}

func TestHowActiveATaskIsIsWhatItsGroupUsedSinceTheLastTick(t *testing.T) {
	w := newTaskWorld(t, ", mode: UP")
	a := place("a")
	w.list(a)
	used := func(cpu time.Duration) float64 {
		if err := w.run.change(a.AttemptID, func(i *task.Info) { i.CPU = &cpu }); err != nil {
			t.Fatal(err)
		}
		w.seconds(1)
		w.now += time.Second
		more := cpu + 500*time.Millisecond
		i := w.known.infos[a.AttemptID]
		i.CPU = &more
		w.known.infos[a.AttemptID] = i
		return w.known.activity(w.now, a.AttemptID)
	}
	if got := used(3 * time.Second); got != 0.5 {
		t.Errorf("%v cores", got)
	}
	less := time.Second
	i := w.known.infos[a.AttemptID]
	i.CPU = &less
	w.known.infos[a.AttemptID] = i
	if got := w.known.activity(w.now+time.Second, a.AttemptID); got == got {
		t.Errorf("%v cores in another group", got)
	}
}

func TestOfATaskThatRunsFewLastLinesAreTold(t *testing.T) {
	long := strings.Repeat("x", 600)
	for _, c := range []struct{ lines, want []string }{
		{nil, nil}, {[]string{"a", "b"}, []string{"a", "b"}}, {[]string{"1", "2", "3", "4", "5", "6"}, []string{"2", "3", "4", "5", "6"}},
		{[]string{long, long, "end"}, []string{long, "end"}}, {[]string{"a", long + long}, nil},
	} {
		if got := fewLines(c.lines); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%d lines of %d", len(got), len(c.lines))
		}
	}
}
