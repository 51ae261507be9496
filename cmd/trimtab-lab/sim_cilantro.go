package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/lab/bintree"
	"github.com/trimtab/trimtab/lab/cilantro"
	"github.com/trimtab/trimtab/lab/ridge"
)

// simCilantroCmd is `trimtab-lab sim cilantro`.
type simCilantroCmd struct {
	simFlags `kong:"embed,set='policies=social,egalitarian,njc,resource-fair',set='length=two minutes',set='rounds=180',set='figures=figures 8 to 13',set='own=, and sum(EXPRESSION) or min(EXPRESSION) for your own, of u, weight, p, slo and m = min(1, p/slo).'"`

	Data     string `help:"Directory of the published data: jobs, profiles, trace. Left out: curves and loads fitted to them." type:"existingdir" placeholder:"DIR" group:"Environment:"`
	Jobs     string `help:"Jobs to run instead, as CSV." type:"existingfile" placeholder:"FILE" group:"Environment:"`
	Trace    string `help:"Requests of every second instead, as CSV." type:"existingfile" placeholder:"FILE" group:"Environment:"`
	Offset   int    `help:"Second of the trace to begin at, 0 to 100000000." default:"0" group:"Environment:"`
	Capacity int    `help:"Units that the jobs share, 1 to 1048576, at least one for each." default:"1000" group:"Environment:"`

	Queues       bool               `help:"Requests that were not served wait for the next report." group:"More realistic:"`
	Startup      time.Duration      `help:"Time until added units serve, up to 1m; each change takes half to one and a half of it." default:"0s" group:"More realistic:"`
	Interference float64            `help:"Share of a job's rounds in which a neighbour takes a fifth of its units, 0 to 1." default:"0" group:"More realistic:"`
	Drift        bool               `help:"Performance of --drift-jobs changes in the middle of the run." group:"More realistic:"`
	DriftJobs    []string           `help:"Jobs that drift." default:"db1j4,mltj3,prsj3" group:"More realistic:"`
	DriftFactor  float64            `help:"What their performance is multiplied with, 0.001 to 10." default:"0.7" group:"More realistic:"`
	Arrive       map[string]float64 `help:"Round in which a job arrives, as in prsj1=90.5; more than 0, before the end." placeholder:"JOB=ROUND" group:"More realistic:"`
	Leave        map[string]float64 `help:"Round in which a job leaves, before the end; a fraction is in mid-round." placeholder:"JOB=ROUND" group:"More realistic:"`
	Lie          map[string]float64 `help:"What a job multiplies its reports with, as in db1j6=2; more than 0. Fractions are cut at 1." placeholder:"JOB=FACTOR" group:"More realistic:"`
	Demand       map[string]float64 `help:"Job that reports no performance, with the multiple of its demand that its owner states, more than 0." placeholder:"JOB=FACTOR" group:"More realistic:"`
	Noise        float64            `help:"Extra noise of reports, as a share of them, 0 to 10. Fractions are cut at 1, so those near it report less on average." default:"0" group:"More realistic:"`

	Learner    string  `help:"Learner of the policies that learn: ${enum}. With --forecaster truth as well, truth makes an oracle of any policy." enum:"default,bintree,bintree-published,kernel,truth" default:"default" group:"Policies that learn:"`
	Forecaster string  `help:"Forecaster of loads: auto, arma, smoothing, seasonal, naive or truth." default:"auto" group:"Policies that learn:"`
	Level      float64 `help:"Confidence of bounds, between 0 and 1." default:"0.9" group:"Policies that learn:"`
	LoadWeight float64 `help:"Weight of the load's upper bound over its mean, 0 to 1; 0: the policy's own." default:"0" group:"Policies that learn:"`
	Step       int     `help:"Units that an allocation may move in a round (B), 0 to 1048576; 0: 10, as in the paper, and with the guard a third of the capacity, as in production." default:"0" group:"Policies that learn:"`
	Beta       float64 `help:"Weight of the certain demand over exploration, 0.001 to 1." default:"0.75" group:"Policies that learn:"`
	MoveCost   float64 `help:"What moving as many units as there are costs, in mean utility, 0 to 10; for social, nash and sum." default:"0.05" group:"Policies that learn:"`
	Optimism   float64 `help:"Weight of a performance's upper bound over its mean, 0 to 1; 0: the policy's own." default:"0" group:"Policies that learn:"`
	Guard      string  `help:"Play them without the guard of production, as in the paper (off), with it (on), or both, side by side: ${enum}." enum:"both,off,on" default:"both" group:"Policies that learn:"`
}

