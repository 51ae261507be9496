package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/cli"
)

// simulation parses the flags of `trimtab-lab sim cilantro`.
func simulation(t *testing.T, args ...string) (*simCilantroCmd, *kong.Node) {
	t.Helper()
	var c struct {
		Cilantro simCilantroCmd `cmd:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(append([]string{"cilantro"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return &c.Cilantro, k.Selected()
}

func TestASimulationBeginsWithinItsTrace(t *testing.T) {
	short := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(short, []byte("t_s,qps\n0,40\n1,41\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]simCilantroCmd{
		"the built-in one has 2592000 s": {simFlags: simFlags{Rounds: 1}, Capacity: 1000, Offset: 2_592_001},
		"2 s, the run needs":             {simFlags: simFlags{Rounds: 1}, Capacity: 1000, Offset: 100_000_000, Trace: short},
	} {
		if _, err := c.environment(); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := simCilantroCmd{simFlags: simFlags{Rounds: 2}, Capacity: 1000, Offset: 500}
	if e, err := c.environment(); err != nil || len(e.Trace) != 500+2*120 {
		t.Errorf("%v", err)
	}
}

func TestAFlagOutsideItsRangeIsAnErrorAndItsHelpNamesTheRange(t *testing.T) {
	c, node := simulation(t)
	for _, r := range c.ranges() {
		i := slices.IndexFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == r.Flag })
		if i < 0 || !strings.Contains(node.Flags[i].Help, r.Span()) {
			t.Errorf("--%s: no help that has %s", r.Flag, r.Span())
			continue
		}
		values := []float64{r.Low - 1, r.High + 1}
		if node.Flags[i].Target.CanFloat() {
			values = append(values, math.NaN())
		}
		for _, v := range values {
			args := []string{"sim", "cilantro", fmt.Sprintf("--%s=%s", r.Flag, cli.Plain(v))}
			var said strings.Builder
			if code := Main(t.Context(), args, io.Discard, &said); code != exitError || !strings.Contains(said.String(), "--"+r.Flag+" is ") || !strings.Contains(said.String(), "want "+r.Span()) {
				t.Errorf("%v: exit code %d, %s", args, code, said.String())
			}
		}
	}
}

// TestTheEnvironmentInJSONNamesAllThatTheFiguresDependOn sets each flag alone.
func TestTheEnvironmentInJSONNamesAllThatTheFiguresDependOn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	jobs := write("jobs_exp_env_1.csv", "job,workload_type,slo_type,slo,utility_shape\ndb1j4,craydb0,latency,0.9,linear\nmltj3,craydb0,latency,0.9,linear\nprsj3,craydb0,latency,0.9,linear\n")
	trace := write("twitter_trace_1s.csv", "t_s,qps\n"+func() (rows string) {
		for i := range 1000 {
			rows += fmt.Sprintf("%d,40\n", i)
		}
		return rows
	}())
	write("profile_craydb0.csv", "alloc_per_unit_load,perf_est\n1,0.5\n2,1\n")
	other := map[string]string{"data": dir, "jobs": jobs, "trace": trace, "seed": "9", "seeds": "3", "rounds": "4", "offset": "7", "capacity": "99",
		"queues": "true", "startup": "3s", "interference": "0.1", "drift": "true", "drift-jobs": "db0j1", "drift-factor": "0.5", "arrive": "db0j1=1",
		"leave": "db0j1=1.5", "lie": "db0j1=2", "demand": "db0j1=2", "noise": "0.1", "learner": "kernel", "forecaster": "arma", "level": "0.8",
		"load-weight": "0.5", "step": "3", "beta": "0.5", "move-cost": "0.2", "optimism": "0.5", "guard": "on"}
	environment := func(args ...string) string {
		c, _ := simulation(t, append([]string{"--rounds=2", "--drift"}, args...)...)
		x, err := c.experiment(t.Context())
		if err != nil {
			t.Fatal(args, err)
		}
		out, err := json.Marshal(c.answer(x, nil).Environment)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	usual := environment()
	_, node := simulation(t)
	for _, f := range node.Flags {
		switch f.Name {
		case "policy", "threads", "output", "plot", "help": // in the list of policies, or without influence
			continue
		}
		value, ok := other[f.Name]
		if !ok {
			t.Errorf("--%s: the test has no value for it", f.Name)
			continue
		}
		if f.Name == "drift" {
			value = "false"
		}
		if got := environment("--" + f.Name + "=" + value); got == usual {
			t.Errorf("--%s=%s is not in the environment: %s", f.Name, value, got)
		}
	}
	if got := environment("--jobs=" + jobs); !strings.Contains(got, `"name":"built-in, jobs of jobs_exp_env_1.csv"`) {
		t.Errorf("%s", got)
	}
}

func TestCommasSeparatePoliciesButNotWithinParentheses(t *testing.T) {
	c, _ := simulation(t, "--policy", "social, sum(min(u, 0.9)),all", "--policy=social,min(max(u, sqrt(m)))")
	if want := (cli.Names{"social", "sum(min(u, 0.9))", "all", "social", "min(max(u, sqrt(m)))"}); !slices.Equal(c.Policy, want) {
		t.Fatalf("%q", c.Policy)
	}
	x, err := c.experiment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := x.Names()
	if slices.Sort(known); len(slices.Compact(known)) != len(x.Run) || x.Run[0] != "social" || x.Run[1] != "sum(min(u, 0.9))" {
		t.Errorf("each policy is to run once: %q", x.Run)
	}
}

// countdown is a context that is done when it was asked so often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestAnInterruptEndsARunWithinIt(t *testing.T) {
	c, _ := simulation(t, "--policy=resource-fair", "--rounds=50", "--seeds=1", "--threads=1")
	ctx := &countdown{t.Context(), 10}
	x, err := c.experiment(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Between runs it is asked three times.
	if _, _, err := c.play(ctx, terminal{io.Discard, io.Discard}, x, "runs"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
