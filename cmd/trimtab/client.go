package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
)

// clientFlags say which trimtab to ask and how to print.
type clientFlags struct {
	URL    string `help:"Address of the running trimtab." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL" group:"Whom to ask and how to print:"`
	Output string `short:"o" help:"text, wide (all columns), json or yaml." enum:"text,wide,json,yaml" default:"text" group:"Whom to ask and how to print:"`
}

// client asks the trimtab that is named.
func (c clientFlags) client() client.Client {
	return client.Client{URL: c.URL, Terminal: c.Output == "text" || c.Output == "wide"}
}

// print writes v as JSON or YAML, or calls text.
func (c clientFlags) print(w io.Writer, v any, text func(io.Writer)) error {
	return printed(w, c.Output, v, text)
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	// Errors of w show at the next print.
	_ = tw.Flush()
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
	if s.Capacity > 0 {
		fmt.Fprintf(w, "pool %s: %s of %s given, objective %s, plan %s", s.Pool, view.Amount(s.Allocated),
			view.Sized(s.Capacity, s.Resource), s.Objective, orDash(s.Plan))
		if s.LeaseLeft > 0 {
			fmt.Fprintf(w, ", lease ends in %s unless renewed", view.Age(s.LeaseLeft))
		}
		fmt.Fprintln(w)
		if s.Paused {
			fmt.Fprintln(w, "paused: nothing is written until `trimtab resume`")
		}
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
	rows := [][]string{{"WORKLOAD", "MODE", "LOAD/S", "P50", "P99", "SLO", "WITHIN", strings.ToUpper(view.Unit(s.Resource)), "TARGET", "STATE"}}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		rows = append(rows, []string{r.Name, string(r.Mode), view.Optional(r.Load), view.Latency(r.Latency, "p50"), view.Latency(r.Latency, "p99"),
			orDash(r.SLO), view.Performance(r.Performance, r.Share), view.Has(r), view.Optional(r.Target), stateSince(r)})
	}
	table(w, rows)
	printHosts(w, s.Tightest, fewHosts)
}

// stateSince is the state, and since when where something is wrong.
func stateSince(r *view.Row) string {
	if r.Since.IsZero() || r.Kind == "ok" || r.Kind == "quiet" {
		return r.State
	}
	return r.State + ", since " + view.Clock(r.Since)
}

// watched prints a status without a pool, and how to go on.
func watched(w io.Writer, s *view.Status) {
	rows := [][]string{{"WORKLOAD", "MODE", "LOAD/S", "P50", "P99", "STATE"}}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		rows = append(rows, []string{r.Name, string(r.Mode), view.Optional(r.Load), view.Latency(r.Latency, "p50"), view.Latency(r.Latency, "p99"), r.State})
	}
	table(w, rows)
	fmt.Fprintln(w, "\nwatching only: no pool is configured. To let trimtab recommend, write a trimtab.yaml (docs/config.md, or `trimtab explain WORKLOAD`\nfor a start) and start `trimtab run --config.file trimtab.yaml`.")
}

func orDash(s string) string {
	if s == "" {
		return view.Missing
	}
	return s
}

type explainCmd struct {
	clientFlags `embed:""`
	Workload    string `arg:"" help:"Name of the workload, or of a best-effort job." complete:"explained"`
	History     int    `help:"How many earlier decisions to list." default:"5"`
}

// Example is shown by --help.
func (explainCmd) Example() string {
	return "trimtab explain checkout\ntrimtab explain batch/1                        # a best-effort job, of the agent of its host, or of a console"
}

// Run asks and prints.
func (c *explainCmd) Run(ctx context.Context, t terminal) error {
	e, err := c.client().Explain(ctx, c.Workload, c.History)
	if err != nil {
		for _, jobs := range c.jobHosts(ctx, view.JobFilter{Job: c.Workload}) {
			if job := jobNamed(jobs, c.Workload); job != nil {
				return c.print(t.out, job, func(w io.Writer) { explainJob(w, jobs, job, c.History) })
			}
		}
		return err
	}
	hosts := c.jobHosts(ctx, view.JobFilter{Service: c.Workload})
	return c.print(t.out, e, func(w io.Writer) {
		printExplanation(w, e)
		for _, jobs := range hosts {
			explainHere(w, jobs, e.Workload)
		}
	})
}