// The values of --guard; the third is "off".
const (
	guardBoth = "both"
	guardOn   = "on"
)

// Example is shown by --help.
func (simCilantroCmd) Example() string {
	return "trimtab-lab sim cilantro\ntrimtab-lab sim cilantro --policy social,oracle-social,minerva --data shared/data/cilantro --plot figures\ntrimtab-lab sim cilantro --policy njc --lie db1j6=2 --noise 0.2 --startup 10s --queues -o json\ntrimtab-lab sim cilantro --policy 'social,sum(weight * min(u, 0.9))'"
}

// Validate is called by kong.
func (c *simCilantroCmd) Validate() error { return cli.Within(c.ranges()...) }

// ranges are those of the flags that no package checks, or whose 0 would mean a
// default.
func (c *simCilantroCmd) ranges() []cli.Ranged {
	return append(c.simFlags.ranges(),
		cli.In("offset", float64(c.Offset), 0, 100_000_000), cli.In("capacity", float64(c.Capacity), 1, 1<<20),
		cli.In("interference", c.Interference, 0, 1), cli.In("drift-factor", c.DriftFactor, 0.001, 10), cli.In("noise", c.Noise, 0, 10),
		cli.In("load-weight", c.LoadWeight, 0, 1), cli.In("step", float64(c.Step), 0, 1<<20), cli.In("beta", c.Beta, 0.001, 1),
		cli.In("move-cost", c.MoveCost, 0, 10), cli.In("optimism", c.Optimism, 0, 1))
}

// Run plays the experiment and prints what came of it.
func (c *simCilantroCmd) Run(ctx context.Context, t terminal) error {
	if err := cli.Plottable(c.Plot); err != nil {
		return err
	}
	x, err := c.experiment(ctx)
	if err != nil {
		return err
	}
	outcomes, stopped, err := c.play(ctx, t, x, "runs")
	if err != nil {
		return err
	}
	answer := c.answer(x, outcomes)
	if c.Plot != "" && stopped == nil {
		if err := c.plot(ctx, t, x, answer.summaries()); err != nil {
			return err
		}
	}
	return errors.Join(cli.Print(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) }), stopped)
}

// play runs an experiment under a progress bar, as [playing.under] does.
func (c *simCilantroCmd) play(ctx context.Context, t terminal, x *cilantro.Experiment, what string) (outcomes []cilantro.Outcome, stopped, err error) {
	stopped, err = playing{"cilantro", what, &x.Frame, x.Runs(), func() (_ int, err error) {
		outcomes, err = x.Play()
		return len(outcomes), simHint(err)
	}}.under(ctx, t)
	return outcomes, stopped, err
}

const traceHint = "use fewer --rounds, an earlier --offset, or a longer --trace"

// simHint adds what to do to an error that flags can be at fault for.
func simHint(err error) error {
	switch cilantro.FaultOf(err) {
	case cilantro.TraceFault:
		return hint.Add(err, traceHint)
	case cilantro.JobFault:
		return hint.Add(err, "jobs are those of the first column of --jobs, or db0j1 … prsj3")
	case cilantro.LeaveFault:
		return hint.Add(err, "a job leaves after it arrives and before the end: --leave JOB=ROUND with 0 < ROUND < --rounds")
	}
	return hint.Add(err, "trimtab-lab sim cilantro --help has the ranges of all flags")
}

