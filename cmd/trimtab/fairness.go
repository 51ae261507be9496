package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
)

type fairnessCmd struct {
	clientFlags `embed:""`
	watchFlags  `embed:""`
}

// Example is shown by --help.
func (fairnessCmd) Example() string {
	return "trimtab fairness\ntrimtab fairness -o json | jq .audit.now.envy"
}

// Run shows it, once or again and again.
func (c *fairnessCmd) Run(ctx context.Context, t terminal) error { return c.repeat(ctx, t, c.once) }

// once asks and prints.
func (c *fairnessCmd) once(ctx context.Context, t terminal) error {
	a, err := c.client().Fairness(ctx)
	if err != nil {
		return err
	}
	return c.print(t.out, a, func(w io.Writer) { printFairness(w, a, c.Output == "wide") })
}

// printFairness answers "is this fair?" in the first line.
func printFairness(w io.Writer, a *view.Audited, wide bool) {
	fmt.Fprintf(w, "now: %s\n", verdict(&a.Audit.Now))
	if a.Audit.Target != nil {
		fmt.Fprintf(w, "what %s wants: %s\n", a.Objective, verdict(a.Audit.Target))
	}
	fmt.Fprintf(w, "(plan %s of %s; shares of each workload's demand)\n\n", a.Plan, view.Clock(a.Time))
	rows := [][]string{{"RESOURCE", "USED", "DEMANDED", "CAPACITY", "KEEPS FROM MORE"}}
	for _, r := range a.Audit.Resources {
		show := func(v float64) string { return trimtab.AmountOf(r.Resource, trimtab.Units(v)) }
		rows = append(rows, []string{r.Resource, show(r.Used), show(r.Demanded), show(r.Capacity), fmt.Sprint(r.Binds)})
	}
	cli.Table(w, rows)
	fmt.Fprintln(w)
	head := []string{"WORKLOAD", "ENTITLED", "HAS AT MOST", "OF", "SATISFIED", "LIMITED BY", "SHORTFALL", "ENVY", "OF WHOM"}
	if wide {
		head = append(head, "COULD GAIN")
	}
	rows = [][]string{head}
	for i := range a.Audit.Workloads {
		v := &a.Audit.Workloads[i]
		row := []string{v.Workload, percent(v.Entitlement), percent(v.Share), orDash(v.Dominant), view.Missing, orDash(v.Binding), view.Missing, view.Missing, orDash(v.Envies)}
		if v.Satisfaction != nil {
			row[4], row[6], row[7] = percent(*v.Satisfaction), percent(v.Shortfall), percent(v.Envy)
		}
		if wide {
			row = append(row, percent(v.Slack))
		}
		rows = append(rows, row)
	}
	cli.Table(w, rows)
	if a.Audit.Omitted > 0 {
		fmt.Fprintf(w, "and %d more, with smaller figures\n", a.Audit.Omitted)
	}
}

// verdict is the figures of an allocation as a sentence.
func verdict(f *trimtab.Fairness) string {
	var what []string
	if f.Shortfall > 0 {
		what = append(what, fmt.Sprintf("%d worse off than with their entitlement, by up to %s", f.Short, percent(f.Shortfall)))
	}
	if f.Envy > 0 {
		what = append(what, fmt.Sprintf("%d envy another's allocation, by up to %s", f.Envious, percent(f.Envy)))
	}
	if f.Slack > 0 {
		what = append(what, fmt.Sprintf("up to %s could be gained from unallocated capacity", percent(f.Slack)))
	}
	if len(what) == 0 {
		return fmt.Sprintf("fair: nobody is worse off than with its entitlement, nobody envies, nothing of use is left; the least satisfied has %s", percent(f.Least))
	}
	return strings.Join(what, "; ") + fmt.Sprintf("; the least satisfied has %s", percent(f.Least))
}

func percent(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }

// furtherText names the resources of the pool other than the first.
func furtherText(cfg *config.Config) string {
	var b strings.Builder
	for i, s := range cfg.Pool.Shares() {
		if i == 0 {
			continue
		}
		b.WriteString(", " + view.Sized(s.Capacity, s.Name))
		if r := trimtab.ResourceOf(s.Name); r.Bytes || r.Name == trimtab.MemBW {
			b.WriteString(" of " + s.Name) // the unit alone does not say of what
		}
	}
	return b.String()
}
