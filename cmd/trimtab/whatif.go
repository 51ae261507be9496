package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/whatif"
)

type whatIfCmd struct {
	clientFlags `embed:""`
	Capacity    map[string]float64 `help:"Another capacity of the pool, as in cpu=6." placeholder:"RESOURCE=AMOUNT"`
	SLO         map[string]string  `name:"slo" help:"Another SLO of a workload: a latency, a share or a performance, as in checkout=200ms or checkout=99%." placeholder:"WORKLOAD=SLO"`
	Weight      map[string]float64 `help:"Another weight of a workload or a group, as in shop=2." placeholder:"WORKLOAD=WEIGHT"`
}

// Example is shown by --help.
func (whatIfCmd) Example() string {
	return "trimtab what-if --capacity cpu=6\ntrimtab what-if --slo checkout=200ms --weight shop=2 -o json | jq '.workloads[] | select(.effect == \"pays\")'"
}

// Run asks and prints.
func (c *whatIfCmd) Run(ctx context.Context, t terminal) error {
	a, err := c.client().WhatIf(ctx, whatif.Change{Capacity: c.Capacity, SLO: c.SLO, Weight: c.Weight})
	if err != nil {
		return err
	}
	return c.print(t.out, a, func(w io.Writer) { printWhatIf(w, a, c.Output == "wide") })
}

// printWhatIf prints how many workloads gain and pay in the first line.
func printWhatIf(w io.Writer, a *whatif.Answer, wide bool) {
	fmt.Fprintf(w, "%s: %d would gain, %d would pay, %d would stay the same, %d not planned for; pool %s: %s %s\n",
		changeText(&a.Change), a.Gain, a.Pay, len(a.Workloads)-a.Gain-a.Pay-a.Hold, a.Hold, a.Pool, fromTo(view.Number(a.CapacityBefore), view.Number(a.CapacityAfter)), view.Unit(a.Resource))
	if a.ValueBefore != nil || a.ValueAfter != nil {
		fmt.Fprintf(w, "objective %s: %s\n", a.Objective, fromTo(view.Optional(a.ValueBefore), view.Optional(a.ValueAfter)))
	}
	head := []string{"WORKLOAD", "EFFECT", "NOW", "BEFORE", "AFTER", "EXPECTED BEFORE", "EXPECTED AFTER", "MEETS SLO"}
	if wide {
		head = append(head, "SLO", "WEIGHT", "LIMITED BY", "HELD")
	}
	rows := [][]string{head}
	for i := range a.Workloads {
		x := &a.Workloads[i]
		row := []string{x.Workload, string(x.Effect), view.Number(x.Now), view.Number(x.Before.Allocation), view.Number(x.After.Allocation),
			view.Expected(x.Before.Performance, x.Share), view.Expected(x.After.Performance, x.Share), fromTo(string(x.Before.Meets), string(x.After.Meets))}
		if wide {
			row = append(row, fromTo(view.Performance(&x.Before.SLO, x.Share), view.Performance(&x.After.SLO, x.Share)),
				fromTo(view.Number(x.Before.Weight), view.Number(x.After.Weight)), orDash(x.After.Binding.String()), orDash(x.Held))
		}
		rows = append(rows, row)
	}
	if len(a.Workloads) > 0 {
		cli.Table(w, rows)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Absent)) {
		fmt.Fprintf(w, "left out: %s: %s\n", name, a.Absent[name])
	}
	for _, text := range a.Assumes {
		fmt.Fprintf(w, "assumed: %s\n", text)
	}
	if a.Cut {
		fmt.Fprintln(w, "a deadline cut the solution short")
	}
}

// changeText describes the change: "capacity cpu=6, weight shop=2".
func changeText(c *whatif.Change) string {
	var parts []string
	for _, kind := range []struct {
		name string
		of   map[string]float64
	}{{"capacity", c.Capacity}, {"weight", c.Weight}} {
		for _, name := range slices.Sorted(maps.Keys(kind.of)) {
			parts = append(parts, fmt.Sprintf("%s %s=%s", kind.name, name, view.Number(kind.of[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.SLO)) {
		parts = append(parts, "slo "+name+"="+c.SLO[name])
	}
	if len(parts) == 0 {
		return "as things are"
	}
	return "with " + strings.Join(parts, ", ")
}

// fromTo prints one value where both are the same.
func fromTo(before, after string) string {
	if before == after {
		return after
	}
	return before + " -> " + after
}
