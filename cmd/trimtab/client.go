package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
)

// clientFlags say which trimtab to ask and how to print.
type clientFlags struct {
	URL    string `help:"Address of the running trimtab." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL" group:"Connection and output:"`
	Output string `short:"o" help:"text, wide (all columns), json or yaml." enum:"text,wide,json,yaml" default:"text" group:"Connection and output:"`
}

// client asks the trimtab that is named.
func (c clientFlags) client() client.Client {
	return client.Client{URL: c.URL, Terminal: c.Output == "text" || c.Output == "wide"}
}

// print writes v as JSON or YAML, or calls text.
func (c clientFlags) print(w io.Writer, v any, text func(io.Writer)) error {
	return cli.Print(w, c.Output, v, text)
}

type statusCmd struct {
	clientFlags `embed:""`
	watchFlags  `embed:""`
}

// Example is shown by --help.
func (statusCmd) Example() string {
	return "trimtab status\ntrimtab status -o json | jq '.workloads[].name'"
}

// once asks and prints.
func (c *statusCmd) once(ctx context.Context, t terminal) error {
	s, err := c.client().Status(ctx)
	jobs := c.client().Jobs(ctx)
	switch {
	case err != nil && jobs != nil: // the agent of a host, which knows nothing else
		return c.print(t.out, jobs, func(w io.Writer) { printColocation(w, jobs) })
	case err != nil:
		return err
	}
	fleet := c.client().Colocations(ctx, view.JobFilter{})
	return c.print(t.out, s, func(w io.Writer) {
		printStatus(w, s, c.Output == "wide")
		printFleet(w, fleet, jobs)
		if jobs != nil {
			fmt.Fprintln(w)
			printColocation(w, jobs)
		}
	})
}

func printStatus(w io.Writer, s *view.Status, wide bool) {
	for _, part := range slices.Sorted(maps.Keys(s.NotReady)) {
		fmt.Fprintf(w, "%s is not ready: %s\n", part, strings.ReplaceAll(s.NotReady[part], "\n", "; "))
	}
	if s.Capacity > 0 {
		open := ""
		if s.Unlimited > 0 {
			open = fmt.Sprintf(", %d without a limit", s.Unlimited)
		}
		fmt.Fprintf(w, "pool %s: %s of %s given%s, objective %s, plan %s", s.Pool, view.Amount(s.Allocated),
			view.Sized(s.Capacity, s.Resource), open, s.Objective, orDash(s.Plan))
		if s.LeaseLeft > 0 {
			fmt.Fprintf(w, ", lease ends in %s unless renewed", view.Age(s.LeaseLeft))
		}
		fmt.Fprintln(w)
		if s.Paused {
			fmt.Fprintln(w, "paused: nothing is written until `trimtab resume`")
		}
	}
	printUnmet(w, s.Unmet)
	if s.Exceeds != "" {
		fmt.Fprintln(w, s.Exceeds)
	}
	if len(s.Workloads) == 0 {
		fmt.Fprintln(w, "no workload yet: send OTLP spans to 127.0.0.1:4317 or :4318, or name workloads in the configuration")
		return
	}
	if wide {
		wideStatus(w, s)
		return
	}
	if s.Capacity == 0 {
		watched(w, s)
		return
	}
	rows := [][]string{{"WORKLOAD", "MODE", "LOAD/S", "P50", "P99", "SLO", "WITHIN", "BUDGET", strings.ToUpper(view.Unit(s.Resource)), "TARGET", "STATE"}}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		rows = append(rows, []string{r.Name, string(r.Mode), view.Load(r), view.Latency(r.Latency, "p50"), view.Latency(r.Latency, "p99"),
			orDash(r.SLO), view.Performance(r.Performance, r.Share), r.Budget.LeftText(), view.Has(r), view.Optional(r.Target), stateSince(r)})
	}
	cli.Table(w, rows)
	printHosts(w, s.Tightest, fewHosts)
}

// printUnmet prints the parts of the configuration that are not in force, and what to do about
// each.
func printUnmet(w io.Writer, all []view.UnmetOn) {
	for i := range all {
		u := &all[i]
		fmt.Fprintln(w, client.Printable(u.Text()))
		if u.Do != "" {
			fmt.Fprintf(w, "  do: %s\n", client.Printable(u.Do))
		}
	}
}

