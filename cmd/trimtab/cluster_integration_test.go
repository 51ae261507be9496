//go:build integration

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/cluster/clustertest"
)

// stages are the processes of a site on one NATS server, with the files of
// `trimtab init cluster`.
type stages struct {
	*testing.T
	dir, url string
	q        quotas
	// change is made to the configuration of what is started from now on; nil: none.
	change func(text string) string
	// self is the binary of what is started from now on; "": the test's own.
	self string
}

func newStages(t *testing.T) *stages {
	t.Helper()
	s := &stages{T: t, dir: t.TempDir(), q: anyQuotas(t)}
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"init", "cluster", "--servers", "127.0.0.1", "--hosts", "h1,h2", "--out", s.dir}, &out, &out); code != exitDone {
		t.Fatal(out.String())
	}
	var leaf string
	s.url, leaf = clustertest.Serve(t, s.dir, "127.0.0.1", nil)
	for _, user := range []string{"collector", "analyzer", "planner", "console", "agent-h1", "agent-h2"} {
		file := filepath.Join(s.dir, user, "nats.yaml")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`url: .*`).ReplaceAll(b, []byte("url: "+s.url))
		b = regexp.MustCompile(`leaf: .*`).ReplaceAll(b, []byte("leaf: "+leaf))
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start runs one process of a role; user says with whose certificate.
func (s *stages) start(role, user string, more ...string) *program {
	s.Helper()
	p := prepare(s.T, s.q, "")
	p.self = s.self
	p.text = regexp.MustCompile(`(?m)^nats: .*\n`).ReplaceAllString(p.text, "")
	// What h1 has, h2 has not.
	p.text = strings.ReplaceAll(p.text, "knob: {", "knob: {host: h1, ")
	if s.change != nil {
		p.text = s.change(p.text)
	}
	file := filepath.Join(p.dir, "trimtab.yaml")
	if err := os.WriteFile(file, []byte(p.text), 0o644); err != nil {
		s.Fatal(err)
	}
	p.launch(append([]string{role, "--config.file", file, "--nats.config.file", filepath.Join(s.dir, user, "nats.yaml"),
		"--web.listen-address", p.web, "--log.level", "debug"}, more...)...)
	return p
}

// Two of each central stage and two agents, as processes on a real server that
// holds each to its role: spans go in, a limit moves, and whoever dies is
// replaced by the one that stood by.
func TestStagesAsProcessesOfTheirOwnMoveALimitAndReplaceEachOther(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	planners := []*program{s.start("planner", "planner")}
	planners[0].becomesReady() // the streams are there
	analyzers := []*program{s.start("analyzer", "analyzer")}
	agents := []*program{s.start("agent", "agent-h1", "--host", "h1"), s.start("agent", "agent-h2", "--host", "h2")}
	analyzers[0].becomesReady()
	planners = append(planners, s.start("planner", "planner"))
	analyzers = append(analyzers, s.start("analyzer", "analyzer"))
	collectors := []*program{s.start("collector", "collector"), s.start("collector", "collector")}
	consoles := []*program{s.start("console", "console"), s.start("console", "console")}
	all := append(append(append(append(append([]*program{}, planners...), analyzers...), agents...), collectors...), consoles...)
	for _, p := range all {
		p.becomesReady()
	}
	for _, c := range collectors { // each takes a part of the load
		c.serve()
	}
	agents[0].until("a limit moves", agents[0].moved)

	t.Run("every process has health and metrics of its own", func(t *testing.T) {
		for _, p := range all {
			if code, _, err := p.get("/-/healthy"); err != nil || code != http.StatusOK {
				t.Errorf("%v %v", code, err)
			}
			if v := p.sum("trimtab_stage_ready"); v == 0 {
				t.Error("no part is ready in the metrics")
			}
		}
		if code, _, _ := planners[0].get("/api/v1/status"); code != http.StatusNotFound {
			t.Errorf("a planner answers %d where it shows nothing", code)
		}
	})
	t.Run("one analyzer learns and one planner leads", func(t *testing.T) {
		for name, both := range map[string][]*program{"learn": analyzers, "path-0": analyzers, "planner": planners} {
			if a, b := both[0].sum("trimtab_stage_outputs_total", "stage", name), both[1].sum("trimtab_stage_outputs_total", "stage", name); a == 0 || b != 0 {
				t.Errorf("%s: the first gave %v values, the one that stands by %v", name, a, b)
			}
		}
	})
	t.Run("each console shows everything", func(t *testing.T) {
		for _, c := range consoles {
			c.until("what the console shows", func() error {
				code, out := c.command("explain", "hungry")
				if code != exitDone || !strings.Contains(out, "hungry") {
					return fmt.Errorf("%d: %s", code, out)
				}
				return nil
			})
		}
	})
	t.Run("a console's pause reaches planner and agent", func(t *testing.T) {
		if code, out := consoles[1].command("pause"); code != exitDone {
			t.Errorf("%d: %s", code, out)
		}
		if code, out := consoles[0].command("resume"); code != exitDone {
			t.Errorf("%d: %s", code, out)
		}
	})
	t.Run("the second planner and the second analyzer go on", func(t *testing.T) {
		for _, p := range []*program{planners[0], analyzers[0], consoles[0]} {
			p.kill(false)
		}
		planners[1].until("a new term", func() error {
			if epoch := planners[1].sum("trimtab_leader_epoch"); epoch < 2 {
				return fmt.Errorf("term %v", epoch)
			}
			return nil
		})
		// It answers plans of the new term, on estimates of the new analyzer.
		analyzers[1].until("estimates", func() error {
			if n := analyzers[1].sum("trimtab_stage_outputs_total", "stage", "learn", "kind", "estimate"); n == 0 {
				return fmt.Errorf("none yet")
			}
			return nil
		})
		planners[1].until("a decision of the new term", func() error {
			// It may move nobody: the limits are where they should be.
			code, out := consoles[1].command("status", "-o", "json")
			if code != exitDone || !strings.Contains(out, `"plan": "2-`) {
				return fmt.Errorf("%d: %s", code, out)
			}
			return nil
		})
	})
	agents[0].stop()
	if err := agents[0].restored(); err != nil {
		t.Errorf("after the agent's end: %v", err)
	}
}

func TestAProcessWithTheCertificateOfAnotherRoleSaysAtItsStartWhatItMayNot(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	p := s.start("planner", "collector")
	if err := p.cmd.Wait(); err == nil {
		t.Fatal("it runs")
	}
	for _, want := range []string{"this NATS user may not do what the role planner needs", `to "_INBOX_planner.`, "trimtab: hint: trimtab init cluster"} {
		if !strings.Contains(p.log(), want) {
			t.Errorf("no %q in\n%s", want, p.log())
		}
	}
}

func TestAStageWaitsForTheStreamsAndSaysSo(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	p := s.start("analyzer", "analyzer")
	p.until("it says what it waits for", func() error {
		if !strings.Contains(p.log(), "bus waits for a planner to make its streams") {
			return fmt.Errorf("nothing")
		}
		return nil
	})
	s.start("planner", "planner")
	p.becomesReady()
}
