//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// batch is a host with best-effort jobs in control groups of the kernel.
type batch struct {
	*program
	cpu, freezer string // directories of the jobs
	// stands is how the service stands: its tail latency in ms, and its share of the
	// most load, in percent; silent: it says nothing.
	tail, load atomic.Int64
	silent     atomic.Bool
}

// realGroups makes a group in each hierarchy, or skips the test where there is none.
func realGroups(t *testing.T) (root, cpu, freezer string) {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	frozen := ""
	if err == nil {
		frozen = hostfs.Sibling(root, "freezer")
	}
	if err != nil || frozen == "" || os.Getuid() != 0 {
		t.Skip("no cgroups of version 1 with a freezer that may be written")
	}
	name := ownGroup("trimtab-batch")
	cpu, freezer = filepath.Join(root, name), filepath.Join(frozen, name)
	for _, dir := range []string{cpu, freezer} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
	}
	return root, cpu, freezer
}

// job starts a process that computes in a group of its own.
func (b *batch) job(name string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	for _, dir := range []string{b.cpu, b.freezer} {
		group := filepath.Join(dir, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(b.freezer, name, "freezer.state"), []byte("THAWED"), 0o644)
		_ = cmd.Process.Kill()
		<-ended
		for _, dir := range []string{b.cpu, b.freezer} {
			b.until("the end of a group", func() error { return os.Remove(filepath.Join(dir, name)) })
		}
	})
	return cmd
}

