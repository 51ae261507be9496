//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/trimtab/trimtab/internal/trial"
)

const (
	soakGroups = 100
	// soakSettles is how long an agent takes until it no longer grows into what it
	// needs, and soakJudged the least time over which growth and its share of a core
	// are judged: less tells more of the collector of garbage than of leaks, and of
	// what else the machine does in that minute.
	soakSettles, soakJudged = 10 * time.Minute, time.Hour
	// soakWarms is for how many seconds it runs before its use is counted.
	soakWarms = 30
)

// R22: an agent of 100 cgroups with rounds and holdings at 1 s, under load, for as
// many minutes as the trial says. Its watchdogs count, too. It is the agent as it is
// released, and what it maps of its binary counts as what it allocated does.
func TestAnAgentOfAHundredCgroupsStaysSmall(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 1)
	s := newStages(t)
	var names []string
	for i := range soakGroups {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	s.q = groupsWith(t, 0.1, names...)
	s.change = func(text string) string {
		text, _, _ = strings.Cut(strings.Replace(text, "cpu: 1,", "cpu: 20,", 1), "workloads:\n")
		text = regexp.MustCompile(`(?m)^guard: .*\n`).ReplaceAllString(text, "") // as it is by default
		text += "analyzer: {report_interval: 1s, partitions: 1}\nworkloads:\n"
		for _, name := range names {
			text += fmt.Sprintf("  - {name: %[1]s, slo: {latency: 100ms, fraction: 0.95}, knob: {host: h1, cgroup: %[1]s, cpu: {min: 0.05, max: 0.9}}, mode: act}\n", name)
		}
		return text
	}
	planner := s.start("planner", "planner")
	planner.becomesReady() // the streams are there
	s.self = release(t)
	agent := s.start("agent", "agent-h1", "--host", "h1", "--log.level", "info")
	s.self = ""
	analyzer, collector := s.start("analyzer", "analyzer"), s.start("collector", "collector")
	for _, p := range []*program{agent, analyzer, collector} {
		p.becomesReady()
	}
	load := newSender(t, collector.otlp, s.q)
	load.need = map[string]float64{}
	for i, name := range names {
		load.need[name] = 0.05 + 0.2*float64(i)/soakGroups
	}
	agent.until("limits move", func() error {
		if err := load.send(t.Context()); err != nil || written(agent) == 0 {
			return fmt.Errorf("%v written: %w", written(agent), err)
		}
		return nil
	})
	for range soakWarms {
		<-time.After(time.Second)
		if err := load.send(t.Context()); err != nil {
			t.Error(err)
		}
	}
	began, dogsBegan := processorTime(agent)
	beganAt, writes, last := time.Now(), written(agent), began
	var hours, sizes []float64
	peak, ofBinary, busiest := int64(0), 0.0, 0.0
	for range tr.N {
		since := time.Now()
		tick := time.NewTicker(time.Second)
		for time.Since(since) < time.Minute {
			<-tick.C
			if err := load.send(t.Context()); err != nil {
				t.Error(err)
			}
			size := agent.rss()
			if size > peak {
				peak, ofBinary = size, statusMiB(t, agent.cmd.Process.Pid, "RssFile")
			}
			if time.Since(beganAt) > soakSettles {
				hours, sizes = append(hours, time.Since(beganAt).Hours()), append(sizes, float64(size)/(1<<20))
			}
		}
		tick.Stop()
		now, _ := processorTime(agent)
		busiest = max(busiest, (now-last).Seconds()/time.Since(since).Seconds())
		last = now
		tr.Case()
	}
	all, dogs := processorTime(agent)
	took := time.Since(beganAt).Seconds()
	busy := (all - began).Seconds() / took
	tr.Notef("agent of %d cgroups: %.2f%% of a core, %.2f%% of it for its watchdogs, in the busiest minute %.2f%%; at most %.1f MiB resident, %.1f MiB of them the binary; %.1f writes a second", soakGroups, 100*busy, 100*(dogs-dogsBegan).Seconds()/took, 100*busiest, float64(peak)/(1<<20), ofBinary, (written(agent)-writes)/took)
	if peak > 64<<20 {
		tr.Failf("%d MiB resident", peak>>20)
	}
	if time.Since(beganAt) < soakSettles+soakJudged {
		tr.Notef("growth and share of a core are judged over an hour at least, and were not")
		return
	}
	if busy > 0.02 {
		tr.Failf("it takes %.2f%% of a core", 100*busy)
	}
	_, growth := stat.LinearRegression(hours, sizes, nil, false)
	tr.Notef("growth %.2f MiB/h", growth)
	if growth >= 1 {
		tr.Failf("it grows by %.2f MiB/h", growth)
	}
}

// processorTime is what a program and its watchdogs have used, and the watchdogs of it,
// by the scheduler's own clock: ticks of 10 ms tell little of what runs for less.
func processorTime(p *program) (sum, watchdogs time.Duration) {
	p.Helper()
	for _, pid := range p.processes() {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			p.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			on, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
			if err != nil {
				p.Fatal(err)
			}
			if sum += time.Duration(on); pid != p.cmd.Process.Pid {
				watchdogs += time.Duration(on)
			}
		}
	}
	return sum, watchdogs
}
