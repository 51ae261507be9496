package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab/memory"
	"github.com/trimtab/trimtab/sim/sizing"
)

// simMemoryCmd is `trimtab-lab sim memory`.
type simMemoryCmd struct {
	Data   string `help:"Directory of recorded data, with alibaba2018-machine-usage, cluster-mean-usage and nezha-*." type:"existingdir" env:"TRIMTAB_DATA" required:"" placeholder:"DIR"`
	Leaks  int    `help:"Number of leaks to add to recorded usage." default:"100"`
	Seed   uint64 `help:"Seed of the leaks and of the restarts." default:"1"`
	Output string `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (simMemoryCmd) Example() string {
	return "trimtab-lab sim memory --data ~/recorded\ntrimtab-lab sim memory --data ~/recorded --leaks 20 -o json"
}

// memoryAnswer is what `trimtab-lab sim memory -o json` prints.
type memoryAnswer struct {
	// Series and Rules are of machines and clusters, as Sets[0].
	Series int         `json:"series"`
	Rules  []memoryRow `json:"rules"`
	Sets   []memorySet `json:"sets"`
	// Halves are of the same series: the margin is chosen on one half, and the rules are played on the
	// other.
	Halves []memorySet `json:"halves"`
	// Added leaks, of which InTime were named ten minutes before the kill or earlier. In Quiet, days of
	// Sets[0] without added leaks, growth was named False times.
	Added  int     `json:"leaks_added"`
	InTime int     `json:"leaks_in_time"`
	False  int     `json:"leaks_false"`
	Quiet  float64 `json:"quiet_days"`
}

// memorySet is what became of the rules on some series.
type memorySet struct {
	Name   string      `json:"name"`
	Series int         `json:"series"`
	Margin float64     `json:"margin"`
	Rules  []memoryRow `json:"rules"`
}

// memoryRow is what became of one rule.
type memoryRow struct {
	sizing.Score
	LimitBytes float64 `json:"limit_bytes"` // the same as Limit
}

// Run plays the recordings under each rule and prints one table.
func (c *simMemoryCmd) Run(ctx context.Context, t terminal) error {
	if err := cli.Within(cli.In("leaks", float64(c.Leaks), 0, 10_000)); err != nil {
		return err
	}
	patterns, more := memory.Files()
	machines, err := c.read(patterns)
	if err != nil {
		return err
	}
	containers, err := c.read(more)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(c.Seed, 1))
	var restarting []sizing.Series
	for _, s := range append(machines[:len(machines):len(machines)], containers...) {
		restarting = append(restarting, memory.Restarting(s, r))
	}
	answer := &memoryAnswer{Series: len(machines)}
	for _, set := range []struct {
		name string
		of   []sizing.Series
	}{{"machines and clusters", machines}, {"containers", containers}, {"all of them, with restarts", restarting}} {
		answer.Sets = append(answer.Sets, playSet(ctx, set.name, set.of, sizing.Margin))
	}
	answer.Rules = answer.Sets[0].Rules
	var halves [2][]sizing.Series
	for i, s := range machines {
		halves[i%2] = append(halves[i%2], s)
	}
	for i, half := range halves {
		answer.Halves = append(answer.Halves, playSet(ctx, "the other half", halves[1-i], marginFor(ctx, half)))
	}
	for _, l := range memory.Leaks(machines, c.Leaks, r) {
		answer.Added++
		if l.InTime() {
			answer.InTime++
		}
	}
	answer.Quiet = answer.Rules[0].Days
	for i := range machines {
		answer.False += memory.Growths(&machines[i])
	}
	if ctx.Err() != nil {
		return fmt.Errorf("play recorded memory: %w", ctx.Err())
	}
	return cli.Print(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) })
}

// playSet plays series under each rule.
func playSet(ctx context.Context, name string, all []sizing.Series, margin float64) memorySet {
	out := memorySet{Name: name, Series: len(all), Margin: margin}
	for _, rule := range sizing.Rules(trimtab.Memory) {
		row := memoryRow{Score: sizing.Score{Rule: rule}}
		for i := range all {
			if ctx.Err() == nil {
				row.Add(sizing.Play(&all[i], sizing.New(trimtab.Memory, rule, &all[i], margin)))
			}
		}
		row.LimitBytes = row.Limit
		out.Rules = append(out.Rules, row)
	}
	return out
}

// marginFor returns twice the least margin, in steps of half a percent, with which trimtab's rule does not
// overrun a limit on some series.
func marginFor(ctx context.Context, all []sizing.Series) float64 {
	margin := 0.005
	for ; margin < 0.2 && ctx.Err() == nil; margin += 0.005 {
		overruns := 0
		for i := range all {
			overruns += sizing.Play(&all[i], sizing.New(trimtab.Memory, sizing.Trimtab, &all[i], margin)).Overruns
		}
		if overruns == 0 {
			break
		}
	}
	return 2 * margin
}

// read reads the recordings of some patterns.
func (c *simMemoryCmd) read(patterns []string) (all []sizing.Series, err error) {
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(c.Data, filepath.FromSlash(pattern)))
		if err == nil && len(names) == 0 {
			err = trimtab.Invalidf("read recorded memory: no %s in %s", pattern, c.Data)
		}
		for _, name := range names {
			some, bad := readSeries(name)
			all, err = append(all, some...), errors.Join(err, bad)
		}
		if err != nil {
			return nil, hint.Else(err, "docs/lab.md says which recordings --data must have")
		}
	}
	return all, nil
}

// readSeries reads one recording, which may be packed.
func readSeries(path string) (all []sizing.Series, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read recorded memory: %w", err)
	}
	defer f.Close()
	name, r := filepath.Base(path), io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		packed, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		defer func() { err = errors.Join(err, packed.Close()) }()
		r = packed
	}
	format, err := memory.FormatOf(name)
	if err != nil {
		return nil, err
	}
	return memory.Read(r, name, format)
}

// text prints the tables.
func (a *memoryAnswer) text(w io.Writer) {
	for _, s := range a.Sets {
		fmt.Fprintf(w, "%s: %d recorded series\n", s.Name, s.Series)
		s.text(w)
	}
	for _, s := range a.Halves {
		fmt.Fprintf(w, "a margin of %.3g%%, chosen on one half of the machines and clusters; %s: %d recorded series\n", 100*s.Margin, s.Name, s.Series)
		s.text(w)
	}
	fmt.Fprintf(w, "leaks added to recorded usage: %d, named ten minutes before the kill or earlier: %d\nwithout them: growth named %d times in %.0f days\n", a.Added, a.InTime, a.False, a.Quiet)
}

func (s *memorySet) text(w io.Writer) {
	rows := [][]string{{"RULE", "READINGS", "OVERRUNS", "KILLS", "LIMIT", "OVER", "UNDER", "SLACK", "TRIMTAB'S SLACK IS"}}
	gib := func(v float64) string { return fmt.Sprintf("%.3g GiB", v/(1<<30)) }
	for i := range s.Rules {
		x := &s.Rules[i]
		ratio := "–"
		if i > 0 && x.Slack > 0 {
			ratio = fmt.Sprintf("%.2f of it", s.Rules[0].Slack/x.Slack)
		}
		rows = append(rows, []string{x.Rule, fmt.Sprint(x.Readings), fmt.Sprint(x.Overruns), fmt.Sprint(x.Kills), gib(x.Limit), gib(x.Over), gib(x.Under), fmt.Sprintf("%.1f%%", 100*x.Slack), ratio})
	}
	cli.Table(w, rows)
	fmt.Fprintln(w)
}