func (b *batch) read(dir, job, file string) string {
	text, err := os.ReadFile(filepath.Join(dir, job, file))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// cores is the quota of a job, 0 without one.
func (b *batch) cores(job string) float64 {
	quota, err := strconv.ParseFloat(b.read(b.cpu, job, "cpu.cfs_quota_us"), 64)
	if err != nil || quota < 0 {
		return 0
	}
	return quota / 100000
}

func (b *batch) colocation() (c view.Colocation) {
	_, body, err := b.get("/api/v1/jobs")
	if err == nil {
		err = json.Unmarshal([]byte(body), &c)
	}
	if err != nil {
		b.Fatalf("%v: %s", err, body)
	}
	return c
}

// speaks lets the service tell how it stands, over the bus.
func (b *batch) speaks() {
	b.Helper()
	nats, err := natsbus.Open(b.Context(), natsbus.Config{URL: "nats://" + b.nats, Source: "test"})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b.Context().Err() == nil {
			if !b.silent.Load() {
				limit, slack, tail := 0.8, 0.2, float64(b.tail.Load())/1000
				_ = nats.Publish(b.Context(), &colocation.Contributions{ // a loss is made good by the next
					Workload: "hungry", Time: time.Now(), Window: 1, Load: float64(b.load.Load()), MaxLoad: 100, SLO: 0.1, Quantile: 0.99, Tail: &tail, Requests: 1000, Levels: 5,
					Servpods: []colocation.Servpod{{Component: "hungry", Contribution: 1, LoadLimit: &limit, Origin: colocation.FromHistory, SlackLimit: &slack, SlackOrigin: colocation.Declared}},
				})
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	b.Cleanup(func() { <-done; _ = nats.Close() })
}

func newBatch(t *testing.T) *batch {
	root, cpu, freezer := realGroups(t)
	b := &batch{cpu: cpu, freezer: freezer}
	b.program = prepare(t, fixtureQuotas(t), "")
	before, _, _ := strings.Cut(b.text, "workloads:")
	// Locks and claims of its own: others on this machine may have all of its cores.
	b.text = strings.Replace(before, fmt.Sprintf("cgroup_root: %q", b.q.root), fmt.Sprintf("cgroup_root: %q, lock_dir: %q", root, filepath.Join(b.dir, "locks")), 1) + fmt.Sprintf(`
beside: {jobs: {mode: act, period: 200ms, max_age: 2s, lease: 5s, capacity: {cpu: 0.6}, start: {cpu: 0.1}, step: {cpu: 0.1}}}
analyzer: {report_interval: 200ms, partitions: 1}
workloads:
  - {name: hungry, slo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: %[1]s-none, cpu: {min: 0.05, max: 0.9}}, mode: "off"}
  - {name: batch, class: best-effort, knob: {cgroup: %[1]s/*}}
`, filepath.Base(cpu))
	return b
}

func TestRealJobsGrowAndAreFrozenBesideAService(t *testing.T) {
	t.Parallel()
	b := newBatch(t)
	b.job("a")
	b.job("b")
	b.tail.Store(20)
	b.load.Store(30)
	b.run()
	b.until("an answer", func() error { _, _, err := b.get("/-/healthy"); return err })
	b.speaks()
	b.until("both jobs to grow", func() error {
		if sum := b.cores("a") + b.cores("b"); sum < 0.55 || sum > 0.601 || b.read(b.freezer, "a", "freezer.state") != "THAWED" {
			return fmt.Errorf("%v cores, a is %s: %+v", sum, b.read(b.freezer, "a", "freezer.state"), b.colocation().Last)
		}
		return nil
	})
	if code, out := b.command("status"); code != exitDone || !strings.Contains(out, "AllowBEGrowth") || !strings.Contains(out, "batch/a") {
		t.Errorf("status: %d\n%s", code, out)
	}
	b.load.Store(95)
	b.until("both to be frozen over the loadlimit", func() error {
		for _, job := range []string{"a", "b"} {
			if state := b.read(b.freezer, job, "freezer.state"); state != "FROZEN" || b.cores(job) > 0.011 {
				return fmt.Errorf("%s is %s with %v cores", job, state, b.cores(job))
			}
		}
		return nil
	})
	if code, out := b.command("explain", "batch/a"); code != exitDone || !strings.Contains(out, "over its limit of 0.8") {
		t.Errorf("explain: %d\n%s", code, out)
	}
	b.load.Store(30)
	b.until("both to go on", func() error {
		return b.onwards(0.4)
	})
	b.silent.Store(true)
	b.until("both to be frozen while nothing is heard", func() error {
		if s := b.read(b.freezer, "a", "freezer.state"); s != "FROZEN" {
			return fmt.Errorf("a is %s: %+v", s, b.colocation().Last)
		}
		return nil
	})
	b.silent.Store(false)
	b.until("both to go on", func() error {
		return b.onwards(0.4)
	})
	b.until("everything that the board of co-location shows", func() error { return b.boardHasMetrics("colocate.json") })
	b.tail.Store(150)
	b.until("both to be frozen while the SLO is missed", func() error {
		for _, job := range []string{"a", "b"} {
			if state := b.read(b.freezer, job, "freezer.state"); state != "FROZEN" || b.read(b.cpu, job, "cgroup.procs") == "" {
				return fmt.Errorf("%s is %s: %+v", job, state, b.colocation().Last)
			}
		}
		return nil
	})
	b.stop()
}

// onwards says why the jobs do not go on with so many cores together; nil: they do.
func (b *batch) onwards(cores float64) error {
	state := b.read(b.freezer, "a", "freezer.state")
	if sum := b.cores("a") + b.cores("b"); sum < cores || state != "THAWED" {
		return fmt.Errorf("%v cores, a is %s: %+v", sum, state, b.colocation().Last)
	}
	return nil
}

func TestAPolicyThatKillsEndsRealJobsWhenTheSLOIsMissed(t *testing.T) {
	t.Parallel()
	b := newBatch(t)
	b.text = strings.Replace(b.text, "jobs: {", "jobs: {policy: rhythm-indiscriminate, ", 1)
	b.job("a")
	b.tail.Store(20)
	b.load.Store(30)
	b.run()
	b.until("an answer", func() error { _, _, err := b.get("/-/healthy"); return err })
	b.speaks()
	b.until("the job to run", func() error { return b.onwardsAlone() })
	b.tail.Store(150)
	b.until("the job to be killed", func() error {
		if c := b.colocation(); c.Kills == 0 || b.read(b.cpu, "a", "cgroup.procs") != "" {
			return fmt.Errorf("%d kills: %+v", c.Kills, c.Last)
		}
		return nil
	})
	b.stop()
}

// onwardsAlone is onwards of the first job alone, with what a job begins with.
func (b *batch) onwardsAlone() error {
	if state := b.read(b.freezer, "a", "freezer.state"); state != "THAWED" || b.cores("a") < 0.1 {
		return fmt.Errorf("%v cores, %s: %+v", b.cores("a"), state, b.colocation().Last)
	}
	return nil
}

func TestTheWatchdogTakesBackWhatJobsWereGivenByAKilledAgent(t *testing.T) {
	t.Parallel()
	b := newBatch(t)
	b.job("a")
	b.tail.Store(20)
	b.load.Store(30)
	b.run()
	b.until("an answer", func() error { _, _, err := b.get("/-/healthy"); return err })
	b.speaks()
	b.until("the job to grow", func() error {
		if c := b.cores("a"); c < 0.4 {
			return fmt.Errorf("%v cores: %+v", c, b.colocation().Last)
		}
		return nil
	})
	b.kill(false)
	began := time.Now()
	b.until("the least that is declared", func() error {
		if c := b.cores("a"); c != 0.01 {
			return fmt.Errorf("%v cores", c)
		}
		return nil
	})
	t.Logf("back at the least %v after the kill, with a lease of 5 s", time.Since(began))
}
