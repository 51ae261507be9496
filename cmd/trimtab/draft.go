package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// initDraftCmd is `trimtab init` without more.
type initDraftCmd struct {
	URL        string `help:"Address of the running trimtab that has seen spans." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL"`
	Prometheus string `name:"prometheus.url" help:"Prometheus whose metrics are looked through." placeholder:"URL"`
	CgroupRoot string `help:"Directory of the control groups. Left out: found in /proc/self/mountinfo." type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (initDraftCmd) Example() string {
	return "trimtab init draft > trimtab.yaml && trimtab check config trimtab.yaml\ntrimtab init --prometheus.url http://127.0.0.1:9090"
}

// Bounds of what a draft looks at.
const (
	draftGroups = 10_000
	draftDepth  = 6
	draftTime   = 30 * time.Second
)

// draft collects what is there, and writes it down.
type draft struct {
	cmd    *initDraftCmd
	ctx    context.Context
	groups []string // relative to the root
	cores  float64
	lines  []string
	knobs  int
	series bool // a query was written
}

// Run prints a configuration that recommends where a limit was found, and only watches
// elsewhere.
func (c *initDraftCmd) Run(ctx context.Context, t terminal) error {
	ctx, cancel := context.WithTimeout(ctx, draftTime)
	defer cancel()
	s, err := client.Client{URL: c.URL}.Status(ctx)
	if err != nil {
		return hint.Else(fmt.Errorf("init: %w", err), "start trimtab run, send it spans for a minute, and try again")
	}
	d := &draft{cmd: c, ctx: ctx}
	d.look()
	found := 0
	for i := range s.Workloads {
		if row := &s.Workloads[i]; row.Code == view.Discovered {
			d.workload(row)
			found++
		}
	}
	if found == 0 {
		return hint.Add(fmt.Errorf("init: the trimtab at %s has found no service in spans", c.URL), "send it OTLP spans (127.0.0.1:4317) for a minute, and try again")
	}
	text := d.text()
	if _, err := config.Parse("draft", []byte(text)); err != nil {
		return fmt.Errorf("init: the draft cannot be used: %w", err)
	}
	_, err = fmt.Fprint(t.out, text)
	return err
}

// look lists the control groups of this host and measures its cores.
func (d *draft) look() {
	root := d.cmd.CgroupRoot
	if root == "" {
		root, _ = hostfs.CPUHierarchy() // without one there is no knob
	}
	if root == "" {
		return
	}
	var err error
	if d.cores, err = hostfs.CPUs(root); err != nil { // a tree of plain files
		d.cores = float64(runtime.NumCPU())
	}
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, path)
		switch {
		case err != nil || relErr != nil:
			return fs.SkipDir
		case len(d.groups) >= draftGroups:
			return fs.SkipAll
		case !e.IsDir() || rel == ".":
			return nil
		case strings.Count(rel, "/") >= draftDepth:
			return fs.SkipDir
		}
		d.groups = append(d.groups, rel)
		return nil
	})
}

// group is the control group that is named like a service, the shortest path of several.
func (d *draft) group(service string) string {
	var fits []string
	for _, g := range d.groups {
		base := filepath.Base(g)
		for _, suffix := range []string{".service", ".scope", ".slice"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if base == service {
			fits = append(fits, g)
		}
	}
	if len(fits) == 0 {
		return ""
	}
	slices.SortFunc(fits, func(a, b string) int { return len(a) - len(b) })
	return fits[0]
}

func (d *draft) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// workload writes one service.
func (d *draft) workload(row *view.Row) {
	d.add("")
	lines, recommends := view.Draft(row, d.group(row.Name), d.cores)
	d.lines = append(d.lines, lines...)
	if recommends {
		d.knobs++
	}
	d.metrics(row.Name)
}

// metrics writes, as a comment, what Prometheus has of a service: its spans tell more.
func (d *draft) metrics(service string) {
	if d.cmd.Prometheus == "" {
		return
	}
	var selectors []string
	for _, label := range []string{"job", "service", "service_name", "app", "deployment", "container"} {
		selectors = append(selectors, fmt.Sprintf(`{%s=%q,__name__=~".+_seconds_count|.+_requests_total"}`, label, service))
	}
	c := prometheus.Config{URL: d.cmd.Prometheus, HTTP: promconfig.DefaultHTTPClientConfig, Interval: 10 * time.Second, Timeout: 10 * time.Second}
	series, err := prometheus.Series(d.ctx, c, selectors...)
	if err != nil {
		d.add("    # Prometheus was asked for metrics: %s", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	seen := map[string]bool{}
	for _, labels := range series {
		name := labels["__name__"]
		for _, label := range []string{"job", "service", "service_name", "app", "deployment", "container"} {
			if labels[label] != service || seen[name] {
				continue
			}
			seen[name], d.series = true, true
			d.add(`    # load: 'sum(rate(%s{%s=%q}[1m]))' # in Prometheus; spans tell the load too, and need no query`, name, label, service)
		}
	}
	if len(seen) == 0 {
		d.add("    # Prometheus has no counter of requests whose job, service, app or container is %s", service)
	}
}

// text is the whole file.
func (d *draft) text() string {
	host, _ := os.Hostname() // only a comment
	head := []string{fmt.Sprintf("# Drafted from what trimtab saw on %s. Each line says why it is there.", host)}
	if d.knobs > 0 {
		head = append(head,
			fmt.Sprintf("pool: {cpu: %v} # what this host has: less, if others share it", d.cores),
			"objective: njc # nobody gets less than its share of the pool while it needs it: docs/objectives.md")
	}
	if d.series {
		head = append(head, fmt.Sprintf("prometheus: {url: %q} # where the metrics below were found", d.cmd.Prometheus))
	}
	return strings.Join(append(append(head, "workloads:"), d.lines...), "\n") + "\n"
}
