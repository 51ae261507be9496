package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	bench "github.com/trimtab/trimtab/lab/bench/machines"
)

// benchMachinesCmd is `trimtab-lab bench machines`.
type benchMachinesCmd struct {
	Machines int    `help:"Number of machines." default:"15000" placeholder:"N"`
	Samples  int    `help:"Length of the window of one load." default:"4000" placeholder:"S"`
	Managers int    `name:"job-managers" help:"Job managers that hear of the candidates." default:"5000"`
	Repeat   int    `help:"How often each is measured; the least time counts." default:"5"`
	Seed     uint64 `help:"Seed of the random loads." default:"1"`
	Output   string `short:"o" help:"text, json or yaml." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (benchMachinesCmd) Example() string {
	return "trimtab-lab bench machines --machines 15000 --samples 4000\ntrimtab-lab bench machines --machines 1000000 -o json"
}

// Run measures and prints.
func (c *benchMachinesCmd) Run(ctx context.Context, t terminal) error {
	line := newStatusLine(t.err)
	r, err := bench.Run(ctx, bench.Options{
		Machines: c.Machines, Samples: c.Samples, Managers: c.Managers, Repeat: c.Repeat, Seed: c.Seed, Progress: line.say,
		Level: loadLevel(),
	})
	line.clear()
	if err != nil {
		return hint.Add(err, "a machine needs about 300 bytes of memory")
	}
	return cli.Print(t.out, c.Output, r, func(w io.Writer) { printBenchMachines(w, &r) })
}

// loadLevel returns what approximates the load level of a window, as calc lla does.
func loadLevel() func(window []float64) (float64, error) {
	a := fingerprint.Default()
	return func(window []float64) (float64, error) {
		level, err := a.Of(window)
		return level.Value, err
	}
}

// printBenchMachines prints the report for people.
func printBenchMachines(w io.Writer, r *bench.Report) {
	fmt.Fprintf(w, "%d machines, %d of them candidates\n\n", r.Machines, r.Candidates)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "filter\t%s\tone filtering of all machines, %.0f ns each\n", duration(r.FilterSeconds), r.NsPerMachine)
	fmt.Fprintf(tw, "update\t%.2f µs\tone report of one machine\n", 1e6*r.UpdateSeconds)
	if r.LLASecondsPerMachine != nil {
		fmt.Fprintf(tw, "load level\t%.2f µs\tof one window of %d samples\n", 1e6**r.LLASecondsPerMachine, r.Samples)
	}
	fmt.Fprintf(tw, "memory\t%.0f B\ta machine, with its name\n", r.BytesPerMachine)
	if r.Managers > 0 {
		fmt.Fprintf(tw, "first sync\t%d B\tto and from %d job managers: all names\n", r.FirstSyncBytes, r.Managers)
		fmt.Fprintf(tw, "later ones\t%d B\t%.2f%% of it, with other candidates each time\n", r.LaterSyncBytes, 100*float64(r.LaterSyncBytes)/float64(r.FirstSyncBytes))
	}
	_ = tw.Flush()
}
