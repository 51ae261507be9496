package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console"
)

// clientFlags say which trimtab to ask and how to print.
type clientFlags struct {
	URL    string `help:"Address of the running trimtab." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL"`
	Output string `short:"o" help:"text, json or yaml." enum:"text,json,yaml" default:"text"`
}

// call does one request and decodes the answer into into.
func (c clientFlags) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("print request: %w", err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, r)
	if err != nil {
		return hint(fmt.Errorf("ask %s: %w", c.URL, err), "--url takes an address like http://127.0.0.1:9600")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return hint(fmt.Errorf("ask %s: %w", c.URL, err), "is trimtab running there? start it with `trimtab run`, or name another with --url or TRIMTAB_URL")
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", c.URL, err)
	}
	if resp.StatusCode/100 != 2 {
		var p struct{ Error string }
		if json.Unmarshal(b, &p) != nil || p.Error == "" {
			p.Error = strings.TrimSpace(string(b))
		}
		return fmt.Errorf("ask %s%s: %s: %s", c.URL, path, resp.Status, p.Error)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return hint(fmt.Errorf("read answer of %s: %w", c.URL, err), "is that a trimtab of this version?")
	}
	return nil
}

// print writes v as JSON or YAML, or calls text.
func (c clientFlags) print(w io.Writer, v any, text func(io.Writer)) error {
	if c.Output == "text" {
		text(w)
		return nil
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil && c.Output == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(b), "\n"))
	return err
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

// number prints three significant digits, or a dash for what was not measured.
func number(p *float64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *p)
}

type statusCmd struct {
	clientFlags `embed:""`
}

// Example is shown by --help.
func (statusCmd) Example() string {
	return "trimtab status\ntrimtab status -o json | jq '.workloads[].name'"
}

