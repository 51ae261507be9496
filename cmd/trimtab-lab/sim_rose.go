package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab/rose"
)

// simRoseCmd is `trimtab-lab sim rose`.
type simRoseCmd struct {
	Policy   cli.Names `help:"How machines are selected for speculative tasks, side by side: none, RB, SLB, QLB, ROSE; \"all\" for every one." default:"none,RB,SLB,QLB,ROSE" placeholder:"NAME,..."`
	Mode     cli.Names `help:"Modes beside long-running applications: UP throttles nothing, RP throttles for them." default:"UP,RP" placeholder:"NAME,..."`
	Part     cli.Names `help:"Parts of the evaluation: submission (table 1), yarn (table 3), batch (tables 4 and 5), rescheduling (figure 16), mixed (table 6)." default:"submission,yarn,batch,rescheduling,mixed" placeholder:"NAME,..."`
	Machines int       `help:"Machines of the batch and mixed parts, 2 to 10000; jobs have as many tasks for each as the paper's on 210." default:"210"`
	Data     string    `help:"Directory with alibaba2018-machine-usage: machines use what was recorded, else a made-up course with the same moments." type:"existingdir" placeholder:"DIR"`
	Window   int       `help:"How many tasks of a job wait in queues at once, 1 to 100000; 0: that of the part." default:"0"`
	Upper    float64   `name:"upper-load" help:"Threshold of the load average per core, 0.1 to 100; 0: 1.15." default:"0"`
	runFlags `kong:"embed,set='row=row',set='most=1000'"`
	Plot     string `help:"Directory to draw the paper's figures 13 to 18 into, as SVG." type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (simRoseCmd) Example() string {
	return "trimtab-lab sim rose --data shared/data\ntrimtab-lab sim rose --part batch --policy RB,ROSE --seeds 2 -o json\ntrimtab-lab sim rose --machines 42 --seeds 1 --plot figures"
}

// Validate is called by kong.
func (c *simRoseCmd) Validate() error { return cli.Within(c.ranges()...) }

func (c *simRoseCmd) ranges() []cli.Ranged {
	return append(c.runFlags.ranges(1000), cli.In("machines", float64(c.Machines), 2, 10_000),
		cli.In("window", float64(c.Window), 0, 100_000), cli.In("upper-load", c.Upper, 0, 100))
}

// roseAnswer is what `trimtab-lab sim rose -o json` prints.
type roseAnswer struct {
	Machines int           `json:"machines"`
	Seeds    int           `json:"seeds"`
	Seed     uint64        `json:"seed"`
	Usage    string        `json:"usage"`
	World    *rose.World   `json:"world"`
	Policies []rosePolicy  `json:"policies"`
	Rows     []rose.Row    `json:"rows"`
	Targets  []rose.Target `json:"targets"`
}

// rosePolicy is how a policy did, in short: beside LRAs in a mode, or, without a mode,
// where there are none. Nothing is throttled without speculation, so none did the same in
// every mode.
type rosePolicy struct {
	Policy    string   `json:"policy"`
	Mode      string   `json:"mode"`
	Makespan  float64  `json:"makespan_s"`
	CPU       float64  `json:"cpu_use"`
	Disk      float64  `json:"disk_use"`
	CoRunning float64  `json:"co_running"`
	Started   float64  `json:"started"`
	Evicted   float64  `json:"evicted"`
	P95       *float64 `json:"lra_p95_over_alone"`
}

// rosePolicies lists those of the rows that are about policies.
func rosePolicies(rows []rose.Row, modes []string) []rosePolicy {
	all := []rosePolicy{}
	for i := range rows {
		r := &rows[i]
		p := rosePolicy{r.Policy, r.Mode, r.Makespan, r.CPU, r.Disk, r.Speculative, r.Started, r.Evicted, nil}
		if r.LRA != nil {
			p.P95 = &r.LRA.P95[2]
		}
		switch {
		case r.Policy == "":
		case r.Part == rose.Beside && r.Mode == "":
			for _, p.Mode = range modes {
				all = append(all, p)
			}
		default:
			all = append(all, p)
		}
	}
	return all
}

// Run plays the experiment and prints what came of it.
func (c *simRoseCmd) Run(ctx context.Context, t terminal) error {
	if err := cli.Plottable(c.Plot); err != nil {
		return err
	}
	usage, err := c.usage()
	if err != nil {
		return hint.Add(err, "the directory has alibaba2018-machine-usage/machine_usage_shared.csv.gz; without --data a made-up course takes its place")
	}
	x := &rose.Experiment{Frame: c.frame(ctx), Usage: usage, Machines: c.Machines, Parts: chosen(c.Part, rose.Parts()), Policies: chosen(c.Policy, rose.PolicyNames()),
		Modes: chosen(c.Mode, rose.Modes()), Change: c.change}
	var rows []rose.Row
	stopped, err := playing{"rose", "runs", &x.Frame, x.Runs(), func() (_ int, err error) {
		rows, err = x.Play()
		return len(rows), err
	}}.under(ctx, t)
	if err != nil {
		return err
	}
	if c.Plot != "" && stopped == nil {
		if err := c.plot(rows); err != nil {
			return err
		}
	}
	world := rose.Batch(c.Machines, usage)
	c.change(world)
	answer := &roseAnswer{Machines: c.Machines, Seeds: c.Seeds, Seed: c.Seed, Usage: usage.Origin, World: world,
		Policies: rosePolicies(rows, x.Modes), Rows: rows, Targets: rose.Targets(rows)}
	return errors.Join(cli.Print(t.out, c.Output, answer, answer.text), stopped)
}

func (c *simRoseCmd) change(w *rose.World) {
	if c.Window > 0 {
		w.Window = c.Window
	}
	if c.Upper > 0 {
		w.UpperLoad = c.Upper
	}
}

// usage reads the recorded use of machines, or makes it up.
func (c *simRoseCmd) usage() (*rose.Usage, error) {
	if c.Data == "" {
		return rose.BuiltInUsage(), nil
	}
	name := filepath.Join("alibaba2018-machine-usage", "machine_usage_shared.csv.gz")
	f, err := os.Open(filepath.Join(c.Data, name))
	if err != nil {
		return nil, fmt.Errorf("read usage of machines: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	u, err := rose.ReadUsage(z, name)
	if err != nil {
		return nil, fmt.Errorf("read usage of machines: %w", err)
	}
	return u, nil
}

// roseColumn is a column of the tables: ours, and in parentheses the paper's.
type roseColumn struct {
	title, key, form string
	unit             float64
	of               func(*rose.Row) float64
}

func roseColumns() []roseColumn {
	felt := func(of func(*rose.Felt) float64) func(*rose.Row) float64 {
		return func(r *rose.Row) float64 {
			if r.LRA == nil {
				return 0
			}
			return of(r.LRA)
		}
	}
	return []roseColumn{
		{"CPU", "cpu", "%.1f%%", 100, func(r *rose.Row) float64 { return r.CPU }},
		{"DISK", "disk", "%.1f%%", 100, func(r *rose.Row) float64 { return r.Disk }},
		{"SPEC AT ONCE", "co_running", "%.0f", 1, func(r *rose.Row) float64 { return r.Speculative }},
		{"LOAD", "median_load", "%.2f", 1, func(r *rose.Row) float64 { return r.MedianLoad }},
		{"MEMORY GB", "median_memory_gb", "%.2f", 1, func(r *rose.Row) float64 { return r.MedianMemory }},
		{"MEDIAN DISK", "median_disk", "%.1f%%", 100, func(r *rose.Row) float64 { return r.MedianDisk }},
		{"MAKESPAN S", "makespan_s", "%.0f", 1, func(r *rose.Row) float64 { return r.Makespan }},
		{"EVICTED", "evicted", "%.0f", 1, func(r *rose.Row) float64 { return r.Evicted }},
		{"STARTED", "started", "%.0f", 1, func(r *rose.Row) float64 { return r.Started }},
		{"UNQUEUED", "rejected", "%.0f", 1, func(r *rose.Row) float64 { return r.Rejected }},
		{"RESCHEDULED", "rescheduled", "%.0f", 1, func(r *rose.Row) float64 { return r.Rescheduled }},
		{"OVERTAKEN", "overtaken", "%.0f", 1, func(r *rose.Row) float64 { return r.Overtaken }},
		{"LRA P95", "p95", "%.3f", 1, felt(func(f *rose.Felt) float64 { return f.P95[2] })},
		{"LRA EPS", "eps", "%.3f", 1, felt(func(f *rose.Felt) float64 { return f.EPS[2] })},
		{"LRA THROUGHPUT", "throughput", "%.2f", 1, felt(func(f *rose.Felt) float64 { return f.Throughput })},
	}
}

// roseTables are the parts with the columns that the paper has, by their names in JSON.
func roseTables() []struct {
	part, title string
	keys        []string
} {
	return []struct {
		part, title string
		keys        []string
	}{
		{rose.Submissions, "Table 1: tasks submitted at once / longest queue, centralised", []string{"rejected", "rescheduled", "evicted", "overtaken", "started"}},
		{rose.Yarns, "Table 3: 40 jobs on 32 machines; native, centralised, distributed", []string{"cpu", "makespan_s", "rejected", "started", "overtaken"}},
		{rose.BatchOnly, "Tables 4 and 5: 60 jobs, no long-running applications", []string{"cpu", "median_load", "median_memory_gb", "median_disk", "co_running", "makespan_s", "evicted", "started"}},
		{rose.Rescheduling, "Figure 16: rescheduling of tasks that wait for too long", []string{"makespan_s", "rescheduled"}},
		{rose.Beside, "Table 6 and figures 17 and 18: the same jobs beside long-running applications (alone = 1)",
			[]string{"cpu", "disk", "co_running", "median_load", "median_memory_gb", "median_disk", "makespan_s", "evicted", "started", "p95", "eps", "throughput"}},
	}
}

// text prints the tables.
func (a *roseAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "%d machines, mean of %s; in parentheses what the paper states; usage %s\n", a.Machines, view.Count(a.Seeds, "seed"), a.Usage)
	columns := map[string]roseColumn{}
	for _, c := range roseColumns() {
		columns[c.key] = c
	}
	for _, t := range roseTables() {
		rows := [][]string{{""}}
		for _, key := range t.keys {
			rows[0] = append(rows[0], columns[key].title)
		}
		for i := range a.Rows {
			r := &a.Rows[i]
			if r.Part != t.part {
				continue
			}
			row := []string{r.Name}
			for _, key := range t.keys {
				row = append(row, columns[key].cell(r))
			}
			rows = append(rows, row)
		}
		if len(rows) > 1 {
			fmt.Fprintf(w, "\n%s\n", t.title)
			cli.Table(w, rows)
		}
	}
	if len(a.Targets) == 0 {
		return
	}
	fmt.Fprintln(w, "\nWhat the paper's effects are to be at least")
	rows := [][]string{{"", "GOT", "WANT", "PAPER", "HELD"}}
	for _, t := range a.Targets {
		sign := map[bool]string{true: "≥", false: "≤"}[t.Least]
		rows = append(rows, []string{t.Name, fmt.Sprintf("%.3f", t.Got), fmt.Sprintf("%s %.3f", sign, t.Want), fmt.Sprintf("%.3f", t.Paper), map[bool]string{true: "yes", false: "NO"}[t.Held]})
	}
	cli.Table(w, rows)
}

// cell is one figure, with the paper's.
func (c roseColumn) cell(r *rose.Row) string {
	ours := fmt.Sprintf(c.form, c.of(r)*c.unit)
	if theirs, ok := r.Paper[c.key]; ok {
		ours += fmt.Sprintf(" ("+c.form+")", theirs*c.unit)
	}
	return ours
}
