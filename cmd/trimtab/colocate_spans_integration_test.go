//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// traced is a service whose requests arrive as spans: of them a part is fast.
type traced struct{ slow atomic.Bool }

// quotas make a [sender] send what the service does.
func (s *traced) quotas(root string) quotas {
	return quotas{root, func(string) float64 {
		if s.slow.Load() {
			return 0.1 // most requests take 300 ms
		}
		return 1 // all take 20 ms
	}}
}

// thresholds are of the service: no job may wait for four levels of load.
const thresholds = "max_load: 100000, servpods: {hungry: {loadlimit: 0.8, slacklimit: 0.2}}, "

func (b *batch) has(job string, least float64) func() error {
	return func() error {
		if c, s := b.cores(job), b.read(b.freezer, job, "freezer.state"); c < least || s != "THAWED" {
			return fmt.Errorf("%s is %s with %v cores", job, s, c)
		}
		return nil
	}
}

func (b *batch) frozen(jobs ...string) func() error {
	return func() error {
		for _, job := range jobs {
			if s := b.read(b.freezer, job, "freezer.state"); s != "FROZEN" {
				return fmt.Errorf("%s is %s with %v cores", job, s, b.cores(job))
			}
		}
		return nil
	}
}

// From OTLP spans through collector, analyzer, contributions and agent to the control
// groups of the kernel, over the real bus, in one process: jobs grow beside a service
// that is fast, and are frozen when its spans say that it misses its SLO.
func TestSpansOfAServiceDecideWhatRealJobsHave(t *testing.T) {
	t.Parallel()
	b, service := newBatch(t), new(traced)
	b.q = service.quotas(b.q.root)
	b.text = strings.Replace(b.text, "name: hungry, ", "name: hungry, "+thresholds, 1)
	b.job("a")
	b.job("b")
	b.run()
	b.becomesReady()
	b.serve()
	b.until("a job to grow beside a service that is fast", b.has("a", 0.2))
	b.until("the tail in what is explained", func() error {
		if code, out := b.command("explain", "hungry"); code != exitDone || !strings.Contains(out, "tail") || !strings.Contains(out, "beside best-effort jobs: slack 0.") || !strings.Contains(out, "from declared") {
			return fmt.Errorf("%d: %s", code, out)
		}
		return nil
	})
	if v := b.sum("trimtab_tail_slack_ratio", "workload", "hungry"); v < 0.5 {
		t.Errorf("slack %v in the metrics of the console", v)
	}
	service.slow.Store(true)
	b.until("a job to be frozen or killed by what spans say", func() error {
		c := b.colocation()
		if c.Counts["StopBE"] == 0 || b.cores("a") > 0.011 && b.read(b.cpu, "a", "cgroup.procs") != "" {
			return fmt.Errorf("%v cores: %+v", b.cores("a"), c.Last)
		}
		return nil
	})
	b.stop()
}

// While it is paused a job keeps what it has, though the service misses its SLO.
func TestAPauseHoldsRealJobsUntilAResume(t *testing.T) {
	t.Parallel()
	b, service := newBatch(t), new(traced)
	b.q = service.quotas(b.q.root)
	b.text = strings.Replace(b.text, "name: hungry, ", "name: hungry, "+thresholds, 1)
	b.job("a")
	b.run()
	b.becomesReady()
	b.serve()
	b.until("the job to grow", b.has("a", 0.2))
	if code, out := b.command("pause"); code != exitDone {
		t.Fatalf("%d: %s", code, out)
	}
	b.until("the pause", func() error {
		if c := b.colocation(); !c.Paused {
			return fmt.Errorf("%+v", c.Last)
		}
		return nil
	})
	before := b.cores("a")
	service.slow.Store(true)
	b.until("the service to miss its SLO", func() error {
		if c := b.colocation(); len(c.Services) == 0 || c.Services[0].Slack == nil || *c.Services[0].Slack >= 0 {
			return fmt.Errorf("%+v", c.Services)
		}
		return nil
	})
	b.during(time.Second, func() {
		if c := b.cores("a"); c != before || b.frozen("a")() == nil {
			t.Errorf("%v cores while paused, before %v", c, before)
		}
	})
	if code, out := b.command("status"); code != exitDone || !strings.Contains(out, "paused: nothing is decided or written") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := b.command("resume"); code != exitDone {
		t.Fatalf("%d: %s", code, out)
	}
	b.until("the job to be taken back", func() error {
		if c := b.cores("a"); c > 0.011 {
			return fmt.Errorf("%v cores: %+v", c, b.colocation().Last)
		}
		return nil
	})
	b.stop()
}

