package main

import (
	"fmt"
	"io"
	"os"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/dashboards/rulefile"
	"github.com/trimtab/trimtab/internal/hint"
)

// checkRulesCmd is `trimtab check rules`.
type checkRulesCmd struct {
	Files []string `arg:"" name:"file" help:"Files of Prometheus rules." type:"path"`
}

// Example is shown by --help.
func (checkRulesCmd) Example() string {
	return "trimtab check rules dashboards/rules/trimtab.rules.yaml\ntrimtab check rules /etc/prometheus/rules/*.yaml && promtool check rules /etc/prometheus/rules/*.yaml"
}

// Run prints what is wrong, with file:line:col and the nearest name.
func (c *checkRulesCmd) Run(t terminal) error {
	var files []rulefile.File
	for _, name := range c.Files {
		data, err := readBounded(name)
		if err != nil {
			return fmt.Errorf("read rules: %w", err)
		}
		files = append(files, rulefile.File{Name: name, Data: data})
	}
	n, problems := rulefile.Check(files)
	for _, p := range problems {
		fmt.Fprintln(t.err, p.Error())
		if p.Hint != "" {
			fmt.Fprintln(t.err, "  hint:", p.Hint)
		}
	}
	if len(problems) > 0 {
		return hint.Add(trimtab.Invalidf("check rules: %d mistakes in %d rules", len(problems), n), "docs/metrics.md has every metric; promtool check rules checks the syntax of expressions too")
	}
	fmt.Fprintf(t.out, "good: %d rules in %d files name only what trimtab has\n", n, len(files))
	return nil
}

// readBounded reads a file, and a little more than is accepted of a large one.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, rulefile.MaxBytes+1))
}