func printExplanation(w io.Writer, e *view.Explanation) {
	fmt.Fprintf(w, "%s: %s\n%s\n", e.Workload, e.State, e.Decision)
	if e.Code == view.Discovered {
		fmt.Fprintf(w, "\n%s\n", starter(e.Workload))
	}
	unit := view.Unit(e.Resource)
	rows := [][]string{}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{"  " + name, fmt.Sprintf(format, args...)})
	}
	if !e.Since.IsZero() {
		add("since", "%s, %s ago", view.Clock(e.Since), view.Age(trimtab.SecondsOf(time.Since(e.Since))))
	}
	add("mode", "%s%s", e.Mode, prefixed(", SLO ", e.SLO))
	switch {
	case e.Allocation != nil && e.Total != nil:
		add("has", "%s %s, by %s, of which the slowest sets it; %s in all", view.Amount(*e.Allocation), unit, view.Spread(e.Instances, e.Hosts), view.Amount(*e.Total))
	case e.Allocation != nil:
		add("has", "%s %s%s", view.Amount(*e.Allocation), unit, prefixed(", by ", e.Knob))
	case e.Knob != "":
		add("knob", "%s", e.Knob)
	}
	if e.Pending != nil {
		add("pending", "set to %s %s, which is not in force yet", view.Amount(*e.Pending), unit)
	}
	if e.Barred != "" {
		add("only advice", "%s", e.Barred)
	}
	if e.Plan != "" {
		add("plan", "%s at %s (%s)", e.Plan, view.Clock(e.Time), e.Cause)
	}
	if e.Before != nil && e.Set != nil {
		came := ""
		if r := e.Result; r != nil {
			came = ": " + string(r.Status) + prefixed(", ", r.Reason)
		}
		add("change", "%s -> %s %s%s%s", view.Amount(*e.Before), view.Amount(*e.Set), unit, prefixed("; ", view.Each(e.Moves, e.Resource)), came)
	}
	for _, line := range instanceLines(e) {
		add(line[0], "%s", line[1])
	}
	if e.Effect != nil {
		add("what came of it", "%s", effect(e.Effect, e.Share))
	}
	if e.Target != nil {
		add("solver's target", "%s %s", view.Optional(e.Target), unit)
	}
	if e.Demand != nil {
		add("needs for its SLO", "%s %s", view.Optional(e.Demand), unit)
	}
	if e.Plan != "" {
		add("bound by", "%s", e.Binding)
	}
	if len(e.Bounds) == 2 {
		add("expected there", "%s to %s", view.Performance(&e.Bounds[0], e.Share), view.Performance(&e.Bounds[1], e.Share))
	}
	if e.Model != "" && e.Model != "none" {
		add("model", "%s, %d reports", e.Model, e.Reports)
	}
	for _, line := range tailLines(e.Contributions) {
		add(line[0], "%s", line[1])
	}
	for _, in := range e.Inputs {
		if in.Missing != "" {
			add("input "+in.Name, "missing: %s", in.Missing)
			continue
		}
		add("input "+in.Name, "%s, %s old, from %s", view.Quantity(in, e.Resource, e.Share), view.Age(in.Age), orDash(in.Source))
	}
	for _, in := range e.Counters {
		add("counter "+in.Name, "%s, %s old, from %s", view.Quantity(in, e.Resource, e.Share), view.Age(in.Age), orDash(in.Source))
	}
	for _, a := range e.Alternatives {
		add("lost", "%s %s: objective %s (%s)", view.Number(a.Set), unit, view.Number(a.Objective), a.Why)
	}
	if !e.NextCheck.IsZero() {
		add("next check", "%s", view.Clock(e.NextCheck))
	}
	for _, d := range e.History {
		result := ""
		if d.Result != nil {
			result = ": " + string(d.Result.Status) + prefixed(", ", d.Result.Reason)
		}
		if d.Effect != nil && d.Effect.After != nil {
			result += ", " + effect(d.Effect, e.Share)
		}
		add("before, "+d.Plan, "%s %s -> %s, bound by %s%s", view.Clock(d.Time), view.Amount(d.Action.Expect), view.Amount(d.Action.Set), d.Action.Why.Binding, result)
	}
	table(w, rows)
}

