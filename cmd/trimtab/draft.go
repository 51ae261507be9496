package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/site"
)

// initDraftCmd is `trimtab init` without more.
type initDraftCmd struct {
	URL        string `help:"Address of the running trimtab that has seen spans." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL"`
	Config     string `name:"config.file" help:"Configuration file to complete. Default: the configuration of the running trimtab." type:"path" placeholder:"FILE"`
	Prometheus string `name:"prometheus.url" help:"Prometheus whose metrics are searched. Default: the one in the configuration." placeholder:"URL"`
	CgroupRoot string `help:"Directory of the control groups. Default: that of the configuration, or the one in /proc/self/mountinfo." type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (initDraftCmd) Example() string {
	return "trimtab init draft > trimtab.yaml && trimtab check config trimtab.yaml\ntrimtab init --prometheus.url http://127.0.0.1:9090\ntrimtab init --config.file trimtab.yaml > new.yaml   # the file, with what it lacks added"
}

// Limits on the input of a draft.
const (
	draftGroups = 10_000
	draftDepth  = 6
	draftTime   = 30 * time.Second
)

// draft collects what the host has, and writes a configuration for it.
type draft struct {
	cmd *initDraftCmd
	ctx context.Context
	// given is the configuration from which the draft starts.
	given  *config.Given
	from   string
	groups []string // relative to the root
	root   string
	cores  float64
	// asked has the answers of Prometheus; unasked says why there are none.
	asked   []requests
	unasked error
	lines   []string
	knobs   int
	knobbed []string // the groups of all knobs
	series  bool     // a query was written
}

// Run prints a configuration that recommends where a limit was found, and only watches
// elsewhere.
func (c *initDraftCmd) Run(ctx context.Context, t terminal) error {
	ctx, cancel := context.WithTimeout(ctx, draftTime)
	defer cancel()
	d := &draft{cmd: c, ctx: ctx}
	s, err := client.Client{URL: c.URL}.Status(ctx)
	if err != nil && c.Config == "" {
		return hint.Else(fmt.Errorf("init: %w", err), "start trimtab run, send it spans for a minute, and try again")
	}
	if err := d.goOnFrom(); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err != nil {
		s = &view.Status{}
		d.add("  # no trimtab answers at %s, so services that only spans tell of are not here", c.URL)
	}
	d.look()
	d.askPrometheus()
	if d.services(s) == 0 {
		return hint.Add(fmt.Errorf("init: neither spans at %s nor metrics tell of a service that is not configured%s", c.URL, d.unaskedText()),
			"send it OTLP spans (127.0.0.1:4317) for a minute, or name a Prometheus with --prometheus.url, and try again")
	}
	text := d.text()
	if _, err := config.Parse("draft", []byte(text)); err != nil {
		return fmt.Errorf("init: the draft cannot be used: %w", err)
	}
	_, err = fmt.Fprint(t.out, text)
	return err
}

// goOnFrom reads the configuration that there is.
func (d *draft) goOnFrom() error {
	var redacted []byte
	if d.cmd.Config != "" {
		o := &site.Objectives{}
		cfg, err := config.LoadWith(d.cmd.Config, o.Objects(), o.Members())
		if err != nil {
			return hint.Add(err, "trimtab check config %s says the same", d.cmd.Config)
		}
		redacted, d.from = cfg.Redacted(), d.cmd.Config
	} else {
		var err error
		if redacted, err = (client.Client{URL: d.cmd.URL}).Config(d.ctx); err != nil {
			return err
		}
		d.from = "the running trimtab"
	}
	var err error
	d.given, err = config.GivenBy(redacted)
	return err
}

// services writes each service that is not configured, and returns how many there are.
func (d *draft) services(s *view.Status) (found int) {
	seen := map[string]bool{}
	for _, name := range d.given.Names {
		seen[name] = true
	}
	for i := range s.Workloads {
		row := &s.Workloads[i]
		if name := view.DraftName(row.Name); row.Code == view.Discovered && !seen[name] {
			d.workload(row)
			seen[name], seen[row.Name] = true, true
			found++
		}
	}
	for _, of := range d.unseen(seen) {
		d.measured(of)
		found++
	}
	return found
}

// look lists the control groups of this host and measures its cores.
func (d *draft) look() {
	root := cmp.Or(d.cmd.CgroupRoot, d.given.Config.Actuator.CgroupRoot)
	if root == "" {
		root, _ = hostfs.CPUHierarchy() // without one there are no knobs
	}
	if pool := &d.given.Config.Pool; root == "" || pool.Capacity() > 0 && pool.Resource() != trimtab.CPU {
		return // nor in a pool of something else
	}
	d.root = root
	var err error
	if d.cores, err = hostfs.CPUs(root); err != nil { // a tree of plain files
		d.cores = float64(runtime.NumCPU())
	}
	if has := d.given.Config.Pool.Capacity(); has > 0 {
		d.cores = min(d.cores, has)
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
		if base == service && !slices.Contains(d.given.Cgroups, g) {
			fits = append(fits, g)
		}
	}
	if len(fits) == 0 {
		return ""
	}
	slices.SortFunc(fits, func(a, b string) int { return len(a) - len(b) })
	d.knobbed = append(d.knobbed, fits[0])
	return fits[0]
}

// apart reports whether the control groups of the knobs have no parent that holds only them.
func (d *draft) apart() bool {
	all := slices.DeleteFunc(slices.Concat(d.given.Cgroups, d.knobbed), func(g string) bool { return g == "" })
	if len(all) == 0 {
		return false
	}
	above := path.Dir(all[0])
	ours := func(g string) bool {
		return slices.ContainsFunc(all, func(of string) bool {
			ok, err := path.Match(hostfs.PlainPattern(of), g)
			return ok && err == nil
		})
	}
	return above == "." || slices.ContainsFunc(all, func(g string) bool { return path.Dir(g) != above }) ||
		slices.ContainsFunc(d.groups, func(g string) bool { return path.Dir(g) == above && !ours(g) })
}

func (d *draft) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// workload writes one service.
func (d *draft) workload(row *view.Row) {
	d.add("")
	at := view.DraftKnob{Group: d.group(row.Name), Cores: d.cores}
	at.Memory, at.Why = d.memory(at.Group)
	lines, recommends := view.Draft(row, at)
	d.lines = append(d.lines, lines...)
	if recommends {
		d.knobs++
	}
	d.metrics(row.Name)
}

// metrics writes, as a comment, which metrics Prometheus has of a service; its spans give more.
func (d *draft) metrics(service string) {
	if d.unasked != nil {
		d.add("    # Prometheus was asked for metrics: %s", strings.ReplaceAll(d.unasked.Error(), "\n", " "))
		return
	}
	if d.prometheus() == "" {
		return
	}
	seen := map[string]bool{}
	for _, of := range d.asked {
		label := of.labelled(service)
		if label == "" || seen[of.metric] {
			continue
		}
		seen[of.metric], d.series = true, true
		d.add(`    # load: 'sum(rate(%s{%s=%q}[1m]))' # in Prometheus; spans tell the load too, and need no query`, of.metric, label, service)
	}
	if len(seen) == 0 {
		d.add("    # Prometheus has no counter of requests whose job, service, app or container is %s", service)
	}
}

