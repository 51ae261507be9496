package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/dashboards/rulefile"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/doctor"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
)

// checkCmd is `trimtab check`.
type checkCmd struct {
	Config checkConfigCmd `cmd:"" help:"Check a configuration file and print every mistake in it."`
	Rules  checkRulesCmd  `cmd:"" help:"Check files of Prometheus rules against the metrics that trimtab has."`

	Kubernetes checkKubernetesCmd `cmd:"" help:"Check whether a configuration file can work in its cluster: API, workloads, rights."`
}

// checkConfigCmd is `trimtab check config`.
type checkConfigCmd struct {
	File string `arg:"" help:"The file." type:"path"`
	Live bool   `help:"Also ask the servers: what Prometheus answers to each query, whether NATS accepts this user, and what works in the cluster." xor:"what"`

	Translate bool `help:"Print the file with the names that its sections have now, and check nothing else." xor:"what"`
}

// Example is shown by --help.
func (checkConfigCmd) Example() string {
	return "trimtab check config trimtab.yaml\ntrimtab check config --live trimtab.yaml   # asks Prometheus and NATS as well\ntrimtab check config --translate trimtab.yaml > new.yaml"
}

// Run prints all mistakes, with file:line:col and a hint each.
func (c *checkConfigCmd) Run(ctx context.Context, t terminal) error {
	if c.Translate {
		text, err := config.Translate(c.File)
		if err != nil {
			return hint.Add(err, "docs/config.md has every key")
		}
		_, err = t.out.Write(text)
		return err
	}
	cfg, err := config.Check(c.File)
	if err != nil {
		return hint.Add(err, "docs/config.md has every key")
	}
	if _, err := site.AnalyzerConfig(cfg); err != nil {
		return hint.Add(err, "a profile has the columns allocation_per_load and performance: docs/config.md")
	}
	if name := cfg.Web.ConfigFile; name != "" {
		if err := web.Validate(name); err != nil {
			return hint.Add(fmt.Errorf("check web.config_file %s: %w", name, err), "it has the form of Prometheus's exporter toolkit: tls_server_config and basic_auth_users")
		}
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(t.out, "warning:", w)
	}
	for _, f := range doctor.NotInForce(ctx, cfg) {
		fmt.Fprintf(t.out, "warning: %s: %s\n  hint: %s\n", f.Subject, client.Printable(f.Text), f.Hint)
	}
	if c.Live {
		if cfg, err = withObjectives(c.File, cfg); err != nil {
			return hint.Add(err, "docs/kubernetes.md says how an object of the cluster gives an SLO")
		}
		if err := live(ctx, t, cfg); err != nil {
			return err
		}
	}
	if cfg.Pool.Capacity() == 0 {
		fmt.Fprintf(t.out, "%s: good, but without a pool: nothing is turned\n", c.File)
		return nil
	}
	fmt.Fprintf(t.out, "%s: good: a pool of %s%s, objective %s, workloads: %d\n", c.File, view.Sized(cfg.Pool.Capacity(), cfg.Pool.Resource()), furtherText(cfg), cfg.Objective, len(cfg.Workloads))
	requestsText(t.out, cfg)
	return nil
}

// withObjectives is a configuration with the SLOs that objects of a cluster say, and the workloads
// of whole namespaces.
func withObjectives(file string, cfg *config.Config) (*config.Config, error) {
	hasObject := func(w config.Workload) bool { return w.SLO.Object != "" }
	if len(cfg.Namespaces) == 0 && !slices.ContainsFunc(cfg.Workloads, hasObject) {
		return cfg, nil
	}
	o := &site.Objectives{}
	return config.LoadWith(file, o.Objects(), o.Members())
}

// live asks the servers, and prints their answers.
func live(ctx context.Context, t terminal, cfg *config.Config) error {
	found := doctor.Servers(ctx, cfg, doctor.Location{})
	printFindings(t.out, found)
	return badOf("check config --live", found)
}

// requestsText prints, for each performance by PromQL without a query for requests, how their
// number is derived.
func requestsText(out io.Writer, cfg *config.Config) {
	derived, unknown := 0, 0
	first := ""
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		switch {
		case w.Performance == "" || w.Requests != "" || w.SLO.Target() > 1:
		case w.Ratio().Requests != "":
			derived++
		default:
			if unknown++; unknown == 1 {
				first = w.Name
			}
		}
	}
	if derived > 0 {
		fmt.Fprintf(out, "requests: derived from performance, a ratio of rates, for %d of the workloads\n", derived)
	}
	if unknown > 0 {
		fmt.Fprintf(out, "requests: not known for %d of the workloads, the first is %s: moves are not judged without; write requests: PromQL, or performance as a ratio of rates\n", unknown, first)
	}
}

// checkRulesCmd is `trimtab check rules`.
type checkRulesCmd struct {
	Files []string `arg:"" name:"file" help:"Files of Prometheus rules." type:"path"`
}

// Example is shown by --help.
func (checkRulesCmd) Example() string {
	return "trimtab check rules dashboards/rules/trimtab.rules.yaml\ntrimtab check rules /etc/prometheus/rules/*.yaml && promtool check rules /etc/prometheus/rules/*.yaml"
}

// Run prints all mistakes, with file:line:col and the nearest name.
func (c *checkRulesCmd) Run(t terminal) error {
	var files []rulefile.File
	for _, name := range c.Files {
		data, err := readBounded(name, rulefile.MaxBytes)
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
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