// Run asks and prints.
func (c *statusCmd) Run(ctx context.Context, t terminal) error {
	var s console.Status
	if err := c.call(ctx, http.MethodGet, "/api/v1/status", nil, &s); err != nil {
		return err
	}
	return c.print(t.out, s, func(w io.Writer) {
		if s.Capacity > 0 {
			fmt.Fprintf(w, "pool %s: %s of %g %s given, objective %s, plan %s", s.Pool, s.Allocated, s.Capacity, s.Resource, s.Objective, orDash(s.Plan))
			if s.Paused {
				fmt.Fprint(w, ", paused")
			}
			fmt.Fprintln(w)
		}
		rows := [][]string{{"WORKLOAD", "MODE", "STATE", "LOAD/S", "P50", "P99", "PERFORMANCE", "UTILITY", "ALLOCATION", "TARGET"}}
		for _, r := range s.Workloads {
			allocation := "-"
			if r.Allocation != nil {
				allocation = r.Allocation.String()
			}
			rows = append(rows, []string{r.Name, string(r.Mode), r.State, number(r.Load), latency(r.Latency, "p50"), latency(r.Latency, "p99"),
				number(r.Performance), number(r.Utility), allocation, number(r.Target)})
		}
		if len(s.Workloads) == 0 {
			fmt.Fprintln(w, "no workload yet: send OTLP spans to 127.0.0.1:4317 or :4318, or name workloads in the configuration")
			return
		}
		table(w, rows)
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func latency(l map[string]trimtab.Seconds, name string) string {
	s, ok := l[name]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.3gms", 1000*float64(s))
}

type explainCmd struct {
	clientFlags `embed:""`
	Workload    string `arg:"" help:"Name of the workload."`
	History     int    `help:"How many earlier decisions to list." default:"5"`
}

// Example is shown by --help.
func (explainCmd) Example() string { return "trimtab explain checkout" }

// Run asks and prints.
func (c *explainCmd) Run(ctx context.Context, t terminal) error {
	var e console.Explanation
	path := fmt.Sprintf("/api/v1/workloads/%s?history=%d", url.PathEscape(c.Workload), c.History)
	if err := c.call(ctx, http.MethodGet, path, nil, &e); err != nil {
		return hint(err, "trimtab status lists the workloads")
	}
	return c.print(t.out, e, func(w io.Writer) { printExplanation(w, &e) })
}

func printExplanation(w io.Writer, e *console.Explanation) {
	fmt.Fprintf(w, "%s (mode %s, %s)\n%s\n", e.Workload, e.Mode, e.State, e.Decision)
	rows := [][]string{}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{"  " + name, fmt.Sprintf(format, args...)})
	}
	if e.Plan != "" {
		add("plan", "%s at %s (%s)", e.Plan, e.Time.Local().Format(time.TimeOnly), e.Cause)
	}
	if e.Before != nil && e.Set != nil {
		add("change", "%s -> %s", e.Before, e.Set)
	}
	if r := e.Result; r != nil {
		add("came of it", "%s %s", r.Status, r.Reason)
	}
	if e.Target != nil {
		add("solver's target", "%s", number(e.Target))
	}
	if e.Demand != nil {
		add("demand", "%s", number(e.Demand))
	}
	add("binding", "%s", e.Binding)
	if e.Model != "" {
		add("model", "%s", e.Model)
	}
	if len(e.Bounds) == 2 {
		add("expected", "performance %.3f to %.3f", e.Bounds[0], e.Bounds[1])
	}
	for _, in := range e.Inputs {
		if in.Missing != "" {
			add("input "+in.Name, "missing: %s", in.Missing)
			continue
		}
		add("input "+in.Name, "%.4g, %.1f s old, from %s", in.Value, float64(in.Age), orDash(in.Source))
	}
	for _, a := range e.Alternatives {
		add("lost", "%.4g: objective %.4f (%s)", a.Set, a.Objective, a.Why)
	}
	if !e.NextCheck.IsZero() {
		add("next check", "%s", e.NextCheck.Local().Format(time.TimeOnly))
	}
	for _, d := range e.History {
		result := ""
		if d.Result != nil {
			result = string(d.Result.Status)
		}
		add("before "+d.Plan, "%s -> %s %s: %s", d.Action.Expect, d.Action.Set, result, d.Action.Why.Summary)
	}
	table(w, rows)
}

type planCmd struct {
	clientFlags `embed:""`
}

// Example is shown by --help.
func (planCmd) Example() string { return "trimtab plan\ntrimtab plan -o json" }

// Run asks and prints.
func (c *planCmd) Run(ctx context.Context, t terminal) error {
	var p trimtab.Plan
	if err := c.call(ctx, http.MethodGet, "/api/v1/plan", nil, &p); err != nil {
		return hint(err, "a first plan needs a configured pool and a workload in mode recommend or act; trimtab status shows what is missing")
	}
	return c.print(t.out, p, func(w io.Writer) {
		fmt.Fprintf(w, "plan %s step %d for pool %s: objective %s, %s, lease %gs\n", p.ID(), p.Step, p.Pool, p.Objective, p.Cause, float64(p.Lease))
		rows := [][]string{{"WORKLOAD", "RESOURCE", "MODE", "NOW", "NEXT", "TARGET", "BINDING", "WHY"}}
		for _, a := range p.Actions {
			rows = append(rows, []string{a.Target, a.Resource, string(a.Mode), a.Expect.String(), a.Set.String(), number(a.Why.Target), a.Why.Binding, a.Why.Summary})
		}
		table(w, rows)
	})
}

type diffCmd struct {
	clientFlags `embed:""`
}

// Example is shown by --help.
func (diffCmd) Example() string {
	return "trimtab diff; test $? -eq 2 && echo 'changes pending'"
}

// Run asks and prints; exit code 2 when something differs.
func (c *diffCmd) Run(ctx context.Context, t terminal) error {
	var d []console.Difference
	if err := c.call(ctx, http.MethodGet, "/api/v1/diff", nil, &d); err != nil {
		return err
	}
	err := c.print(t.out, d, func(w io.Writer) {
		if len(d) == 0 {
			fmt.Fprintln(w, "no difference")
			return
		}
		rows := [][]string{{"WORKLOAD", "RESOURCE", "MODE", "NOW", "NEXT", "TARGET", "BINDING"}}
		for _, x := range d {
			rows = append(rows, []string{x.Workload, x.Resource, string(x.Mode), x.Now.String(), x.Next.String(), number(x.Target), x.Binding})
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
	var answer trimtab.Command
	if err := c.call(ctx, http.MethodPost, "/api/v1/commands", command, &answer); err != nil {
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
	Plan        string        `arg:"" help:"The plan's id, EPOCH-SEQUENCE, as trimtab plan prints it."`
	Wait        time.Duration `help:"How long to wait for what came of it." default:"10s"`
}

// Example is shown by --help.
func (applyCmd) Example() string { return "trimtab apply 3-17   # as trimtab plan named it" }

// Run sends the command and waits for the plan that it causes.
func (c *applyCmd) Run(ctx context.Context, t terminal) error {
	if _, _, err := trimtab.ParsePlanID(c.Plan); err != nil {
		return hint(err, "trimtab plan prints the id of the newest plan")
	}
	if err := c.send(ctx, terminal{io.Discard, t.err}, trimtab.Command{Verb: trimtab.Apply, Plan: c.Plan}, ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	for {
		var p trimtab.Plan
		if err := c.call(ctx, http.MethodGet, "/api/v1/applied/"+url.PathEscape(c.Plan), nil, &p); err == nil && p.Last {
			return c.print(t.out, p, func(w io.Writer) { printApplied(w, &p) })
		}
		select {
		case <-ctx.Done():
			return hint(errors.New("wait for plan "+c.Plan+": nothing came of it yet"), "trimtab status and trimtab explain show what happens")
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
	for _, a := range p.Actions {
		rows = append(rows, []string{"  " + a.Target, a.Resource, a.Expect.String(), "->", a.Set.String()})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		rows = append(rows, []string{"  " + name, "held", p.Held[name]})
	}
	table(w, rows)
}