// tailLines say how the tail stands, and what adds to it.
func tailLines(c *trimtab.Contributions) [][2]string {
	if c == nil {
		return nil
	}
	lines := [][2]string{{"tail", view.TailNow(c)}, {"tail grew", view.TailGrew(c)}}
	for i, p := range view.PartsOf(c) {
		if i == 5 || len(c.Servpods) < 2 {
			break
		}
		lines = append(lines, [2]string{"adds to it", fmt.Sprintf("%s%s: %s of contributions, %s a request, loadlimit %s", p.Component, prefixed(" on ", p.Host), p.Share, p.Sojourn, p.LoadLimit)})
	}
	return lines
}

// effect is the performance before and after, in words.
func effect(e *view.Effect, share bool) string {
	switch e.Performance {
	case view.TooEarly:
		return "too early: no report of a whole round yet"
	case view.NotMeasured:
		return "performance was not measured"
	}
	return fmt.Sprintf("performance %s: %s -> %s", e.Performance, view.Performance(e.Before, share), view.Performance(e.After, share))
}

// prefixed is empty when s is.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// starter is a configuration to begin with for a workload that was found.
func starter(workload string) string {
	return fmt.Sprintf(`a trimtab.yaml to start from (it only recommends):
  pool: {cpu: 8}
  workloads:
    - name: %s
      slo: {latency: 200ms, fraction: 0.95}
      knob: {cgroup: PATH/BELOW/THE/CGROUP/ROOT, cpu: {min: 0.2, max: 6}}
`, workload)
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
			widePlan(w, p)
			return
		}
		printPlan(w, p)
	})
}

func printPlan(w io.Writer, p *trimtab.Plan) {
	fmt.Fprintf(w, "plan %s of %s (%s) for pool %s: objective %s", p.ID(), view.Clock(p.Time), p.Cause, p.Pool, p.Objective)
	if p.Value != nil {
		fmt.Fprintf(w, ", which expects %s of 1", view.Optional(p.Value))
	}
	fmt.Fprintln(w)
	rows := [][]string{{"WORKLOAD", "MODE", "NOW", "NEXT", "TARGET", "BOUND BY"}}
	recommended := false
	for _, d := range view.Moved(p) {
		a := &d.Action
		recommended = recommended || a.Mode == trimtab.Recommend
		rows = append(rows, withEach([]string{a.Workload, string(a.Mode), view.Amount(a.Expect), view.Amount(a.Set), view.Optional(a.Why.Target), a.Why.Binding.String()}, d.Each()))
	}
	if len(p.Actions) == 0 {
		fmt.Fprintln(w, "no change: everything stays where it is")
	} else {
		table(w, rows)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		fmt.Fprintf(w, "held: %s: %s\n", name, p.Held[name])
	}
	if recommended {
		fmt.Fprintf(w, "to carry it out: trimtab apply %s\n", p.ID())
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
		rows := [][]string{{"WORKLOAD", "RESOURCE", "MODE", "NOW", "NEXT", "TARGET", "BOUND BY"}}
		for _, x := range d {
			rows = append(rows, withEach([]string{x.Workload, x.Resource, string(x.Mode), view.Amount(x.Now), view.Amount(x.Next), view.Optional(x.Target), x.Binding.String()}, view.Each(x.Moves, x.Resource)))
		}
		table(w, rows)
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
	Wait        time.Duration `help:"How long to wait for what came of it." default:"10s"`
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
	slow := time.AfterFunc(2*time.Second, func() { fmt.Fprintf(t.err, "waiting up to %v for what comes of it\n", c.Wait) })
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
			return hint.Add(errors.New("wait for plan "+c.Plan+": nothing came of it yet"), "trimtab status and trimtab explain show what happens")
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
		rows = append(rows, withEach([]string{"  " + a.Workload, a.Resource, view.Amount(a.Expect), "->", view.Amount(a.Set)}, d.Each()))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		rows = append(rows, []string{"  " + name, "held", p.Held[name].Text})
	}
	table(w, rows)
}