// fileHint adds what to do to an error of a file; one with its line says it.
func fileHint(err error) error {
	var column *cilantro.ColumnError
	switch {
	case errors.As(err, &column) && column.Absent:
		return hint.Add(err, "its first line must name the columns %s", strings.Join(column.Known, ", "))
	case errors.As(err, &column):
		return hint.Add(err, "%s", cli.DidYouMean(column.Column, column.Known))
	case errors.Is(err, os.ErrNotExist):
		return hint.Add(err, "the directory of --data has jobs_exp_env_1.csv, twitter_trace_1s.csv and a profile_TYPE.csv for each workload_type")
	}
	return err
}

// experiment turns flags into an experiment.
func (c *simCilantroCmd) experiment(ctx context.Context) (*cilantro.Experiment, error) {
	env, err := c.environment()
	if err != nil {
		return nil, err
	}
	x := &cilantro.Experiment{
		Frame: c.frame(ctx), Env: env,
		Options: cilantro.Options{Queues: c.Queues, Startup: c.Startup, Interference: c.Interference,
			Lies: c.Lie, Noise: c.Noise, Arrive: c.Arrive, Leave: c.Leave, Demands: c.Demand},
		Online: cilantro.Online{Level: c.Level, Step: c.Step, Beta: c.Beta, Guard: c.Guard == guardOn},
		Both:   c.Guard == guardBoth,
	}
	if err := c.policies(x); err != nil {
		return nil, err
	}
	x.Run = chosen(c.Policy, x.Names())
	if c.Drift {
		x.Options.Drift = cilantro.Drift{Jobs: c.DriftJobs, Factor: c.DriftFactor}
	}
	if err := c.learners(&x.Online); err != nil {
		return nil, err
	}
	return x, nil
}

// policies adds those of production, with the settings of this run: the named
// ones, and the operator's own that are to be run.
func (c *simCilantroCmd) policies(x *cilantro.Experiment) error {
	cfg := &config.Config{}
	cfg.Planning.Optimism, cfg.Planning.MoveCost, cfg.Planning.LoadWeight = c.Optimism, c.MoveCost, c.LoadWeight
	for i := range x.Env.Jobs {
		j := &x.Env.Jobs[i]
		cfg.Workloads = append(cfg.Workloads, config.Workload{Name: j.Name, Weight: j.Weight, Utility: j.Shape, SLO: config.SLO{Performance: j.SLO}})
	}
	names := []string{"social", "egalitarian", "njc", "nash"}
	x.Online.Worths = map[string][]func(float64) float64{}
	for _, name := range chosen(c.Policy, nil) {
		if cfg.Objective = name; isOwn(cfg) {
			worths, _, err := cfg.Worths()
			if err != nil {
				return hint.Add(fmt.Errorf("policy %s: %w", name, err), "write sum(…) or min(…) of arithmetic on u, weight, p, slo and m = min(1, p/slo), which never falls with p")
			}
			x.Online.Worths[name], names = worths, append(names, name)
		}
	}
	for _, name := range names {
		cfg.Objective = name
		p, err := site.PolicyOf(cfg)
		if err != nil {
			return err
		}
		x.Policies = append(x.Policies, p)
	}
	return nil
}

// isOwn reports whether the objective is an expression of the operator's.
func isOwn(cfg *config.Config) bool {
	_, _, own := cfg.Own()
	return own
}