// stateSince formats the state, since when it is bad, what is shed, and the notes on it.
func stateSince(r *view.Row) string {
	state := r.State
	if !r.Since.IsZero() && r.Kind != "ok" && r.Kind != "quiet" {
		state += ", since " + view.Clock(r.Since)
	}
	all := []string{state}
	if r.Shed != nil {
		all = append(all, r.Shed.Text(time.Now()))
	}
	return strings.Join(append(all, r.Notes...), "; ")
}

// watched prints a status without a pool, and how to go on.
func watched(w io.Writer, s *view.Status) {
	rows := [][]string{{"WORKLOAD", "MODE", "LOAD/S", "P50", "P99", "STATE"}}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		rows = append(rows, []string{r.Name, string(r.Mode), view.Load(r), view.Latency(r.Latency, "p50"), view.Latency(r.Latency, "p99"), r.State})
	}
	cli.Table(w, rows)
	fmt.Fprintln(w, "\nwatching only: no pool is configured. To let trimtab recommend, write a trimtab.yaml (docs/config.md, or `trimtab explain WORKLOAD`\nfor a start) and start `trimtab run --config.file trimtab.yaml`.")
}

func orDash(s string) string {
	if s == "" {
		return view.Missing
	}
	return s
}

// prefixed is empty when s is.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

type planCmd struct {
	clientFlags `embed:""`
	watchFlags  `embed:""`
}

// Example is shown by --help.
func (planCmd) Example() string { return "trimtab plan\ntrimtab plan -o json" }

// once asks and prints.
func (c *planCmd) once(ctx context.Context, t terminal) error {
	p, err := c.client().Plan(ctx)
	if err != nil {
		return hint.Else(err, "a first plan needs a configured pool and a workload in mode recommend or act; trimtab status shows what is missing")
	}
	return c.print(t.out, p, func(w io.Writer) {
		if c.Output == "wide" {
			widePlan(w, p.Plan)
			return
		}
		printPlan(w, p)
	})
}

