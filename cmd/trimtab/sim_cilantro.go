package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/bintree"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/sim/cilantro"
)

// simCilantroCmd is `trimtab sim cilantro`.
type simCilantroCmd struct {
	simFlags `kong:"embed,set='policies=social,egalitarian,njc,resource-fair',set='length=two minutes',set='rounds=180',set='figures=figures 8 to 13'"`

	Data     string `help:"Directory of the published data: jobs, profiles, trace. Left out: curves and loads fitted to them." type:"existingdir" placeholder:"DIR" group:"Environment:"`
	Jobs     string `help:"Jobs to run instead, as CSV." type:"existingfile" placeholder:"FILE" group:"Environment:"`
	Trace    string `help:"Requests of every second instead, as CSV." type:"existingfile" placeholder:"FILE" group:"Environment:"`
	Offset   int    `help:"Second of the trace to begin at." default:"0" group:"Environment:"`
	Capacity int    `help:"Units that the jobs share." default:"1000" group:"Environment:"`

	Queues       bool               `help:"Requests that were not served wait for the next report." group:"As it is in life:"`
	Startup      time.Duration      `help:"Time until added units serve; each change takes half to one and a half of it." default:"0s" group:"As it is in life:"`
	Interference float64            `help:"Share of a job's rounds in which a neighbour takes a fifth of its units." default:"0" group:"As it is in life:"`
	Drift        bool               `help:"Performance of --drift-jobs changes in the middle of the run." group:"As it is in life:"`
	DriftJobs    []string           `help:"Jobs that drift." default:"db1j4,mltj3,prsj3" group:"As it is in life:"`
	DriftFactor  float64            `help:"What their performance is multiplied with." default:"0.7" group:"As it is in life:"`
	Arrive       map[string]float64 `help:"Round in which a job arrives, as in prsj1=90.5." placeholder:"JOB=ROUND" group:"As it is in life:"`
	Leave        map[string]float64 `help:"Round in which a job leaves; a fraction is in mid-round." placeholder:"JOB=ROUND" group:"As it is in life:"`
	Lie          map[string]float64 `help:"What a job multiplies its reports with, as in db1j6=2." placeholder:"JOB=FACTOR" group:"As it is in life:"`
	Demand       map[string]float64 `help:"Job that reports no performance, with the multiple of its demand that its owner states." placeholder:"JOB=FACTOR" group:"As it is in life:"`
	Noise        float64            `help:"Extra noise of reports, as a share of them." default:"0" group:"As it is in life:"`

	Learner    string  `help:"Learner of the policies that learn: ${enum}." enum:"default,bintree,truth" default:"default" group:"Policies that learn:"`
	Forecaster string  `help:"Forecaster of loads: auto, arma, smoothing, seasonal, naive or truth." default:"auto" group:"Policies that learn:"`
	Level      float64 `help:"Confidence of bounds." default:"0.9" group:"Policies that learn:"`
	LoadWeight float64 `help:"Weight of the load's upper bound over its mean; 0: the policy's own." default:"0" group:"Policies that learn:"`
	Step       int     `help:"Units that an allocation may move in a round (B)." default:"10" group:"Policies that learn:"`
	Beta       float64 `help:"Weight of the certain demand over exploration." default:"0.75" group:"Policies that learn:"`
	MoveCost   float64 `help:"What moving as many units as there are costs, in mean utility, for social and nash." default:"0.05" group:"Policies that learn:"`
	Optimism   float64 `help:"Weight of a performance's upper bound over its mean; 0: the policy's own." default:"0" group:"Policies that learn:"`
	Guard      bool    `help:"Let the guard of production bound the steps." group:"Policies that learn:"`
}

// Example is shown by --help.
func (simCilantroCmd) Example() string {
	return "trimtab sim cilantro\ntrimtab sim cilantro --policy social,oracle-social,minerva --data shared/data/cilantro --plot figures\ntrimtab sim cilantro --policy njc --lie db1j6=2 --noise 0.2 --startup 10s --queues -o json"
}

// Run plays the experiment and prints what came of it.
func (c *simCilantroCmd) Run(ctx context.Context, t terminal) error {
	x, err := c.experiment()
	if err != nil {
		return err
	}
	if len(c.Policy) == 1 && c.Policy[0] == "all" {
		x.Run = x.Names()
	}
	outcomes, err := c.play(ctx, t, x, "runs")
	if err != nil {
		return err
	}
	answer := c.answer(x, outcomes)
	if c.Plot != "" {
		if err := c.plot(ctx, t, x, answer.Policies); err != nil {
			return err
		}
	}
	return printed(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) })
}

