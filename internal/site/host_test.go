package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/planner"
)

func TestAHostLeavesTheKnobsOfOthersAlone(t *testing.T) {
	cfg, err := config.Parse("trimtab.yaml", []byte(`
pool: {cpu: 4}
actuator: {cgroup_root: /none}
workloads:
  - {name: here, slo: {latency: 200ms, fraction: 0.95}, knob: {host: h1, cgroup: here, cpu: {min: 1, max: 2}}}
  - {name: there, slo: {latency: 200ms, fraction: 0.95}, knob: {host: h2, cgroup: there, cpu: {min: 1, max: 2}}}
  - {name: anywhere, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: anywhere, cpu: {min: 1, max: 2}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][]string{"h1": {"here", "anywhere"}, "h2": {"there", "anywhere"}, "h3": {"anywhere"}} {
		knobs, err := knobs.Of(kinds.All(), cfg, host)
		if err != nil {
			t.Fatal(err)
		}
		if !cfg.Elsewhere(host) {
			t.Errorf("%s believes that no other host has a knob", host)
		}
		groups := groupsOf(cfg, host, false)
		if len(knobs) != len(want) || len(groups) != len(want) {
			t.Fatalf("%s has %d knobs and reads %d groups, want %d", host, len(knobs), len(groups), len(want))
		}
		for i, name := range want {
			if of := knobs[i].Like[0].Workload; of != name || groups[i].Workload != name {
				t.Errorf("%s has the knob of %s and reads %s, want %s", host, of, groups[i].Workload, name)
			}
		}
	}
}

func TestAHostIsAloneOnlyWhereNoOtherCanReachItsBus(t *testing.T) {
	for name, c := range map[string]struct {
		role        natsbus.Role
		url, listen string
		elsewhere   string
		want        bool
	}{
		"one process, a bus of its own":      {want: false},
		"a bus that others are on":           {url: "nats://bus:4222", want: true},
		"a bus that others may come to":      {listen: "127.0.0.1:4222", want: true},
		"the file names another host":        {elsewhere: "other", want: true},
		"a process of one role, an agent":    {role: natsbus.Agent, want: true},
		"a process of one role, no actuator": {role: natsbus.Planner, want: true},
	} {
		cfg := larger(t, c.elsewhere)
		cfg.NATS.URL, cfg.NATS.Listen = c.url, c.listen
		s := newSite(Options{Host: "h", Role: c.role})
		if got := s.shares(cfg); got != c.want {
			t.Errorf("%s: shares %v, want %v", name, got, c.want)
		}
	}
}

// larger is a pool of 4 cores with one workload, which is to be raised to 3 where
// nothing is known of it.
func larger(t *testing.T, elsewhere string) *config.Config {
	t.Helper()
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "web"), 0o755), os.WriteFile(filepath.Join(root, "web", "cpu.max"), []byte("100000 100000\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
pool: {cpu: 4, step: 4}
round: 1s
guard: {max_moved: 1, hold_rounds: 1}
actuator: {cgroup_root: %q}
workloads:
  - {name: web, slo: {latency: 200ms, fraction: 0.95}, knob: {cgroup: web, cpu: {min: 1, max: 4, default: 3}}, mode: act}
`, root)
	if elsewhere != "" {
		text += fmt.Sprintf("  - {name: far, slo: {latency: 200ms, fraction: 0.95}, knob: {host: %s, cgroup: far, cpu: {min: 1, max: 2}}}\n", elsewhere)
	}
	cfg, err := config.Parse("trimtab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// loop lets a planner and the actuator of its only host answer each other for twenty
// rounds. No plan may be refused: both go by one rule.
func loop(t *testing.T, cfg *config.Config, step *planner.Planner, a *actuator.Actuator) {
	t.Helper()
	now := time.Now()
	step.Step(now, &trimtab.Leader{Pool: cfg.Pool.Name, Epoch: 1})
	for range 20 {
		now = now.Add(cfg.Round)
		values := append(step.Step(now, a.Holding()), step.Step(now, nil)...)
		for len(values) > 0 {
			v := values[0]
			values = values[1:]
			if p, ok := v.(*trimtab.Plan); ok {
				o := a.Handle(t.Context(), p)
				for _, r := range o.Results {
					if o.Refused != "" || r.Status == trimtab.Refused {
						t.Errorf("refused: %s%s", o.Refused, r.Reason)
					}
				}
				values = append(values, step.Step(now, o)...)
			}
		}
	}
}

// A pool of 4 cores whose only host was measured to have 2.
func TestPlannerAndActuatorAgreeOnWhatAHostHasThatIsSmallerThanItsPool(t *testing.T) {
	for role, want := range map[natsbus.Role]float64{"": 3, natsbus.Agent: 2} {
		cfg := larger(t, "")
		s := newSite(Options{Host: "h", Role: role})
		c, err := PlannerConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Shared = s.shares(cfg)
		step, err := planner.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all, err := knobs.Of(kinds.All(), cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		targets, _, err := knobs.OpenAll(kinds.All(), all)
		if err != nil {
			t.Fatal(err)
		}
		a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), Reopen: kinds.Reopen, Targets: targets,
			Shared: s.shares(cfg), Limits: limitsOf(cfg), Measure: func() (map[string]float64, error) { return map[string]float64{trimtab.CPU: 2}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		loop(t, cfg, step, a)
		if got := a.Holding().Targets[0].Now; got != trimtab.Units(want) {
			t.Errorf("role %q: it has %v, want %v", role, got, want)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Two processes, each with a pool of 4 cores, on a host of 3.
func TestAPlannerPlansWithWhatOtherPoolsOfItsHostLeave(t *testing.T) {
	locks := t.TempDir()
	open := func() (*config.Config, *planner.Planner, *actuator.Actuator) {
		cfg := larger(t, "")
		c, err := PlannerConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		step, err := planner.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all, err := knobs.Of(kinds.All(), cfg, "h")
		if err != nil {
			t.Fatal(err)
		}
		targets, _, err := knobs.OpenAll(kinds.All(), all)
		if err != nil {
			t.Fatal(err)
		}
		a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: cfg.Pool.Name, Dir: t.TempDir(), LockDir: locks, Reopen: kinds.Reopen, Targets: targets,
			Limits: limitsOf(cfg), Measure: func() (map[string]float64, error) { return map[string]float64{trimtab.CPU: 3}, nil }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return cfg, step, a
	}
	_, _, other := open()
	cfg, step, a := open()
	loop(t, cfg, step, a)
	if got := a.Holding().Targets[0].Now; got != trimtab.Units(2) {
		t.Errorf("it has %v, want the 2 of 3 cores that the other leaves", got)
	}
	if got := other.Holding().Targets[0].Now; got != trimtab.Units(1) {
		t.Errorf("the other has %v, want its 1", got)
	}
}
