package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/quantity"
)

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

// printExplanation prints the allocation of a workload, the reasons for it, and the rejected
// alternatives.
func printExplanation(w io.Writer, e *view.Explanation) {
	fmt.Fprintf(w, "%s: %s\n%s\n", e.Workload, e.State, e.Decision)
	if e.Code == view.Discovered {
		fmt.Fprintf(w, "\n%s\n", starter(e.Workload))
	}
	x := &explanation{Explanation: e, unit: view.Unit(e.Resource)}
	x.standing()
	x.shed()
	x.change()
	x.expected()
	for _, text := range x.Memory {
		x.add("memory", "%s", text)
	}
	x.inputs()
	x.signals()
	x.alternatives()
	x.history()
	cli.Table(w, x.rows)
}

// explanation converts the data of a workload into rows: a name and a text.
type explanation struct {
	*view.Explanation
	unit string
	rows [][]string
}

func (x *explanation) add(name, format string, args ...any) {
	x.rows = append(x.rows, []string{"  " + name, fmt.Sprintf(format, args...)})
}

// standing adds the mode of the workload, and its allocation.
func (x *explanation) standing() {
	if !x.Since.IsZero() {
		x.add("since", "%s, %s ago", view.Clock(x.Since), view.Age(trimtab.SecondsOf(time.Since(x.Since))))
	}
	for _, note := range x.Notes {
		x.add("note", "%s", note)
	}
	x.add("mode", "%s%s", x.Mode, prefixed(", SLO ", x.SLO))
	switch {
	case x.Allocation != nil && x.Total != nil:
		x.add("has", "%s %s, by %s, of which the slowest counts; %s in all", view.AmountIn(*x.Allocation, x.Resource), x.unit, view.Spread(x.Instances, x.Hosts), view.AmountIn(*x.Total, x.Resource))
	case x.Allocation != nil:
		by := x.Knob
		if x.Instances > 1 {
			by = view.Spread(x.Instances, x.Hosts)
		}
		x.add("has", "%s %s%s", view.AmountIn(*x.Allocation, x.Resource), x.unit, prefixed(", by ", by))
	case x.Knob != "":
		x.add("knob", "%s", x.Knob)
	}
	if x.Pending != nil {
		x.add("pending", "set to %s %s, which is not in force yet", view.AmountIn(*x.Pending, x.Resource), x.unit)
	}
	if x.Fast != nil {
		x.add("between rounds", "%s", x.Fast)
	}
	if x.ReadOnly != "" {
		x.add("only advice", "%s", x.ReadOnly)
	}
}

// shed adds what its gates refuse, why, and what it would take not to.
func (x *explanation) shed() {
	if x.Shed == nil {
		return
	}
	for _, line := range x.Shed.Lines(time.Now()) {
		x.add(line[0], "%s", line[1])
	}
}

// change adds the newest plan's change of the workload, and its result.
func (x *explanation) change() {
	if x.Plan != "" {
		x.add("plan", "%s at %s (%s)", x.Plan, view.Clock(x.Time), x.Cause)
	}
	if x.Before != nil && x.Set != nil {
		came := ""
		if r := x.Result; r != nil {
			came = ": " + string(r.Status) + prefixed(", ", r.Reason)
		}
		x.add("change", "%s -> %s %s%s%s", view.AmountIn(*x.Before, x.Changed), view.AmountIn(*x.Set, x.Changed), view.Unit(x.Changed), prefixed("; ", view.Each(x.Moves, x.Changed)), came)
	}
	for _, line := range instanceLines(x.Explanation) {
		x.add(line[0], "%s", line[1])
	}
	if x.Effect != nil {
		x.add("effect", "%s", effect(x.Effect, x.Share))
	}
}

// expected adds the solver's target, the bound that keeps it from more, and the performance that
// the model expects.
func (x *explanation) expected() {
	then := ""
	if x.Kept { // the decision describes the present state
		then = ", at that change"
	}
	if x.Target != nil {
		x.add("solver's target"+then, "%s %s", view.Optional(x.Target), x.unit)
	}
	if x.Demand != nil {
		x.add("needs by its curve"+then, "%s %s", view.Optional(x.Demand), x.unit)
	}
	if x.Plan != "" {
		x.add("limited by"+then, "%s", x.Binding)
	}
	if len(x.Bounds) == 2 {
		x.add("expected there"+then, "%s to %s", view.Performance(&x.Bounds[0], x.Share), view.Performance(&x.Bounds[1], x.Share))
	}
	if x.Model != "" && x.Model != "none" {
		x.add("model", "%s, %d reports", x.Model, x.Reports)
	}
	for _, line := range tailLines(x.Contributions) {
		x.add(line[0], "%s", line[1])
	}
}

// inputs adds the measurements behind the decision.
func (x *explanation) inputs() {
	for _, in := range x.Inputs {
		if in.Missing != "" {
			x.add("input "+in.Name, "missing: %s", in.Missing)
			continue
		}
		age := view.Age(in.Age) + " old"
		if in.Name == string(quantity.Load) && x.LoadStale {
			age = "stale: " + age
		}
		x.add("input "+in.Name, "%s, %s, from %s", view.Quantity(in, x.Resource, x.Share), age, orDash(in.Source))
	}
	for _, in := range x.Counters {
		x.add("counter "+in.Name, "%s, %s old, from %s", view.Quantity(in, x.Resource, x.Share), view.Age(in.Age), orDash(in.Source))
	}
}

// signals adds how the speculative tasks beside the workload affect it.
func (x *explanation) signals() {
	for _, s := range x.Signals {
		at := " on " + s.Host
		if s.Instance != "" {
			at = " of " + s.Instance + at
		}
		x.add("beside tasks: "+s.Signal, "%s%s, %s", s.Verdict(), at, s.Judge())
	}
}

// alternatives adds the rejected alternatives, and when the next decision is due.
func (x *explanation) alternatives() {
	for _, a := range x.Alternatives {
		x.add("rejected", "%s %s: objective %s (%s)", view.Number(a.Set), x.unit, view.Number(a.Objective), a.Why)
	}
	if !x.NextCheck.IsZero() {
		x.add("next check", "%s", view.Clock(x.NextCheck))
	}
}

// history adds the changes of the workload by earlier plans.
func (x *explanation) history() {
	for _, d := range x.History {
		result := ""
		if d.Result != nil {
			result = ": " + string(d.Result.Status) + prefixed(", ", d.Result.Reason)
		}
		if d.Effect != nil && d.Effect.After != nil {
			result += ", " + effect(d.Effect, x.Share)
		}
		x.add("before, "+d.Plan, "%s %s -> %s, limited by %s%s", view.Clock(d.Time), view.AmountIn(d.Action.Expect, d.Action.Resource), view.AmountIn(d.Action.Set, d.Action.Resource), d.Action.Why.Binding, result)
	}
}

// tailLines say how long the tail is now, and which components add to it.
func tailLines(c *colocation.Contributions) [][2]string {
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
