package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	bench "github.com/trimtab/trimtab/lab/bench/drf"
)

// benchCmd is `trimtab-lab bench`.
type benchCmd struct {
	Drf      benchDRFCmd      `cmd:"" help:"Measure the solver of fair shares (DRF) on a random pool, and compare with the memory speed of this machine."`
	Machines benchMachinesCmd `cmd:"" help:"Measure how long it takes to select machines for speculative tasks, and what it costs to tell the job managers."`
}

// benchDRFCmd is `trimtab-lab bench drf`.
type benchDRFCmd struct {
	Tenants      int           `help:"Number of tenants." default:"100000" placeholder:"N"`
	Resources    int           `help:"Number of resources." default:"10000" placeholder:"M"`
	Mean         float64       `help:"Mean of the number of resources that a tenant demands, before it is truncated to 2 to 128." default:"2"`
	SD           float64       `name:"sd" help:"Its standard deviation." default:"16"`
	Zipf         float64       `help:"Exponent by which some resources are more popular; 0: all the same." default:"0"`
	Finite       float64       `help:"Share of the tenants with a limited demand, 0 to 1." default:"0"`
	Seed         uint64        `help:"Seed of the random pool." default:"1"`
	Deadline     time.Duration `help:"Also solve with a deadline, as in 50ms. 0: without." default:"0s"`
	DeadlinePart float64       `help:"Without --deadline: also solve with a deadline at this share of the full solve's time, as in 0.1. 0: without." default:"0"`
	Repeat       int           `help:"How often each is measured; the least time counts." default:"3"`
	Rounds       bool          `help:"Also measure the textbook algorithm, if the size allows it." default:"true" negatable:""`
	Output       string        `short:"o" help:"text, json or yaml." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (benchDRFCmd) Example() string {
	return "trimtab-lab bench drf --tenants 1000000 --resources 100000\ntrimtab-lab bench drf --tenants 100000 --resources 10000 --deadline 2ms -o json"
}

// Run measures and prints.
func (c *benchDRFCmd) Run(ctx context.Context, t terminal) error {
	o := bench.Options{
		Pool:   bench.Pool{Tenants: c.Tenants, Resources: c.Resources, Mean: c.Mean, SD: c.SD, Zipf: c.Zipf, Finite: c.Finite, Seed: c.Seed},
		Repeat: c.Repeat, Deadline: c.Deadline, DeadlinePart: c.DeadlinePart, Rounds: c.Rounds,
	}
	line := newStatusLine(t.err)
	o.Progress = line.say
	r, err := bench.Run(ctx, o)
	line.clear()
	if ctx.Err() != nil && r.SolveSeconds > 0 {
		return errors.Join(cli.Print(t.out, c.Output, r, func(w io.Writer) { printBench(w, &r) }), fmt.Errorf("bench drf: printed is what was measured: %w", ctx.Err()))
	}
	if err != nil {
		return hint.Add(err, "fewer tenants or resources need less memory")
	}
	return cli.Print(t.out, c.Output, r, func(w io.Writer) { printBench(w, &r) })
}

// printBench prints the report for people: a figure, and what it is against.
func printBench(w io.Writer, r *bench.Report) {
	fmt.Fprintf(w, "%d tenants, %d resources, %d entries\n\n", r.Tenants, r.Resources, r.Entries)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what string, seconds float64, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", what, duration(seconds), fmt.Sprintf(format, args...))
	}
	row("build", r.BuildSeconds, "rows and columns laid out")
	row("floor", r.FloorSeconds, "all rows streamed once, each entry added to its resource's place in the solver's array, 16 bytes each; %s of CPU", duration(r.FloorCPUSeconds))
	row("  narrow", r.NarrowFloorSeconds, "the same in an array of 8 bytes each; the solve is %.1f times that", r.OverNarrowFloor)
	row("solve", r.SolveSeconds, "exact; %.1f times the floor, %.1f in turn, %.1f ns an entry; %s of CPU", r.OverFloor, r.PairedOverFloor, r.NsPerEntry, duration(r.SolveCPUSeconds))
	if r.RoundsSeconds != nil {
		row("rounds", *r.RoundsSeconds, "the textbook: %d rounds, %.0f times the solve, levels within %.1g", *r.Rounds, *r.RoundsSeconds/r.SolveSeconds, *r.RoundsAway)
	}
	if d := r.Deadline; d != nil {
		what := "done before it"
		if d.Stopped {
			what = fmt.Sprintf("stopped: %.1f%% have their exact level, the others %.3g", 100*d.Frozen, d.Reached)
		}
		row("deadline", d.Seconds, "answer after %.2f of it; %s; utilization %.4f", d.OverDeadline, what, d.Utilization)
	}
	_ = tw.Flush()
	fmt.Fprintf(w, "\nutilization %.4f, over capacity by at most %.1g of it, %d MiB resident\n", r.Utilization, r.MaxOverCapacity, r.ResidentBytes>>20)
}

func duration(seconds float64) string {
	return time.Duration(seconds * 1e9).Round(time.Microsecond).String()
}