// learners sets what learns and forecasts; nil is the truth.
func (c *simCilantroCmd) learners(o *cilantro.Online) error {
	if _, err := gp.New(c.Level); err != nil {
		return hint.Add(err, "--level is a probability, as in 0.9")
	}
	switch c.Learner {
	case "default":
		o.Learner = func(*cilantro.Profile) learn.Learner { l, _ := gp.New(c.Level); return l }
	case "bintree":
		o.Learner = func(*cilantro.Profile) learn.Learner { l, _ := bintree.New(c.Level); return l }
	case "bintree-published":
		o.Learner = cilantro.PublishedTree
	case "kernel":
		o.Learner = func(*cilantro.Profile) learn.Learner { l, _ := ridge.New(c.Level); return l }
	}
	if c.Forecaster == "truth" {
		return nil
	}
	f := auto.Config{Horizon: cilantro.Windows, Level: c.Level, Step: cilantro.WindowSeconds * time.Second}
	if _, err := auto.New(c.Forecaster, f); err != nil {
		return hint.Add(err, "%s", cli.DidYouMean(c.Forecaster, append(auto.Names(), "truth")))
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
	case recorded:
		seconds = 0 // read below, and as long as it is
	case c.Offset > maxOffset:
		return nil, hint.Add(trimtab.Invalidf("simulation: trace: the built-in one has %d s, not %d", maxOffset, c.Offset), traceHint)
	}
	e := cilantro.BuiltIn(seconds)
	e.Rounds, e.Offset, e.Capacity = c.Rounds, c.Offset, c.Capacity
	if err := c.files(e); err != nil {
		return nil, fileHint(err)
	}
	err := e.Validate()
	if err == nil {
		return e, nil
	}
	switch cilantro.FaultOf(err) {
	case cilantro.EnvironmentFault, cilantro.TraceFault:
		return nil, simHint(err)
	case cilantro.ProfileFault:
		return nil, hint.Add(err, "there are profiles of %s; --data DIR takes profile_TYPE.csv of other types", strings.Join(slices.Sorted(maps.Keys(e.Profiles)), ", "))
	}
	return nil, err
}

