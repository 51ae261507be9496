package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab/memory"
)

// simMemoryCmd is `trimtab-lab sim memory`.
type simMemoryCmd struct {
	Data   string `help:"Directory of recorded data, with alibaba2018-machine-usage and cluster-mean-usage." type:"existingdir" env:"TRIMTAB_DATA" required:"" placeholder:"DIR"`
	Output string `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
}

// Example is shown by --help.
func (simMemoryCmd) Example() string {
	return "trimtab-lab sim memory --data ~/recorded\ntrimtab-lab sim memory --data ~/recorded -o json"
}

// memoryAnswer is what `trimtab-lab sim memory -o json` prints.
type memoryAnswer struct {
	Series int            `json:"series"`
	Rules  []memory.Score `json:"rules"`
}

// Run plays the recordings under each rule and prints one table.
func (c *simMemoryCmd) Run(ctx context.Context, t terminal) error {
	answer := &memoryAnswer{}
	for _, rule := range memory.Rules() {
		answer.Rules = append(answer.Rules, memory.Score{Rule: rule})
	}
	for _, name := range memory.Files() {
		all, err := readSeries(filepath.Join(c.Data, filepath.FromSlash(name)))
		if err != nil {
			return hint.Else(err, "docs/lab.md says which recordings --data must have")
		}
		answer.Series += len(all)
		for i := range all {
			for k := range answer.Rules {
				if ctx.Err() != nil {
					return fmt.Errorf("play recorded memory: %w", ctx.Err())
				}
				answer.Rules[k].Add(memory.Play(all[i], answer.Rules[k].Rule))
			}
		}
	}
	return cli.Print(t.out, c.Output, answer, func(w io.Writer) { answer.text(w) })
}

// readSeries reads one recording, which may be packed.
func readSeries(path string) (all []memory.Series, err error) {
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

// text prints the table.
func (a *memoryAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "%d recorded series, 100%% of a machine's memory as 64 GiB, after a first day of watching\n\n", a.Series)
	rows := [][]string{{"RULE", "READINGS", "OVERRUNS", "LIMIT", "SLACK", "TRIMTAB'S SLACK IS", "LEAKS NAMED"}}
	for i := range a.Rules {
		s := &a.Rules[i]
		ratio, leaks := "–", "–"
		if i > 0 && s.Slack > 0 {
			ratio = fmt.Sprintf("%.2f of it", a.Rules[0].Slack/s.Slack)
		} else {
			leaks = fmt.Sprintf("%d in %.0f days", s.Leaks, s.Days)
		}
		rows = append(rows, []string{s.Rule, fmt.Sprint(s.Readings), fmt.Sprint(s.Overruns), fmt.Sprintf("%.1f GiB", s.Limit/(1<<30)), fmt.Sprintf("%.1f%%", 100*s.Slack), ratio, leaks})
	}
	cli.Table(w, rows)
}
