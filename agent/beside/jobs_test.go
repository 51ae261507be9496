package beside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
)

// jobWorld is a host with a service and a tree of groups, which are plain files, and a
// clock of its own for what is heard.
type jobWorld struct {
	*jobHost
	t    testing.TB
	root string
	now  time.Time
	cfg  *config.Config
	// unending is the instance that was killed and does not end, as the actuator says it
	// (its own tests have a real one); "": none.
	unending string
	// fleet tells that there are other hosts.
	fleet bool
}

const jobFile = `
pool: {cpu: 4}
actuator: {cgroup_root: %q, lock_dir: %q}
beside: {jobs: {mode: %s, period: 100ms, max_age: 1s, capacity: {cpu: 3}, start: {cpu: 0.5}, step: {cpu: 0.5}}}
workloads:
  - {name: web, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: web, cpu: {min: 1}}, mode: "off"}
  - {name: batch, class: best-effort, knob: {cgroup: batch/*}, predict: {kind: data-parallel}, progress: {file: %s}}
`

// clocked is an actuator whose holdings are of the clock of the test.
type clocked struct {
	*actuator.Actuator
	world *jobWorld
}

func (c clocked) Holding() *trimtab.Holding {
	h := c.Actuator.Holding()
	h.Time = c.world.now
	for i := range h.Targets {
		if t := &h.Targets[i]; t.Resource == alive && t.Instance != "" && t.Instance == c.world.unending {
			there := trimtab.Units(1)
			t.Now, t.Effective, t.Problem = trimtab.Units(0), &there, ""
		}
	}
	return h
}