// play runs an experiment under a progress bar; ctx ends it between runs.
func (c *simCilantroCmd) play(ctx context.Context, t terminal, x *cilantro.Experiment, what string) ([]cilantro.Outcome, error) {
	x.Runner, x.Watch = parallel(ctx, c.Threads), stopwatch()
	var outcomes []cilantro.Outcome
	err := counted(t.err, what, len(x.Run)*x.Seeds, func(done func()) (err error) {
		x.Done = done
		outcomes, err = x.Play()
		return err
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run simulation: %w", ctx.Err())
	}
	return outcomes, simHint(err)
}

// simHint adds what to do to an error of a simulation.
func simHint(err error) error {
	var unknown *cilantro.UnknownError
	var column *cilantro.ColumnError
	switch {
	case errors.As(err, &unknown):
		return hint(err, "%s", didYouMean(unknown.Policy, unknown.Known))
	case errors.As(err, &column) && column.Absent:
		return hint(err, "its first line must name the columns %s", strings.Join(column.Known, ", "))
	case errors.As(err, &column):
		return hint(err, "%s", didYouMean(column.Column, column.Known))
	case errors.Is(err, trimtab.ErrInvalid) && strings.Contains(err.Error(), "trace: "):
		return hint(err, "use fewer --rounds, an earlier --offset, or a longer --trace")
	case errors.Is(err, trimtab.ErrInvalid) && strings.Contains(err.Error(), "no such job"):
		return hint(err, "jobs are those of the first column of --jobs, or db0j1 … prsj3")
	case errors.Is(err, trimtab.ErrInvalid) && strings.Contains(err.Error(), "leaves in round"):
		return hint(err, "a job leaves after it arrives and before the end: --leave JOB=ROUND with 0 < ROUND < --rounds")
	}
	return hint(err, "trimtab sim cilantro --help has the ranges of all flags")
}

// experiment turns flags into an experiment.
func (c *simCilantroCmd) experiment() (*cilantro.Experiment, error) {
	env, err := c.environment()
	if err != nil {
		return nil, simHint(err)
	}
	x := &cilantro.Experiment{
		Env: env, Run: c.Policy, Seeds: c.Seeds, First: c.Seed,
		Options: cilantro.Options{Queues: c.Queues, Startup: c.Startup, Interference: c.Interference,
			Lies: c.Lie, Noise: c.Noise, Arrive: c.Arrive, Leave: c.Leave, Demands: c.Demand},
		Online: cilantro.Online{Level: c.Level, Step: c.Step, Beta: c.Beta, Guard: c.Guard},
	}
	if x.Policies, err = c.policies(); err != nil {
		return nil, err
	}
	if c.Drift {
		x.Options.Drift = cilantro.Drift{Jobs: c.DriftJobs, Factor: c.DriftFactor}
	}
	if err := c.learners(&x.Online); err != nil {
		return nil, err
	}
	return x, nil
}

// policies are those of production, with the settings of this run.
func (c *simCilantroCmd) policies() ([]planner.Policy, error) {
	var out []planner.Policy
	for _, name := range []string{"social", "egalitarian", "njc", "nash"} {
		cfg := &config.Config{Objective: name}
		cfg.Planning.Optimism, cfg.Planning.MoveCost, cfg.Planning.LoadWeight = c.Optimism, c.MoveCost, c.LoadWeight
		p, err := policyOf(cfg)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// learners sets what learns and forecasts; nil is the truth.
func (c *simCilantroCmd) learners(o *cilantro.Online) error {
	if _, err := gp.New(c.Level); err != nil {
		return hint(err, "--level is a probability, as in 0.9")
	}
	switch c.Learner {
	case "default":
		o.Learner = func() learn.Learner { l, _ := gp.New(c.Level); return l }
	case "bintree":
		o.Learner = func() learn.Learner { l, _ := bintree.New(c.Level); return l }
	}
	if c.Forecaster == "truth" {
		return nil
	}
	f := auto.Config{Horizon: cilantro.Windows, Level: c.Level, Step: cilantro.WindowSeconds * time.Second}
	if _, err := auto.New(c.Forecaster, f); err != nil {
		return hint(err, "%s", didYouMean(c.Forecaster, append(auto.Names(), "truth")))
	}
	o.Forecaster = func() forecast.Forecaster { f, _ := auto.New(c.Forecaster, f); return f }
	return nil
}

// maxOffset bounds where in the built-in trace a run may begin: it repeats its
// days, with other noise, and is made from its first second on.
const maxOffset = 30 * 24 * 3600

// environment reads the published files, or builds what is fitted to them.
func (c *simCilantroCmd) environment() (*cilantro.Environment, error) {
	seconds, recorded := c.Offset+c.Rounds*cilantro.Windows*cilantro.WindowSeconds, c.Data != "" || c.Trace != ""
	switch {
	case c.Rounds < 1 || c.Rounds > 100_000 || c.Offset < 0 || c.Offset > 100_000_000:
		return nil, trimtab.Invalidf("simulation: %d rounds from second %d", c.Rounds, c.Offset)
	case recorded:
		seconds = 0 // read below, and as long as it is
	case c.Offset > maxOffset:
		return nil, trimtab.Invalidf("simulation: trace: the built-in one has %d s, not %d", maxOffset, c.Offset)
	}
	e := cilantro.BuiltIn(seconds)
	e.Rounds, e.Offset, e.Capacity = c.Rounds, c.Offset, c.Capacity
	var err error
	jobs, trace := c.Jobs, c.Trace
	if c.Data != "" {
		if e.Name, err = filepath.Base(c.Data), c.profiles(e); err != nil {
			return nil, err
		}
		jobs = firstOf(jobs, filepath.Join(c.Data, "jobs_exp_env_1.csv"))
		trace = firstOf(trace, filepath.Join(c.Data, "twitter_trace_1s.csv"))
	}
	if jobs != "" {
		if e.Jobs, err = readFile(jobs, cilantro.ReadJobs); err != nil {
			return nil, err
		}
	}
	if trace != "" {
		if e.Trace, err = readFile(trace, cilantro.ReadTrace); err != nil {
			return nil, err
		}
	}
	return e, e.Validate()
}

// profiles reads profile_<type>.csv of the data directory.
func (c *simCilantroCmd) profiles(e *cilantro.Environment) error {
	names, err := filepath.Glob(filepath.Join(c.Data, "profile_*.csv"))
	if err != nil {
		return fmt.Errorf("list profiles: %w", err)
	}
	read := map[string]*cilantro.Profile{}
	for _, name := range names {
		kind := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "profile_"), ".csv")
		if kind == "meta" {
			continue
		}
		p, err := readFile(name, cilantro.ReadProfile)
		if err != nil {
			return err
		}
		if fitted := e.Profiles[kind]; fitted != nil {
			p.Work = fitted.Work
		}
		read[kind] = p
	}
	if len(read) == 0 {
		return fmt.Errorf("read profiles in %s: %w", c.Data, os.ErrNotExist)
	}
	e.Profiles = read
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// simAnswer is what `trimtab sim cilantro -o json` prints.
type simAnswer struct {
	Environment simEnvironment     `json:"environment"`
	Policies    []cilantro.Summary `json:"policies"`
}

type simEnvironment struct {
	Name       string           `json:"name"`
	Jobs       int              `json:"jobs"`
	Capacity   int              `json:"capacity"`
	Rounds     int              `json:"rounds"`
	Seeds      int              `json:"seeds"`
	Seed       uint64           `json:"seed"`
	Offset     int              `json:"offset_s"`
	Learner    string           `json:"learner"`
	Forecaster string           `json:"forecaster"`
	Options    cilantro.Options `json:"options"`
}

func (c *simCilantroCmd) answer(x *cilantro.Experiment, outcomes []cilantro.Outcome) *simAnswer {
	a := &simAnswer{Environment: simEnvironment{Name: x.Env.Name, Jobs: len(x.Env.Jobs), Capacity: x.Env.Capacity, Rounds: x.Env.Rounds,
		Seeds: x.Seeds, Seed: x.First, Offset: x.Env.Offset, Learner: c.Learner, Forecaster: c.Forecaster, Options: x.Options}}
	for i := range outcomes {
		a.Policies = append(a.Policies, cilantro.Summarize(x.Env, &outcomes[i]))
	}
	return a
}

// text prints the table.
func (a *simAnswer) text(w io.Writer) {
	e := &a.Environment
	fmt.Fprintf(w, "%s: %d jobs, %d units, %d rounds of 2 min, mean of %d seeds; in brackets the last %d rounds\n\n",
		e.Name, e.Jobs, e.Capacity, e.Rounds, e.Seeds, e.Rounds-e.Rounds*2/3)
	rows := [][]string{{"POLICY", "SOCIAL", "EGALITARIAN", "NJC", "USEFUL", "MOVED", "BAND", "DECIDE", "± SOCIAL"}}
	for i := range a.Policies {
		p := &a.Policies[i]
		pair := func(all, last float64) string { return fmt.Sprintf("%.3f (%.3f)", all, last) }
		rows = append(rows, []string{p.Policy, pair(p.Social, p.Last.Social), pair(p.Egalitarian, p.Last.Egalitarian), pair(p.NJC, p.Last.NJC),
			pair(p.Useful, p.Last.Useful), fmt.Sprintf("%.1f", p.Moved), covered(p.Coverage), milliseconds(p.Compute.P50),
			fmt.Sprintf("%.4f", p.StdErr["social"])})
	}
	table(w, rows)
}

// milliseconds prints a time so that it reads as one.
func milliseconds(v float64) string {
	switch {
	case v < 0.01:
		return "<0.01 ms"
	case v < 10:
		return fmt.Sprintf("%.2f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// covered is the mean share of the true curves inside the band.
func covered(of map[string]float64) string {
	if len(of) == 0 {
		return "–"
	}
	sum := 0.0
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		sum += of[name]
	}
	return fmt.Sprintf("%.2f", sum/float64(len(of)))
}