// files reads what is given into e, and names e after it.
func (c *simCilantroCmd) files(e *cilantro.Environment) error {
	var err error
	jobs, trace := c.Jobs, c.Trace
	if c.Data != "" {
		if e.Name, err = filepath.Base(c.Data), c.profiles(e); err != nil {
			return err
		}
		jobs = firstOf(jobs, filepath.Join(c.Data, "jobs_exp_env_1.csv"))
		trace = firstOf(trace, filepath.Join(c.Data, "twitter_trace_1s.csv"))
	}
	if jobs != "" {
		if e.Jobs, err = readFile(jobs, cilantro.ReadJobs); err != nil {
			return err
		}
	}
	if trace != "" {
		if e.Trace, err = readFile(trace, cilantro.ReadTrace); err != nil {
			return err
		}
	}
	if c.Jobs != "" {
		e.Name += ", jobs of " + filepath.Base(c.Jobs)
	}
	if c.Trace != "" {
		e.Name += ", trace of " + filepath.Base(c.Trace)
	}
	return nil
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

// simAnswer is what `trimtab-lab sim cilantro -o json` prints.
type simAnswer struct {
	Environment simEnvironment `json:"environment"`
	Policies    []simPolicy    `json:"policies"`
}

// simPolicy is one policy, without the guard unless --guard on was asked for.
type simPolicy struct {
	cilantro.Summary

	// Guarded is the same policy with the guard, where both were played; nil
	// also for one that has none.
	Guarded *cilantro.Summary `json:"guard_on,omitempty"`
}

// summaries are what the figures are drawn of.
func (a *simAnswer) summaries() (out []cilantro.Summary) {
	for i := range a.Policies {
		out = append(out, a.Policies[i].Summary)
	}
	return out
}

// simEnvironment is all that the figures depend on, besides the policies.
type simEnvironment struct {
	Name string `json:"name"`
	// Data, JobsFile and TraceFile are the files that were read, if any.
	Data      string `json:"data,omitempty"`
	JobsFile  string `json:"jobs_file,omitempty"`
	TraceFile string `json:"trace_file,omitempty"`

	Jobs       int              `json:"jobs"`
	Capacity   int              `json:"capacity"`
	Rounds     int              `json:"rounds"`
	Seeds      int              `json:"seeds"`
	Seed       uint64           `json:"seed"`
	Offset     int              `json:"offset_s"`
	Learner    string           `json:"learner"`
	Forecaster string           `json:"forecaster"`
	Level      float64          `json:"level"`
	LoadWeight float64          `json:"load_weight"`
	Step       int              `json:"step"`
	Beta       float64          `json:"beta"`
	MoveCost   float64          `json:"move_cost"`
	Optimism   float64          `json:"optimism"`
	Guard      string           `json:"guard"`
	Options    cilantro.Options `json:"options"`
}

func (c *simCilantroCmd) answer(x *cilantro.Experiment, outcomes []cilantro.Outcome) *simAnswer {
	a := &simAnswer{Environment: simEnvironment{Name: x.Env.Name, Data: c.Data, JobsFile: c.Jobs, TraceFile: c.Trace,
		Jobs: len(x.Env.Jobs), Capacity: x.Env.Capacity, Rounds: x.Env.Rounds, Seeds: x.Seeds, Seed: x.First, Offset: x.Env.Offset,
		Learner: c.Learner, Forecaster: c.Forecaster, Level: c.Level, LoadWeight: c.LoadWeight, Step: c.Step, Beta: c.Beta,
		MoveCost: c.MoveCost, Optimism: c.Optimism, Guard: c.Guard, Options: x.Options}}
	for i := range outcomes {
		o := &outcomes[i]
		p := simPolicy{Summary: cilantro.Summarize(x.Env, o)}
		if o.Guarded != nil {
			s := cilantro.Summarize(x.Env, &cilantro.Outcome{Policy: o.Policy, Runs: o.Guarded})
			p.Guarded = &s
		}
		a.Policies = append(a.Policies, p)
	}
	return a
}

// text prints the table: what a policy does without the guard, and next to it
// what it does as in production, where both were played.
func (a *simAnswer) text(w io.Writer) {
	e := &a.Environment
	fmt.Fprintf(w, "%s: %d jobs, %d units, %d rounds of 2 min, mean of %s; in brackets the last %d rounds\n%s\n\n",
		e.Name, e.Jobs, e.Capacity, e.Rounds, view.Count(e.Seeds, "seed"), e.Rounds-e.Rounds*2/3, guardWords()[e.Guard])
	head := []string{"POLICY"}
	for _, name := range []string{"SOCIAL", "EGALITARIAN", "NJC", "USEFUL", "MOVED"} {
		if head = append(head, name); e.Guard == guardBoth {
			head = append(head, "GUARD")
		}
	}
	rows := [][]string{append(head, "BAND", "DECIDE", "± SOCIAL")}
	for i := range a.Policies {
		rows = append(rows, a.Policies[i].row(e.Guard == guardBoth))
	}
	cli.Table(w, rows)
}

// guardWords says of each value of --guard what is printed.
func guardWords() map[string]string {
	return map[string]string{
		guardBoth: "policies that learn: as in the paper, and in the columns GUARD as in production, guard on",
		"off":     "policies that learn: as in the paper, guard off",
		guardOn:   "policies that learn: as in production, guard on",
	}
}

// row is a policy's line of the table.
func (p *simPolicy) row(both bool) []string {
	out := []string{p.Policy}
	figure := func(text string, guarded func(*cilantro.Summary) string) {
		if out = append(out, text); !both {
			return
		}
		if text = "–"; p.Guarded != nil {
			text = guarded(p.Guarded)
		}
		out = append(out, text)
	}
	for _, of := range []func(*cilantro.Score) float64{
		func(s *cilantro.Score) float64 { return s.Social }, func(s *cilantro.Score) float64 { return s.Egalitarian },
		func(s *cilantro.Score) float64 { return s.NJC }, func(s *cilantro.Score) float64 { return s.Useful },
	} {
		figure(fmt.Sprintf("%.3f (%.3f)", of(&p.Score), of(&p.Last)), func(s *cilantro.Summary) string { return fmt.Sprintf("%.3f", of(&s.Score)) })
	}
	figure(fmt.Sprintf("%.1f", p.Moved), func(s *cilantro.Summary) string { return fmt.Sprintf("%.1f", s.Moved) })
	spread := "–"
	if v, ok := p.StdErr["social"]; ok {
		spread = fmt.Sprintf("%.4f", v)
	}
	return append(out, covered(p.Coverage), milliseconds(p.Compute.P50), spread)
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