// group makes a group as version 2 has it.
func (w *jobWorld) group(name string) {
	w.t.Helper()
	dir := filepath.Join(w.root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for file, text := range map[string]string{"cpu.max": "max 100000\n", "cgroup.freeze": "0\n", "cgroup.procs": "", "cgroup.events": "populated 1\nfrozen 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// newJobWorld is a host with so many jobs.
func newJobWorld(t testing.TB, mode string, n int) *jobWorld {
	t.Helper()
	return newJobWorldWith(t, mode, n, "")
}

// newJobWorldWith is one where jobs have more than CPU time, as ", memory: 1GiB" says.
func newJobWorldWith(t testing.TB, mode string, n int, capacity string) *jobWorld {
	t.Helper()
	w := &jobWorld{t: t, root: t.TempDir(), now: time.Now()}
	w.group("web")
	for i := range n {
		w.group(fmt.Sprintf("batch/%d", i))
	}
	w.open(fmt.Sprintf(strings.Replace(jobFile, "capacity: {cpu: 3}", "capacity: {cpu: 3"+capacity+"}", 1), w.root, t.TempDir(), mode, filepath.Join(w.root, "progress-*")), kinds.All(), machine{})
	return w
}

// open opens the actuator of the jobs, as the file says it.
func (w *jobWorld) open(file string, kinds []actuator.Kind, m machine) {
	t := w.t
	t.Helper()
	var err error
	if w.cfg, err = config.Parse("trimtab.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	own, err := jobKnobsOf(kinds, w.cfg, "h", m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	registry, err := jobs.Open(dir, jobs.Config{Root: w.root, Reserved: w.cfg.ServiceGroups(), Predictions: config.Predictions()})
	if err != nil {
		t.Fatal(err)
	}
	c := actuator.Config{Host: "h", Pool: colocation.JobsPool("default"), Dir: dir, Reopen: actuator.AnyOf(kinds), Shared: true, LockDir: w.cfg.Actuator.LockDir}
	if c.Targets, c.Finders, err = knobs.OpenAll(kinds, own.all); err != nil {
		t.Fatal(err)
	}
	found, err := own.finders(kinds, registry)
	if err != nil {
		t.Fatal(err)
	}
	c.Finders = append(c.Finders, found...)
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	if w.jobHost, err = newJobHost(w.cfg, "h", clocked{a, w}, registry, own, servicesOf(w.cfg, "h", w.fleet, kinds)); err != nil {
		t.Fatal(err)
	}
}

// hear lets the service tell its tail latency, in ms, and its share of the most load.
func (w *jobWorld) hear(tail, load float64) {
	limit, slack := 0.85, 0.1
	seconds := tail / 1000
	w.jobHost.reports.hear(w.now, &colocation.Contributions{
		Workload: "web", Time: w.now, Window: 1, Load: load * 1000, MaxLoad: 1000, SLO: 0.1, Quantile: 0.99, Tail: &seconds, Requests: 1000, Levels: 9,
		Servpods: []colocation.Servpod{{Component: "web", Host: "h", Contribution: 1, LoadLimit: &limit, Origin: colocation.FromHistory, SlackLimit: &slack, SlackOrigin: colocation.FromSearch}},
	})
}

// pass lets so many periods go by, before each of which the service tells how it is.
func (w *jobWorld) pass(periods int, tail, load float64) {
	for range periods {
		w.now = w.now.Add(w.period)
		w.hear(tail, load)
		w.frame.Round(w.t.Context(), w.now)
	}
}

// silence lets periods go by in which nothing is heard.
func (w *jobWorld) silence(periods int) {
	for range periods {
		w.now = w.now.Add(w.period)
		w.frame.Round(w.t.Context(), w.now)
	}
}

// read returns a file of a job's group.
func (w *jobWorld) read(job int, file string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.root, fmt.Sprintf("batch/%d", job), file))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// states counts the jobs by what they do.
func (w *jobWorld) states() map[string]int {
	out := map[string]int{}
	for _, j := range w.Colocation().Jobs {
		out[j.State]++
	}
	return out
}

// sum is what the running jobs have together by the files.
func (w *jobWorld) sum(n int) (cores float64) {
	for i := range n {
		var quota, period float64
		if _, err := fmt.Sscan(w.read(i, "cpu.max"), &quota, &period); err != nil {
			w.t.Fatalf("job %d: cpu.max %q", i, w.read(i, "cpu.max"))
		}
		cores += quota / period
	}
	return cores
}

func TestJobsThatAreNotStartedYetWaitFrozenWithTheLeast(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(1, 99, 0.5) // little slack: nothing grows
	if got := w.states(); got["suspended"] != 2 {
		t.Errorf("%v", got)
	}
	for i := range 2 {
		if w.read(i, "cgroup.freeze") != "1" || w.read(i, "cpu.max") != "1000 100000" {
			t.Errorf("job %d: freeze %s, cpu.max %s", i, w.read(i, "cgroup.freeze"), w.read(i, "cpu.max"))
		}
	}
}

func TestJobsGrowWithTheSlackAndNeverBeyondTheCapacity(t *testing.T) {
	w := newJobWorld(t, "act", 3)
	for range 60 {
		w.pass(1, 20, 0.4)
		if sum := w.sum(3); sum > 3.001 && true {
			t.Fatalf("jobs have %v cores together, of 3", sum)
		}
	}
	if got := w.states(); got["running"] != 3 || w.sum(3) < 2.9 {
		t.Errorf("%v with %v cores\n%+v", got, w.sum(3), w.Colocation().Last)
	}
	if w.read(0, "cgroup.freeze") != "0" {
		t.Error("a running job is frozen")
	}
}

func TestOverItsLoadlimitAllAreSuspendedAndTheyResumeBelowIt(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(20, 20, 0.4)
	w.pass(1, 20, 0.9)
	if got := w.states(); got["suspended"] != 2 || w.read(0, "cgroup.freeze") != "1" || w.read(0, "cpu.max") != "1000 100000" {
		t.Errorf("%v, freeze %s, cpu.max %s", got, w.read(0, "cgroup.freeze"), w.read(0, "cpu.max"))
	}
	last := w.Colocation().Last
	if last.Verb != "SuspendBE" || last.By != "web" || !strings.Contains(last.Why, "0.85") {
		t.Errorf("%+v", last)
	}
	w.pass(40, 20, 0.4)
	if got := w.states(); got["running"] != 2 || w.read(0, "cgroup.freeze") != "0" {
		t.Errorf("%v %+v", got, w.Colocation().Last)
	}
}

func TestWhereNobodyCanBeKilledAMissedSLOFreezes(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(20, 20, 0.4)
	w.pass(1, 130, 0.6)
	c := w.Colocation()
	if c.Last.Verb != "StopBE" || w.states()["running"] != 0 || c.Kills != 0 || !strings.Contains(c.Last.Why, "misses its SLO") {
		t.Errorf("%v %+v", w.states(), c.Last)
	}
}

func TestWhatIsNotHeardStopsGrowthAndThenSuspends(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(8, 20, 0.4)
	before := w.sum(2)
	if before < 0.5 {
		t.Fatalf("%v cores", before)
	}
	w.silence(14) // 1.4 s of 1 s
	if sum := w.sum(2); sum > before+1.1 || w.Colocation().Last.Verb != "DisallowBEGrowth" {
		t.Errorf("%v cores, before %v: %+v", sum, before, w.Colocation().Last)
	}
	if s := w.Colocation().Services[0]; !s.Stale || s.Slack != nil {
		t.Errorf("%+v", s)
	}
	w.silence(8)
	if got := w.states(); got["suspended"] != 2 || w.Colocation().Last.Verb != "SuspendBE" {
		t.Errorf("%v %+v", got, w.Colocation().Last)
	}
}

func TestAJobThatWasKilledAndDoesNotEndIsShownAndHoldsWhatItHas(t *testing.T) {
	w := newJobWorld(t, "act", 2)
	w.pass(20, 20, 0.4)
	w.unending = "0"
	w.pass(60, 20, 0.4)
	if got := w.states(); got["does not end"] != 1 || got["running"] != 1 || w.read(0, "cgroup.freeze") != "1" || w.read(0, "cpu.max") != "1000 100000" {
		t.Errorf("%v, freeze %s, cpu.max %s", got, w.read(0, "cgroup.freeze"), w.read(0, "cpu.max"))
	}
	c := w.Colocation()
	if w.sum(2) > 3.001 || c.Capacity["cpu"] != 2.99 {
		t.Errorf("%v cores in the files, others may have %v of 3", w.sum(2), c.Capacity["cpu"])
	}
	w.unending = ""
	w.pass(20, 20, 0.4)
	if got := w.states(); got["does not end"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestInModeRecommendNothingIsTurnedAndTheDecisionIsShown(t *testing.T) {
	w := newJobWorld(t, "recommend", 2)
	w.pass(1, 130, 0.6)
	c := w.Colocation()
	if w.read(0, "cpu.max") != "max 100000" || w.read(0, "cgroup.freeze") != "0" {
		t.Error("something was written")
	}
	if c.Last.Verb != "StopBE" || len(c.Last.Changes) == 0 || c.Last.Changes[0].Result != "recommended" || c.Kills != 0 {
		t.Errorf("%+v", c.Last)
	}
}

func TestTheEndRestoresTheLeastAndNotMoreThanThat(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	w.pass(20, 20, 0.4)
	if err := w.actuator.(clocked).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.read(0, "cpu.max") != "1000 100000" || w.read(0, "cgroup.freeze") != "0" {
		t.Errorf("cpu.max %s, freeze %s", w.read(0, "cpu.max"), w.read(0, "cgroup.freeze"))
	}
}

// unlimitedMemory makes the group of a job that uses 256 MiB, as it was found.
func (w *jobWorld) unlimitedMemory(job int) {
	w.t.Helper()
	name := fmt.Sprintf("batch/%d", job)
	w.group(name)
	for file, text := range map[string]string{"memory.max": "max\n", "memory.current": "268435456\n", "memory.stat": "inactive_file 0\n", "memory.events": "oom_kill 0\n"} {
		if err := os.WriteFile(filepath.Join(w.root, name, file), []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAJobRunsInAnIdleGroupAndGetsItsWeightBack(t *testing.T) {
	w := newJobWorldWith(t, "act", 0, "")
	w.group("batch/0")
	for file, text := range map[string]string{"cpu.weight": "70\n", "cpu.idle": "0\n"} {
		if err := os.WriteFile(filepath.Join(w.root, "batch/0", file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(5, 20, 0.4)
	if got := w.read(0, "cpu.idle"); got != "1" {
		t.Errorf("cpu.idle is %q", got)
	}
	if err := w.actuator.(clocked).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if idle, weight := w.read(0, "cpu.idle"), w.read(0, "cpu.weight"); idle != "0" || weight != "70" {
		t.Errorf("after the end cpu.idle is %q, cpu.weight %q", idle, weight)
	}
}

func TestJobsWithoutALimitOfMemoryStartOneAfterTheOther(t *testing.T) {
	w := newJobWorldWith(t, "act", 0, ", memory: 1GiB")
	w.unlimitedMemory(0)
	w.unlimitedMemory(1)
	w.pass(60, 20, 0.4)
	for job := range 2 {
		if w.read(job, "cgroup.freeze") != "0" || w.read(job, "memory.max") == "max" {
			t.Errorf("job %d: freeze %s, memory.max %s: %+v", job, w.read(job, "cgroup.freeze"), w.read(job, "memory.max"), w.Colocation().Last)
		}
	}
}

func TestTheEndLeavesNoMoreMemoryAndCoresThanTheLeastAndWhatIsInUse(t *testing.T) {
	w := newJobWorldWith(t, "act", 0, ", memory: 1GiB")
	w.unlimitedMemory(0)
	w.pass(30, 20, 0.4)
	before := w.read(0, "memory.max")
	if before == "max" {
		t.Fatalf("its memory was never limited: %+v", w.Colocation().Jobs)
	}
	if err := w.actuator.(clocked).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.read(0, "memory.max"); got != "301989888" { // 256 MiB and an eighth
		t.Errorf("memory.max %s, before the end %s", got, before)
	}
	for resource, want := range map[string]bool{trimtab.Memory: true, trimtab.Cores: true, trimtab.LLC: false} {
		target := jobTarget(w.cfg, w.cfg.Jobs()[0], w.root, resource)
		if (target.Rest != nil && target.Rest.Value == target.Min) != want {
			t.Errorf("%s: rest %v", resource, target.Rest)
		}
	}
}

func TestAJobThatRegistersItselfIsRunAndOneThatFinishesIsLetGo(t *testing.T) {
	w := newJobWorld(t, "act", 0)
	w.group("train/a")
	if _, err := w.Register([]byte(`{"name": "a", "cgroup": "web"}`)); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error("the group of a service was registered:", err)
	}
	id, err := w.Register([]byte(`{"name": "a", "cgroup": "train/a", "predict": "training"}`))
	if err != nil || id != "jobs/a" {
		t.Fatal(id, err)
	}
	w.pass(10, 20, 0.4)
	if got := w.states(); got["running"] != 1 {
		t.Fatalf("%v %+v", got, w.Colocation())
	}
	for i := range 5 {
		w.pass(1, 20, 0.4)
		if err := w.Report("a", fmt.Appendf(nil, `{"step": %d, "steps": 100}`, i*10)); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(1, 20, 0.4)
	j := w.Colocation().Jobs[0]
	if !j.Registered || !j.Predictable || j.Done == nil || *j.Done != 0.4 || j.Loss == nil || j.Attained <= 0 {
		b, _ := json.Marshal(j)
		t.Errorf("%s", b)
	}
	for id, want := range map[string]error{"nobody": console.ErrNoJob, "a": trimtab.ErrInvalid} {
		if err := w.Report(id, []byte(`{"done": 7}`)); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := w.Report("a", []byte(`{"finished": true}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(2, 20, 0.4)
	if n := len(w.Colocation().Jobs); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

func TestAFileTellsTheProgressOfAJob(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	w.pass(10, 20, 0.4)
	if err := os.WriteFile(filepath.Join(w.root, "progress-0"), []byte("{\"done\": 0.1}\n{\"done\": 0.25}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		w.pass(1, 20, 0.4)
		if j := w.Colocation().Jobs[0]; j.Done != nil && j.Predictable {
			if *j.Done != 0.25 {
				t.Errorf("%+v", j)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("never read")
}

// The file names no host of web: in a fleet it is where its group is.
func TestInAFleetAServiceCountsOnTheHostsThatHaveItsGroup(t *testing.T) {
	w := &jobWorld{t: t, root: t.TempDir(), now: time.Now(), fleet: true}
	w.group("batch/0")
	w.open(fmt.Sprintf(jobFile, w.root, t.TempDir(), "act", filepath.Join(w.root, "progress-*")), kinds.All(), machine{})
	tick := func() *view.Colocation {
		w.now = w.now.Add(lookEvery)
		w.frame.Round(t.Context(), w.now)
		return w.Colocation()
	}
	if c := tick(); len(c.Services) != 0 || c.Last.Verb != "AllowBEGrowth" {
		t.Errorf("without the group: %+v, %+v", c.Services, c.Last)
	}
	w.group("web")
	if c := tick(); len(c.Services) != 1 || c.Last.Verb == "AllowBEGrowth" {
		t.Errorf("with the group, and no word of it: %+v, %+v", c.Services, c.Last)
	}
	if err := os.RemoveAll(filepath.Join(w.root, "web")); err != nil {
		t.Fatal(err)
	}
	if c := tick(); len(c.Services) != 0 {
		t.Errorf("after it went: %+v", c.Services)
	}
}

func TestAServiceThatNobodyDeclaredOrThatRunsElsewhereDecidesNothing(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	w.reports.services = append(w.reports.services, serviceConfig{name: "far", slo: time.Second})
	tail := 9.0
	for _, name := range []string{"stranger", "far"} {
		w.jobHost.reports.hear(w.now, &colocation.Contributions{Workload: name, Time: w.now, SLO: 1, Tail: &tail, Servpods: []colocation.Servpod{{Component: "x", Host: "other"}}})
	}
	w.pass(3, 20, 0.4)
	if c := w.Colocation(); len(c.Services) != 1 || c.Last.Verb != "AllowBEGrowth" {
		t.Errorf("%+v %+v", c.Services, c.Last)
	}
	w.jobHost.reports.hear(w.now, &colocation.Contributions{Workload: "far", Time: w.now, SLO: 1, Tail: &tail, Servpods: []colocation.Servpod{{Component: "x", Host: "h"}}})
	w.pass(1, 20, 0.4)
	if c := w.Colocation(); len(c.Services) != 2 || c.Last.Verb != "StopBE" || c.Last.By != "far" {
		t.Errorf("%+v %+v", c.Services, c.Last)
	}
}

func TestWhatIsShownHoldsABoundedNumberOfDecisions(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	for range view.MaxHostDecisions {
		w.pass(1, 20, 0.9)
		w.pass(1, 20, 0.4)
		w.pass(1, 99, 0.4)
	}
	c := w.Colocation()
	if len(c.Decisions) != view.MaxHostDecisions || c.Decisions[0].Verb != c.Last.Verb {
		t.Errorf("%d decisions", len(c.Decisions))
	}
	var sum uint64
	for _, n := range c.Counts {
		sum += n
	}
	if sum != 3*view.MaxHostDecisions {
		t.Errorf("%v", c.Counts)
	}
}
