package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab/calc"
)

// calcCmd is `trimtab-lab calc`: one algorithm of the papers on a file.
type calcCmd struct {
	Contribution calcContributionCmd `cmd:"" name:"contribution" help:"Say how much each component contributes to the tail latency, from mean sojourn times at several loads."`
	EDRF         calcEDRFCmd         `cmd:"" name:"edrf" help:"Divide several resources by weighted extended dominant resource fairness."`
	Forecast     calcForecastCmd     `cmd:"" name:"forecast" help:"Forecast an upper bound of each coming round's load, from the loads before it."`
	Learn        calcLearnCmd        `cmd:"" name:"learn" help:"Learn a performance curve from reports, with bounds."`
	LLA          calcLLACmd          `cmd:"" name:"lla" help:"Approximate the load level of a series, without its outliers."`
	MLRQ         calcMLRQCmd         `cmd:"" name:"mlrq" help:"Order best-effort jobs by how much work is lost if their resources are reclaimed."`
	MMF          calcMMFCmd          `cmd:"" name:"mmf" help:"Rate machines and select candidates for speculative tasks by load and queue, without those that are blacklisted."`
	NJC          calcNJCCmd          `cmd:"" name:"njc" help:"Divide one resource so that nobody has a justified complaint."`
}

// calculate runs an algorithm from standard input to standard output.
func calculate(t terminal, run calc.Func, example string) error {
	out, err := run(os.Stdin)
	if err != nil {
		return hint.Add(fmt.Errorf("standard input: %w", err), "the input looks like %s", example)
	}
	return cli.Print(t.out, "json", out, nil)
}

// calcNJCCmd is `trimtab-lab calc njc`.
type calcNJCCmd struct{}

const njcExample = `{"capacity": 60, "demands": [10, 40, 100]}`

// Example is shown by --help.
func (calcNJCCmd) Example() string { return "echo '" + njcExample + "' | trimtab-lab calc njc" }

// Run computes.
func (calcNJCCmd) Run(t terminal) error { return calculate(t, calc.NJC, njcExample) }

// calcEDRFCmd is `trimtab-lab calc edrf`.
type calcEDRFCmd struct {
	CSV    string `name:"csv" help:"Read a demand table instead: columns tenant, weight and limit if wanted, then the resources; a row named capacity. Prints a table." type:"existingfile" placeholder:"FILE"`
	Output string `short:"o" help:"Form of the result of a table: text, json or yaml." enum:"text,json,yaml" default:"text"`
}

const edrfExample = `{"capacities": [9, 18], "tenants": [{"demand": {"0": 1, "1": 4}}, {"demand": {"0": 3, "1": 1}, "weight": 2, "limit": 1}]}`

// Example is shown by --help.
func (calcEDRFCmd) Example() string {
	return "echo '" + edrfExample + "' | trimtab-lab calc edrf\nprintf 'tenant,cpu,memory\\ncapacity,9,18\\nA,1,4\\nB,3,1\\n' > pool.csv && trimtab-lab calc edrf --csv pool.csv"
}

// Run computes.
func (c *calcEDRFCmd) Run(t terminal) error {
	if c.CSV == "" {
		return calculate(t, calc.EDRF, edrfExample)
	}
	f, err := os.Open(c.CSV)
	if err != nil {
		return fmt.Errorf("read table: %w", err)
	}
	defer f.Close()
	table, err := calc.ReadTable(f)
	var s calc.Shares
	if err == nil {
		s, err = table.Solve()
	}
	if err != nil {
		return hint.Add(fmt.Errorf("%s: %w", c.CSV, err), "the first line is like tenant,weight,limit,cpu,memory; one row is named capacity")
	}
	return cli.Print(t.out, c.Output, s, func(w io.Writer) { printShares(w, &table, &s) })
}

// printShares prints who gets what, and what stopped it.
func printShares(w io.Writer, table *calc.Table, s *calc.Shares) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "TENANT\tSHARE\tLEVEL\tLIMITED BY")
	for _, r := range table.Resources {
		fmt.Fprintf(tw, "\t%s", strings.ToUpper(client.Printable(r)))
	}
	fmt.Fprintln(tw)
	for _, row := range s.Tenants {
		fmt.Fprintf(tw, "%s\t%.4g\t%.4g\t%s", client.Printable(row.Tenant), row.Share, row.Level, client.Printable(row.Bound))
		for _, r := range table.Resources {
			cell := "-"
			if a, ok := row.Allocation[r]; ok {
				cell = fmt.Sprintf("%.6g", a)
			}
			fmt.Fprintf(tw, "\t%s", cell)
		}
		fmt.Fprintln(tw)
	}
	fmt.Fprintf(tw, "used\t\t\t")
	for _, r := range table.Resources {
		cell := "-"
		if u, ok := s.Used[r]; ok {
			cell = fmt.Sprintf("%.1f%%", 100*u)
		}
		fmt.Fprintf(tw, "\t%s", cell)
	}
	fmt.Fprintln(tw)
	_ = tw.Flush()
	if len(s.Saturated) > 0 {
		fmt.Fprintf(w, "\nfull: %s\n", client.Printable(strings.Join(s.Saturated, ", ")))
	}
}