// Each role as a process of its own on a real server that holds it to its role: a
// console, which has no jobs, shows those of the agent's host, and its pause holds them.
func TestAConsoleOfAFleetShowsAndPausesTheJobsOfAnAgent(t *testing.T) {
	t.Parallel()
	s, service := newStages(t), new(traced)
	b := newBatch(t)
	s.q = service.quotas(s.q.root)
	root, top := filepath.Dir(b.cpu), filepath.Base(b.cpu)
	s.change = func(text string) string {
		before, _, _ := strings.Cut(text, "workloads:")
		before = strings.Replace(before, fmt.Sprintf("cgroup_root: %q", s.q.root), fmt.Sprintf("cgroup_root: %q, lock_dir: %q", root, filepath.Join(b.dir, "locks")), 1)
		return before + fmt.Sprintf(`
beside: {jobs: {mode: act, period: 200ms, max_age: 2s, lease: 5s, capacity: {cpu: 0.6}, start: {cpu: 0.1}, step: {cpu: 0.1}}}
analyzer: {report_interval: 200ms, partitions: 1}
workloads:
  - {name: hungry, %sslo: {latency: 100ms, fraction: 0.99}, knob: {cgroup: %s-none, host: h1, cpu: {min: 0.05, max: 0.9}}, mode: "off"}
  - {name: batch, class: best-effort, knob: {cgroup: %s/*, host: h1}}
`, thresholds, top, top)
	}
	planner := s.start("planner", "planner")
	planner.until("the streams", func() error { _, _, err := planner.get("/-/healthy"); return err })
	s.start("analyzer", "analyzer")
	b.program = s.start("agent", "agent-h1", "--host", "h1")
	collector, console := s.start("collector", "collector"), s.start("console", "console")
	collector.until("an answer", func() error { _, _, err := collector.get("/-/healthy"); return err })
	b.job("a")
	collector.serve()
	b.until("the job to grow", b.has("a", 0.2))

	var fleet view.FleetJobs
	console.until("the job in the console", func() error {
		_, body, err := console.get("/api/v1/colocation?job=batch/a")
		if err == nil {
			err = json.Unmarshal([]byte(body), &fleet)
		}
		if err != nil || len(fleet.Hosts) != 1 || fleet.Hosts[0].Host != "h1" || fleet.Running != 1 || fleet.Given == 0 {
			return fmt.Errorf("%v: %s", err, body)
		}
		return nil
	})
	for command, wants := range map[string][]string{"status": {"best-effort jobs on 1 host", "h1", "AllowBEGrowth"}, "explain batch/a": {"a best-effort job on h1", "AllowBEGrowth"}, "explain hungry": {"on h1, beside best-effort jobs: slack 0."}} {
		code, out := console.command(strings.Fields(command)...)
		for _, want := range wants {
			if code != exitDone || !strings.Contains(out, want) {
				t.Errorf("%s: %d, no %q in %s", command, code, want, out)
			}
		}
	}
	if code, body, err := console.get("/jobs"); err != nil || code != 200 || !strings.Contains(body, "batch/a") {
		t.Errorf("%d %v %s", code, err, body)
	}
	if v := console.sum("trimtab_host_jobs", "host", "h1", "state", "running"); v != 1 {
		t.Errorf("%v running jobs in the metrics of the console", v)
	}
	if code, out := console.command("pause"); code != exitDone {
		t.Fatalf("%d: %s", code, out)
	}
	b.until("the agent to hear of it", func() error {
		if c := b.colocation(); !c.Paused {
			return fmt.Errorf("%+v", c.Last)
		}
		return nil
	})
	before := b.cores("a")
	service.slow.Store(true)
	b.during(3*time.Second, func() {
		if c := b.cores("a"); c != before {
			t.Errorf("%v cores while paused, before %v", c, before)
		}
	})
	if code, out := console.command("resume"); code != exitDone {
		t.Fatalf("%d: %s", code, out)
	}
	b.until("the job to be taken back", func() error {
		if c := b.cores("a"); c > 0.011 {
			return fmt.Errorf("%v cores: %+v", c, b.colocation().Last)
		}
		return nil
	})
}