func printPlan(w io.Writer, p *view.Planned) {
	fmt.Fprintf(w, "plan %s of %s (%s) for pool %s: objective %s", p.ID, view.Clock(p.Time), p.Cause, p.Pool, p.Objective)
	if p.Value != nil {
		fmt.Fprintf(w, ", which expects %s of 1", view.Optional(p.Value))
	}
	fmt.Fprintln(w)
	rows := [][]string{{"WORKLOAD", "MODE", "NOW", "NEXT", "TARGET", "LIMITED BY"}}
	for _, d := range view.Moved(p.Plan) {
		a := &d.Action
		rows = append(rows, withEach([]string{a.Workload, string(a.Mode), view.AmountIn(a.Expect, a.Resource), view.AmountIn(a.Set, a.Resource), view.Optional(a.Why.Target), a.Why.Binding.String()}, d.Each()))
	}
	if len(p.Actions) == 0 {
		fmt.Fprintln(w, "no change: every limit stays as it is; trimtab explain WORKLOAD says why")
	} else {
		cli.Table(w, rows)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		fmt.Fprintf(w, "held: %s: %s\n", name, p.Held[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.ReadOnly)) {
		fmt.Fprintf(w, "cannot be applied: %s: %s\n", name, p.ReadOnly[name])
	}
	if p.Exceeds != "" {
		fmt.Fprintln(w, p.Exceeds)
	}
	if p.Applicable {
		fmt.Fprintf(w, "to carry it out: trimtab apply %s\n", p.ID)
	}
}

type diffCmd struct {
	clientFlags `embed:""`
	watchFlags  `embed:""`
}

// Example is shown by --help.
func (diffCmd) Example() string {
	return "trimtab diff; test $? -eq 2 && echo 'changes pending'"
}

// once asks and prints; errChanges when something differs.
func (c *diffCmd) once(ctx context.Context, t terminal) error {
	d, err := c.client().Diff(ctx)
	if err != nil {
		return err
	}
	err = c.print(t.out, d, func(w io.Writer) {
		if len(d) == 0 {
			fmt.Fprintln(w, "no difference")
			return
		}
		if c.Output == "wide" {
			wideDiff(w, d)
			return
		}
		rows := [][]string{{"WORKLOAD", "RESOURCE", "MODE", "NOW", "NEXT", "TARGET", "LIMITED BY"}}
		for _, x := range d {
			rows = append(rows, withEach([]string{x.Workload, x.Resource, string(x.Mode), view.AmountIn(x.Now, x.Resource), view.AmountIn(x.Next, x.Resource), view.Optional(x.Target), x.Binding.String()}, view.Each(x.Moves, x.Resource)))
		}
		cli.Table(w, rows)
	})
	if err == nil && len(d) > 0 {
		return errChanges
	}
	return err
}

// send gives one command to the running trimtab.
func (c clientFlags) send(ctx context.Context, t terminal, command trimtab.Command, done string) error {
	command.By = "cli"
	answer, err := c.client().Send(ctx, command)
	if err != nil {
		return err
	}
	return c.print(t.out, answer, func(w io.Writer) { fmt.Fprintln(w, done) })
}

type pauseCmd struct {
	clientFlags `embed:""`
}

// Example is shown by --help.
func (pauseCmd) Example() string { return "trimtab pause   # then look around; trimtab resume goes on" }

// Run sends the command.
func (c *pauseCmd) Run(ctx context.Context, t terminal) error {
	return c.send(ctx, t, trimtab.Command{Verb: trimtab.Pause}, "paused: nothing is written until `trimtab resume`")
}

type resumeCmd struct {
	clientFlags `embed:""`
}

// Example is shown by --help.
func (resumeCmd) Example() string { return "trimtab resume" }

// Run sends the command.
func (c *resumeCmd) Run(ctx context.Context, t terminal) error {
	return c.send(ctx, t, trimtab.Command{Verb: trimtab.Resume}, "resumed")
}

type applyCmd struct {
	clientFlags `embed:""`
	Plan        string        `arg:"" help:"The plan's id, EPOCH-SEQUENCE, as trimtab plan prints it." complete:"plan"`
	Wait        time.Duration `help:"How long to wait for the outcome." default:"10s"`
}

// Example is shown by --help.
func (applyCmd) Example() string { return "trimtab apply 3-17   # as trimtab plan named it" }

// Run sends the command and waits for the plan that it causes.
func (c *applyCmd) Run(ctx context.Context, t terminal) error {
	if _, _, err := trimtab.ParsePlanID(c.Plan); err != nil {
		return hint.Add(err, "trimtab plan prints the id of the newest plan")
	}
	if err := c.send(ctx, terminal{io.Discard, t.err}, trimtab.Command{Verb: trimtab.Apply, Plan: c.Plan}, ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	slow := time.AfterFunc(2*time.Second, func() { fmt.Fprintf(t.err, "waiting up to %v for the outcome\n", c.Wait) })
	defer slow.Stop()
	for {
		if p, err := c.client().Applied(ctx, c.Plan); err == nil && p.Last {
			err := c.print(t.out, p, func(w io.Writer) { printApplied(w, p) })
			if err == nil && p.Applies == "" {
				err = hint.Add(errors.New("apply "+c.Plan+": refused"), "what is printed above says why; trimtab plan has the newest recommendation")
			}
			return err
		}
		select {
		case <-ctx.Done():
			return hint.Add(errors.New("wait for plan "+c.Plan+": no outcome yet"), "trimtab status and trimtab explain show what happens")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func printApplied(w io.Writer, p *trimtab.Plan) {
	fmt.Fprintf(w, "%s: plan %s\n", p.Cause, p.ID())
	if len(p.Actions) == 0 {
		fmt.Fprintln(w, "nothing was changed")
	}
	rows := [][]string{}
	for _, d := range view.Moved(p) {
		a := &d.Action
		rows = append(rows, withEach([]string{"  " + a.Workload, a.Resource, view.AmountIn(a.Expect, a.Resource), "->", view.AmountIn(a.Set, a.Resource)}, d.Each()))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		rows = append(rows, []string{"  " + name, "held", p.Held[name].Text})
	}
	cli.Table(w, rows)
}
