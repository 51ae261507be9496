package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/rdt"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner"
)

// rdtHost is a configuration with two workloads on a host with 11 ways.
func rdtHost(t *testing.T) (*config.Config, *rdttest.Tree, []actuator.Kind) {
	t.Helper()
	root := t.TempDir()
	tree := rdttest.New(rdttest.Spec{Ways: 11, Domains: []int{0, 1}})
	for i, path := range []string{"web", "batch-a", "batch-b"} {
		dir := filepath.Join(root, path)
		tree.Spawn(10 + i)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.threads"), fmt.Appendln(nil, 10+i), 0o644),
			os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("max 100000\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {cpu: 8, resources: {llc: 11, membw: 100}}
objective: drf
actuator: {cgroup_root: %q}
workloads:
  - {name: web, mode: act, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: web, cpu: {max: 4}, llc: {min: 2, max: 8}}}
  - {name: batch, mode: recommend, class: best-effort, slo: {latency: 1s, fraction: 0.5}, knob: {cgroup: batch-*, cpu: {max: 4}, llc: {max: 4}, membw: {min: 10, max: 50}}}
`, root))
	if err != nil {
		t.Fatal(err)
	}
	return cfg, tree, kinds.On(resctrl.Host{Open: func(string) (rdt.Files, error) { return tree, nil }})
}

func TestCacheAndBandwidthOfTheFileAreKnobsBesideTheCores(t *testing.T) {
	cfg, tree, kinds := rdtHost(t)
	all, err := knobs.Of(kinds, cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	c := actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: actuator.AnyOf(kinds), Measure: knobs.Measure(kinds, cfg, all)}
	if c.Targets, c.Finders, err = knobs.OpenAll(kinds, all); err != nil {
		t.Fatal(err)
	}
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	h := a.Holding()
	if h.Capacity[trimtab.LLC] != 11 || h.Capacity[trimtab.MemBW] != 100 {
		t.Errorf("measured %v", h.Capacity)
	}
	plan := &trimtab.Plan{Pool: cfg.Pool.Name, Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 8, Lease: 30,
		Capacities: map[string]float64{trimtab.CPU: 8, trimtab.LLC: 11, trimtab.MemBW: 100}}
	modes := map[string]trimtab.Mode{"web": trimtab.Act, "batch": trimtab.Recommend}
	seen := map[string]int{}
	for _, k := range h.Targets {
		seen[k.Workload+" "+k.Resource]++
		if k.Resource != trimtab.CPU {
			plan.Actions = append(plan.Actions, trimtab.Action{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(max(3, k.Min)), Mode: modes[k.Workload]})
		}
	}
	if want := fmt.Sprint(map[string]int{"web cpu": 1, "web llc": 1, "batch cpu": 2, "batch llc": 2, "batch membw": 2}); fmt.Sprint(seen) != want {
		t.Fatalf("%v, want %v", seen, want)
	}
	for _, r := range a.Handle(t.Context(), plan).Results {
		want := trimtab.Recommended
		if r.Workload == "web" {
			want = trimtab.Written
		}
		if r.Status != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	for task, limited := range map[int]bool{10: true, 11: false, 12: false} {
		if group, _ := tree.GroupOf(task); (group != "") != limited {
			t.Errorf("task %d is in %q", task, group)
		}
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if group, _ := tree.GroupOf(10); group != "" {
		t.Errorf("not restored: %s", group)
	}
}

func TestWaysOfBestEffortJobsAreTakenFromTheOtherEnd(t *testing.T) {
	cfg, _, kinds := rdtHost(t)
	all, err := knobs.Of(kinds, cfg, "h")
	if err != nil || len(all) != 2 || all[0].At.High || !all[1].At.High {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAHostWithoutResctrlStillHasItsOtherKnobsAndSaysWhatIsMissing(t *testing.T) {
	cfg, _, _ := rdtHost(t)
	kinds := kinds.On(resctrl.Host{Open: func(string) (rdt.Files, error) { return rdt.Open(filepath.Join(t.TempDir(), "nowhere")) }})
	all, err := knobs.Of(kinds, cfg, "h")
	if err != nil {
		t.Fatal(err)
	}
	c := actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: actuator.AnyOf(kinds), Measure: knobs.Measure(kinds, cfg, all)}
	if c.Targets, c.Finders, err = knobs.OpenAll(kinds, all); err != nil {
		t.Fatal(err)
	}
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	for _, k := range a.Holding().Targets {
		if missing := strings.Contains(k.Problem, "no resctrl at"); missing != (k.Resource != trimtab.CPU) {
			t.Errorf("%s %s: %q", k.Workload, k.Resource, k.Problem)
		}
	}
}

// lacking is a source of which a host lacks something, until it is read.
type lacking struct {
	closed bool
	lacks  []string
	read   chan struct{}
}

func (l *lacking) Read(ctx context.Context, _ []poll.Group) ([]*trimtab.Sample, error) {
	select {
	case <-l.read:
		l.lacks = nil
	case <-ctx.Done():
	}
	return nil, nil
}
func (l *lacking) Close() error          { l.closed = true; return nil }
func (l *lacking) Unavailable() []string { return l.lacks }

func TestMonitorsThatAHostLacksAreToldOnceAndTheRestIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := newSite(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		m := &lacking{lacks: []string{"pressure of cgroups"}, read: make(chan struct{})}
		source := func(r poll.Reader, err error) poll.Source {
			return poll.Source{Name: "x", Interval: time.Second, Open: func(poll.Config) (poll.Reader, error) { return r, err }}
		}
		of := func(poll.Source) poll.Config { return poll.Config{Host: "h", Bus: s.bus} }
		stop, err := s.startMonitors(t.Context(), pipeline.NewHealth(pipeline.Work{Round: time.Second}),
			[]poll.Source{source(m, nil), source(nil, fmt.Errorf("no resctrl here: %w", trimtab.ErrUnsupported))}, of)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.process.Ready.Stages(); len(got) != 1 || !got[0].Ready || !strings.HasPrefix(got[0].Missing, "pressure of cgroups; read x: no resctrl here") {
			t.Errorf("%+v", got)
		}
		close(m.read)
		synctest.Wait()
		if got := s.process.Ready.Stages(); len(got) != 1 || !strings.HasPrefix(got[0].Missing, "read x: no resctrl here") {
			t.Errorf("once there is pressure: %+v", got)
		}
		if err := stop(); err != nil || !m.closed {
			t.Errorf("%v, closed %v", err, m.closed)
		}
		if n := strings.Count(log.String(), "does not have"); n != 1 {
			t.Errorf("%d lines: %s", n, log.String())
		}
		if got := s.process.Ready.Stages(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		if _, err := s.startMonitors(t.Context(), nil, []poll.Source{source(nil, errors.New("EIO"))}, of); err == nil {
			t.Error("what fails is no host without it")
		}
	})
}

func TestEveryObjectiveSharesAPoolOfWays(t *testing.T) {
	for _, objective := range []string{"njc", "egalitarian", "social", "nash", "resource-fair", "drf", "sum(u)"} {
		root := t.TempDir()
		cfg, err := config.Parse("trimtab.yaml", fmt.Appendf(nil, `
pool: {resources: {llc: 11}}
objective: %q
actuator: {cgroup_root: %q}
workloads:
  - {name: web, mode: act, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: web, llc: {min: 2, max: 8}}}
  - {name: batch, mode: act, slo: {latency: 1s, fraction: 0.5}, knob: {cgroup: batch, llc: {max: 4}}}
`, objective, root))
		if err != nil {
			t.Fatal(err)
		}
		c, err := PlannerConfig(cfg)
		if err != nil || c.Resource != trimtab.LLC || c.Capacity != 11 || c.Unit != 1 || c.Workloads[0].Min != 2 || c.Workloads[0].Max != 8 || len(c.Others) > 0 {
			t.Errorf("%s: %+v, %v", objective, c, err)
		}
		if _, err := planner.New(c); err != nil {
			t.Errorf("%s: %v", objective, err)
		}
		a, err := AnalyzerConfig(cfg)
		if err == nil {
			_, err = analyzer.New(a)
		}
		if err != nil {
			t.Errorf("%s: %v", objective, err)
		}
		all, err := knobs.Of(kinds.All(), cfg, "h")
		if err != nil || len(all) != 2 || len(all[0].Like) != 1 || all[0].Like[0].Resource != trimtab.LLC {
			t.Errorf("%s: %+v, %v", objective, all, err)
		}
		s := newSite(Options{Host: "h"})
		if parts, err := s.groupPart(cfg); len(parts) > 0 || err != nil {
			t.Errorf("%s: cores are read as use of ways: %v, %v", objective, parts, err)
		}
	}
}
