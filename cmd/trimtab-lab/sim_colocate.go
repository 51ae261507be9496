package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	control "github.com/trimtab/trimtab/planner/colocate"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab/colocate"
	"github.com/trimtab/trimtab/sim/figure"
)

// simColocateCmd is `trimtab-lab sim colocate`.
type simColocateCmd struct {
	Policy   cli.Names `help:"Policies to run, side by side; \"all\" for every one." default:"heracles,rhythm-indiscriminate,rhythm,deflation,oracle" placeholder:"NAME,..."`
	Env      string    `help:"Environment to play instead of the built-in one, as JSON: docs/sim-colocate.md." type:"existingfile" placeholder:"FILE"`
	Load     cli.Names `help:"Loads of the built-in environment: constant, clarknet." default:"constant,clarknet" placeholder:"NAME,..."`
	PrintEnv bool      `help:"Print the environment as JSON, to begin one of your own, and play nothing."`
	Limits   string    `help:"How slacklimits are found: by the paper's algorithm 1 before the run, by the policy's own search before the run, or by it in the run: ${enum}." enum:"algorithm1,search,online" default:"algorithm1"`
	Scale    float64   `help:"What slacklimits are multiplied with, 0.1 to 10 (table 2)." default:"1"`
	Hours    float64   `help:"Length of each run, 0.01 to 240." default:"6"`
	runFlags
	Plot string `help:"Directory to draw the paper's figure 30 into, as SVG: the course of each service under each policy." type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (simColocateCmd) Example() string {
	return "trimtab-lab sim colocate\ntrimtab-lab sim colocate --policy heracles,rhythm --load clarknet --hours 1 --seeds 2\ntrimtab-lab sim colocate --print-env > mine.json && trimtab-lab sim colocate --env mine.json --policy all -o json"
}

// Validate is called by kong.
func (c *simColocateCmd) Validate() error { return cli.Within(c.ranges()...) }

func (c *simColocateCmd) ranges() []cli.Ranged {
	return append(c.runFlags.ranges(10_000), cli.In("hours", c.Hours, 0.01, 240), cli.In("scale", c.Scale, 0.1, 10))
}

// colocateAnswer is what `trimtab-lab sim colocate -o json` prints.
type colocateAnswer struct {
	// Rows have one line for each environment, policy and service.
	Rows  []colocateRow  `json:"policies"`
	Loads []colocatePart `json:"environments"`
}

// colocateRow is one service under one policy.
type colocateRow struct {
	Environment string  `json:"environment"`
	Policy      string  `json:"policy"`
	Service     string  `json:"service"`
	EMU         float64 `json:"emu"`
	Work        float64 `json:"be_throughput"`
	CPU         float64 `json:"cpu"`
	Band        float64 `json:"membw"`
	Held        float64 `json:"slo_held"`
	Worst       float64 `json:"worst_p99_over_slo"`
	Kills       float64 `json:"be_kills"`
	// Lost is in hours of a machine.
	Lost float64 `json:"lost_work"`
}

// rows are those of one environment.
func (p *colocatePart) rows() (out []colocateRow) {
	for i := range p.Policies {
		s := &p.Policies[i]
		for _, name := range slices.Sorted(maps.Keys(s.Services)) {
			f := s.Services[name]
			out = append(out, colocateRow{p.Environment, s.Policy, name, f.EMU, f.Work, f.CPU, f.Band, f.Held, f.Worst, f.Kills, f.Lost})
		}
	}
	return out
}

// colocatePart is one environment.
type colocatePart struct {
	Environment string             `json:"environment"`
	Hosts       int                `json:"hosts"`
	Hours       float64            `json:"hours"`
	Seeds       int                `json:"seeds"`
	Seed        uint64             `json:"seed"`
	Limits      string             `json:"limits"`
	Scale       float64            `json:"scale"`
	Profiles    []colocate.Profile `json:"profiles"`
	Policies    []colocate.Summary `json:"policies"`
}

// Run plays the experiment and prints what came of it.
func (c *simColocateCmd) Run(ctx context.Context, t terminal) error {
	environments, err := c.environments()
	if err != nil {
		return err
	}
	if c.PrintEnv {
		out := json.NewEncoder(t.out)
		out.SetIndent("", "  ")
		if err := out.Encode(environments[0]); err != nil { // one file has one
			return fmt.Errorf("print environment: %w", err)
		}
		return nil
	}
	if err := cli.Plottable(c.Plot); err != nil {
		return err
	}
	answer := &colocateAnswer{}
	for _, e := range environments {
		part, err := c.play(ctx, t, e)
		if part != nil {
			answer.Loads = append(answer.Loads, *part)
			answer.Rows = append(answer.Rows, part.rows()...)
		}
		if err != nil && (ctx.Err() == nil || len(answer.Loads) == 0) {
			return err
		}
		if err != nil {
			break
		}
	}
	return errors.Join(cli.Print(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) }), cutShort(ctx, len(answer.Loads)))
}

// environments are those to be played.
func (c *simColocateCmd) environments() ([]*colocate.Environment, error) {
	if c.Env != "" {
		e, err := readFile(c.Env, colocate.Read)
		if err != nil {
			return nil, hint.Add(err, "trimtab-lab sim colocate --print-env prints one that is right; docs/sim-colocate.md describes each name")
		}
		e.Name = cmp.Or(e.Name, filepath.Base(c.Env))
		return []*colocate.Environment{e}, nil
	}
	var out []*colocate.Environment
	known := []string{colocate.Constant, colocate.Production}
	for _, load := range c.Load {
		e := colocate.BuiltIn(load)
		if load != colocate.Constant && load != colocate.Production {
			return nil, hint.Add(fmt.Errorf("--load %.60q: unknown", load), "%s", cli.DidYouMean(load, known))
		}
		out = append(out, e)
	}
	return out, nil
}

func (c *simColocateCmd) play(ctx context.Context, t terminal, e *colocate.Environment) (*colocatePart, error) {
	x := &colocate.Experiment{Frame: c.frame(ctx), Env: e, Run: chosen(c.Policy, colocate.PolicyNames()), Periods: max(1, int(c.Hours*3600/colocate.PeriodSeconds)),
		Limits: colocate.Limits(c.Limits), Scale: c.Scale, Course: c.Plot != ""}
	var known []colocate.Profile
	var outcomes []colocate.Outcome
	stopped, err := playing{"colocate", "runs, " + e.Name, &x.Frame, x.Runs(), func() (_ int, err error) {
		known, outcomes, err = x.Play()
		return len(outcomes), err
	}}.under(ctx, t)
	if err != nil {
		return nil, err
	}
	if c.Plot != "" && stopped == nil {
		if err := c.plot(e, outcomes); err != nil {
			return nil, err
		}
	}
	return &colocatePart{Environment: e.Name, Hosts: len(e.Hosts), Hours: c.Hours, Seeds: c.Seeds, Seed: c.Seed, Limits: c.Limits, Scale: c.Scale,
		Profiles: known, Policies: colocate.Summarize(outcomes)}, stopped
}

// text prints the tables.
func (a *colocateAnswer) text(w io.Writer) {
	for i := range a.Loads {
		if i > 0 {
			fmt.Fprintln(w)
		}
		a.Loads[i].text(w)
	}
}

func (p *colocatePart) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %d services on %d hosts, %g h of 2-s periods, mean of %s\n\n", p.Environment, len(p.Profiles), p.Hosts, p.Hours, view.Count(p.Seeds, "seed"))
	rows := [][]string{{"POLICY", "EMU", "±", "OVER HERACLES", "LEAST SERVICE", "OF ORACLE", "BE WORK", "CPU", "MEMBW", "SLO HELD", "WORST P99/SLO", "KILLS", "LOST H"}}
	for i := range p.Policies {
		rows = append(rows, policyRow(&p.Policies[i]))
	}
	cli.Table(w, rows)
	fmt.Fprintln(w, "\nEMU (share of periods with the SLO held) by service")
	rows = [][]string{{"POLICY"}}
	for i := range p.Profiles {
		rows[0] = append(rows[0], strings.ToUpper(p.Profiles[i].Service))
	}
	for i := range p.Policies {
		row := []string{p.Policies[i].Policy}
		for j := range p.Profiles {
			f := p.Policies[i].Services[p.Profiles[j].Service]
			row = append(row, fmt.Sprintf("%.3f (%s)", f.EMU, held(f.Held)))
		}
		rows = append(rows, row)
	}
	cli.Table(w, rows)
	fmt.Fprintln(w, "\ndecisions of all hosts, a run")
	verbs := []control.Verb{control.AllowBEGrowth, control.DisallowBEGrowth, control.CutBE, control.SuspendBE, control.StopBE}
	rows = [][]string{{"POLICY"}}
	for _, v := range verbs {
		rows[0] = append(rows[0], string(v))
	}
	for i := range p.Policies {
		row := []string{p.Policies[i].Policy}
		for _, v := range verbs {
			row = append(row, fmt.Sprintf("%.0f", p.Policies[i].Decisions[v]))
		}
		rows = append(rows, row)
	}
	cli.Table(w, rows)
}

// held is a share that is near 1, rounded down: 99.99% is not 100%.
func held(v float64) string { return fmt.Sprintf("%.2f%%", float64(int(v*10_000))/100) }

// policyRow is a policy's line of the table.
func policyRow(s *colocate.Summary) []string {
	percent := func(v *float64, sign string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(sign+"%%", 100**v)
	}
	err := "–"
	if s.StdErr != nil {
		err = fmt.Sprintf("%.3f", s.StdErr.EMU)
	}
	return []string{s.Policy, fmt.Sprintf("%.3f", s.EMU), err, percent(s.OverHeracles, "%+.1f"), percent(s.LeastOver, "%+.1f"), percent(s.EMUOfOracle, "%.0f"),
		fmt.Sprintf("%.3f", s.Work), fmt.Sprintf("%.0f%%", 100*s.CPU), fmt.Sprintf("%.0f%%", 100*s.Band), held(s.Held),
		fmt.Sprintf("%.2f", s.Worst), fmt.Sprintf("%.0f", s.Kills), fmt.Sprintf("%.2f", s.Lost)}
}

// plot draws figure 30: a service's load and tail, and its best-effort jobs by host.
func (c *simColocateCmd) plot(e *colocate.Environment, outcomes []colocate.Outcome) error {
	load := "trace"
	if len(e.Load.Levels) > 0 {
		load = "constant"
	}
	for i := range outcomes {
		for _, course := range outcomes[i].Courses {
			title := course.Service + " under " + outcomes[i].Policy
			name := fmt.Sprintf("fig30-%s-%s-%s", load, strings.ReplaceAll(course.Service, string(filepath.Separator), "-"), outcomes[i].Policy)
			for what, chart := range courseCharts(title, &course) {
				if err := cli.Draw(filepath.Join(c.Plot, name+"-"+what+".svg"), chart.Lines); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// courseCharts are the parts of figure 30.
func courseCharts(title string, c *colocate.Course) map[string]*figure.Chart {
	line := func(name string, y []float64) figure.Series { return figure.Series{Name: name, X: c.Minutes, Y: y} }
	out := map[string]*figure.Chart{
		"tail":  {Title: title + ": load and worst p99 of a minute", X: "minutes", Y: "share", Series: []figure.Series{line("load", c.Load), line("p99 / SLO", c.Tail)}, High: 2},
		"work":  {Title: title + ": best-effort throughput", X: "minutes", Y: "alone = 1"},
		"cores": {Title: title + ": cores of best-effort jobs", X: "minutes", Y: "cores"},
		"llc":   {Title: title + ": cache of best-effort jobs", X: "minutes", Y: "ways"},
		"jobs":  {Title: title + ": best-effort jobs that run, and kills so far", X: "minutes", Y: "jobs"},
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		for what, y := range map[string][]float64{"work": h.Work, "cores": h.Cores, "llc": h.Ways} {
			out[what].Series = append(out[what].Series, line(h.Host, y))
		}
		out["jobs"].Series = append(out["jobs"].Series, line(h.Host, h.Jobs), line(h.Host+", killed", h.Kills))
	}
	return out
}