// text is the whole file.
func (d *draft) text() string {
	host, _ := os.Hostname() // only a comment
	head := []string{fmt.Sprintf("# Drafted from what trimtab saw on %s. Each line says why it is there.", host)}
	reasons := map[string]string{}
	if d.knobs > 0 && d.given.Config.Pool.Capacity() == 0 {
		d.given.Set("pool", "cpu", d.cores)
		reasons["pool"] = "what this host has: less, if others share it"
		head = append(head, "objective: njc # nobody gets less than its share of the pool while it needs it: docs/objectives.md")
	}
	if url := d.prometheus(); d.series && url != d.given.Config.Prometheus.URL {
		d.given.Set("prometheus", "url", url)
		reasons["prometheus"] = "where the metrics below were found"
	}
	if root := d.cmd.CgroupRoot; root != "" && root != d.given.Config.Actuator.CgroupRoot {
		d.given.Set("actuator", "cgroup_root", root)
		reasons["actuator"] = "where the control groups below were found"
	}
	names, lines := d.given.Sections()
	for i, name := range names {
		if name != "objective" || reasons["pool"] == "" {
			head = append(head, lines[i]+" # "+cmp.Or(reasons[name], "as "+d.from+" has it"))
		}
	}
	for _, key := range d.given.Secrets {
		head = append(head, fmt.Sprintf("# %s is set in %s, and secret: write it here, or better a file of it, before you start this", key, d.from))
	}
	if d.knobs > 0 && d.apart() {
		head = append(head, "# In mode act each workload gets a CPU quota, and loses what it leaves idle: their control groups have no group of their own in common.",
			"# To have them share by weight (docs/operations.md), "+view.MakeGroup)
	}
	head = append(head, "workloads:")
	for i, w := range d.given.Workloads {
		reason := "as " + d.from + " has it"
		if slices.Contains(d.given.WrittenOut, d.given.Names[i]) {
			reason += "; its slo is what the file or object says now that it is taken from"
		}
		head = append(head, "  - "+w+" # "+reason)
	}
	return strings.Join(append(head, d.lines...), "\n") + "\n"
}
