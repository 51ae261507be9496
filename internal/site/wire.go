package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	actuatorcgroup "github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/guard"
)

// This file turns the configuration into that of each stage, and does nothing
// else.

func busConfig(cfg *config.Config, role natsbus.Role, host string) (natsbus.Config, error) {
	n := cfg.NATS
	c := natsbus.Config{
		URL: n.URL, Dir: filepath.Join(cfg.Storage.Path, "bus"), Listen: n.Listen, Source: host, Credentials: n.CredentialsFile,
		Token: string(n.Token), CA: n.TLS.CAFile, Cert: n.TLS.CertFile, Key: n.TLS.KeyFile, MaxStore: int64(cfg.Storage.Limit),
		Replicas: n.Replicas, Role: role, Host: host, Pool: cfg.Pool.Name,
	}
	if role != "" {
		c.Source += " " + string(role)
	}
	if role == natsbus.Agent {
		c.Leaf = n.Leaf
	}
	if n.TokenFile == "" {
		return c, nil
	}
	token, err := os.ReadFile(n.TokenFile)
	if err != nil {
		return c, fmt.Errorf("read nats token: %w", err)
	}
	if c.Token = strings.TrimSpace(string(token)); c.Token == "" {
		return c, trimtab.Invalidf("read nats token: %s is empty", n.TokenFile)
	}
	return c, nil
}

// utilityTexts are those that each workload's utility, and what an operator's
// own objective counts, were compiled from.
func utilityTexts(cfg *config.Config) (all []string) {
	for i := range cfg.Workloads {
		all = append(all, cfg.Workloads[i].Utility)
	}
	return all
}

// demandUtilityTexts are those of the workloads whose declared demand has to do
// with their utility.
func demandUtilityTexts(cfg *config.Config) (all []string) {
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Fallback.Demand > 0 {
			all = append(all, w.Utility)
		}
	}
	return all
}

func pathConfig(cfg *config.Config, partition int) path.Config {
	c := path.Config{
		Discover: true, Every: cfg.Analyzer.ReportInterval, Timeout: cfg.Analyzer.TraceTimeout, Settle: settle(cfg), MaxSpans: cfg.Analyzer.MaxSpans,
		MaxSpansPerTrace: min(cfg.Analyzer.MaxTraceSpans, cfg.Analyzer.MaxSpans), MaxWorkloads: len(cfg.Workloads) + cfg.Analyzer.MaxDiscovered, Partition: partition,
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		m := path.Match{Name: w.Name, Attributes: map[string][]string{}, Threshold: w.SLO.Latency}
		for key, values := range w.Match.Spans {
			m.Attributes[key] = values
		}
		if len(m.Attributes) > 0 {
			c.Workloads = append(c.Workloads, m)
		}
	}
	return c
}

// settle is how long a trace waits for spans of services that export in
// batches, 5 s apart by default: half a report at most, so that reports are
// not late by more than that.
func settle(cfg *config.Config) time.Duration {
	return min(5*time.Second, cfg.Analyzer.ReportInterval/2, cfg.Analyzer.TraceTimeout)
}

// AnalyzerConfig is what the file says to the analyzer.
func AnalyzerConfig(cfg *config.Config) (analyzer.Config, error) {
	level := cfg.Analyzer.Confidence
	report := cfg.Analyzer.ReportInterval
	coming := auto.Config{Horizon: max(1, int((cfg.Round+report-1)/report)), Level: level, Step: report}
	// Both constructors only refuse bad settings: asked once here, they cannot
	// fail later.
	if _, err := auto.New("auto", coming); err != nil {
		return analyzer.Config{}, err
	}
	if _, err := gp.New(level); err != nil {
		return analyzer.Config{}, err
	}
	forecaster := func() forecast.Forecaster { f, _ := auto.New("auto", coming); return f }
	learner := func() learn.Learner { l, _ := gp.New(level); return l }
	c := analyzer.Config{
		Discover: true, MaxDiscovered: cfg.Analyzer.MaxDiscovered, Report: cfg.Analyzer.ReportInterval, Round: cfg.Round,
		Level: level, Partitions: cfg.Analyzer.Partitions,
		Forecaster: forecaster,
	}
	if entry := cfg.Application(); entry != nil {
		c.Entry = entry.Name
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		out := analyzer.Workload{
			Name: w.Name, Host: w.Knob.Host, SLO: analyzer.SLO{Latency: w.SLO.Latency, Fraction: w.SLO.Fraction}, Target: w.SLO.Target(),
			Resource: cfg.Pool.Resource(), LoadFrom: source(w.Load), PerformanceFrom: source(w.Performance),
		}
		if c.Entry != "" && w.Mode == trimtab.Off {
			out.Resource = "" // watched, and no part of the application
		}
		if b := w.Knob.Bounds(); b != nil {
			out.Min, out.Max = b.Min, b.Max
			out.Learner = learner
			out.Queue = out.Resource == trimtab.CPU && out.Target < 1
			out.Within = w.Ratio().Within
			out.Others = axesOf(cfg, w)
		}
		var err error
		if out.Fallback, err = fallbackOf(w); err != nil {
			return analyzer.Config{}, err
		}
		c.Workloads = append(c.Workloads, out)
	}
	return c, nil
}

// fallbackOf reads what an operator declared for when a workload's performance
// is missing.
func fallbackOf(w *config.Workload) (analyzer.Fallback, error) {
	f := analyzer.Fallback{Proxy: w.Fallback.Proxy != ""}
	if w.Fallback.Demand > 0 {
		utility, err := w.UtilityFunc()
		if err != nil {
			return f, fmt.Errorf("utility of %s: %w", w.Name, err)
		}
		f.Demand = &declared.Demand{Amount: w.Fallback.Demand, Target: w.SLO.Target(), Utility: utility}
	}
	if w.Fallback.Profile == "" {
		return f, nil
	}
	file, err := os.Open(w.Fallback.Profile)
	if err != nil {
		return f, fmt.Errorf("read profile of %s: %w", w.Name, err)
	}
	defer file.Close()
	if f.Profile, err = declared.ReadProfile(io.LimitReader(file, maxProfile)); err != nil {
		return f, fmt.Errorf("read profile of %s: %s:%w", w.Name, w.Fallback.Profile, err)
	}
	return f, nil
}

// maxProfile bounds the bytes of a profile.
const maxProfile = 1 << 20

// axesOf lists the further resources that a workload has a knob for.
func axesOf(cfg *config.Config, w *config.Workload) []analyzer.Axis {
	var out []analyzer.Axis
	for _, s := range further(cfg) {
		if b, ok := w.Knob.BoundsOf(s.Name); ok && b.Max > b.Min {
			out = append(out, analyzer.Axis{Resource: s.Name, Min: b.Min, Max: b.Max, Stock: trimtab.ResourceOf(s.Name).Stock})
		}
	}
	return out
}

// further lists the resources of the pool beside the first.
func further(cfg *config.Config) []config.Share {
	shares := cfg.Pool.Shares()
	return shares[min(1, len(shares)):]
}

// source says where a quantity comes from: a query's answer, or the spans.
func source(query string) string {
	if query != "" {
		return analyzer.FromPrometheus
	}
	return analyzer.FromSpans
}

// PlannerConfig is what the file says to the planner.
func PlannerConfig(cfg *config.Config) (planner.Config, error) {
	policy, err := PolicyOf(cfg)
	if err != nil {
		return planner.Config{}, err
	}
	c := planner.Config{
		Pool: cfg.Pool.Name, Resource: cfg.Pool.Resource(), Capacity: cfg.Pool.Capacity(), Unit: cfg.Pool.Unit,
		Step: max(1, int(cfg.Pool.Step/cfg.Pool.Unit+0.5)), Round: cfg.Round, Lease: cfg.Lease, Urgent: cfg.Round / 5, HoldRounds: cfg.Guard.HoldRounds, Policy: policy,
		Guard: guard.Config{Disabled: cfg.Guard.Off, Fall: cfg.Guard.MaxFall, Lowered: cfg.Guard.MaxLowered, Moved: cfg.Guard.MaxMoved,
			Band: orNone(cfg.Guard.DeadBand), Window: orNone(cfg.Guard.ReversalWindow)},
	}
	for _, s := range further(cfg) {
		c.Others = append(c.Others, planner.Resource{Name: s.Name, Capacity: s.Capacity, Unit: s.Unit, Step: max(1, int(s.Step/s.Unit+0.5))})
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		var utility func(float64) float64
		if w.Mode != trimtab.Off || w.SLO.Target() > 0 { // who is only watched needs no SLO
			var err error
			if utility, err = w.UtilityFunc(); err != nil {
				return c, fmt.Errorf("utility of %s: %w", w.Name, err)
			}
		}
		out := planner.WorkloadConfig{Name: w.Name, Mode: w.Mode, Class: w.Class, Weight: w.Weight, Host: w.Knob.Host, SLO: w.SLO.Target(), Utility: utility}
		if b := w.Knob.Bounds(); b != nil {
			out.Min, out.Max, out.Default = b.Min, b.Max, b.Default
		}
		for _, s := range c.Others {
			if b, ok := w.Knob.BoundsOf(s.Name); ok {
				if out.Others == nil {
					out.Others = map[string]planner.Bounds{}
				}
				out.Others[s.Name] = planner.Bounds{Min: b.Min, Max: b.Max, Default: b.Default, Guarantee: w.Guarantees.Of(s.Name)}
			}
		}
		c.Workloads = append(c.Workloads, out)
	}
	return c, entitle(&c, cfg)
}

// orNone turns the file's 0, "no limit", into the guard's negative value.
func orNone[T ~int64 | ~float64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// limitsOf returns the host's own limits: the actuator trusts no plan with them.
func limitsOf(cfg *config.Config) actuator.Limits {
	own := &cfg.Actuator
	l := actuator.Limits{Capacity: map[string]float64{}, MaxLease: own.MaxLease, Skew: own.ClockSkew}
	for _, s := range cfg.Pool.Shares() {
		l.Capacity[s.Name] = s.Capacity
	}
	if !cfg.Guard.Off {
		l.Fall, l.FallWindow, l.Share, l.ShareWindow = own.MaxFall, own.FallWindow, own.MaxLowered, own.LoweredWindow
	}
	return l
}

// knobConfig is a target as the file says it, before its knob is opened.
type knobConfig struct {
	actuator.Target
	process process.Config
	cgroup  actuatorcgroup.Config
}

// onHost tells whether a host has the knob of a workload.
func onHost(w *config.Workload, host string) bool { return w.Knob.Host == "" || w.Knob.Host == host }

// elsewhere tells whether the file names another host that has a knob of the pool.
func elsewhere(cfg *config.Config, host string) bool {
	return slices.ContainsFunc(cfg.Workloads, func(w config.Workload) bool { return !onHost(&w, host) })
}

// knobsOf lists the targets of all workloads that a host has.
func knobsOf(cfg *config.Config, host string) (out []knobConfig, err error) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		b := w.Knob.Bounds()
		if b == nil || !w.Knob.Declared() || !onHost(w, host) {
			continue
		}
		d := knobConfig{Target: actuator.Target{KnobID: trimtab.KnobID{Workload: w.Name, Resource: cfg.Pool.Resource()}, Min: b.Min, Max: b.Max, Mode: w.Mode}}
		if w.Knob.Process != nil {
			d.process = process.Config{Root: w.Knob.Process.Dir, Dir: "."}
			out = append(out, d)
			continue
		}
		d.cgroup = actuatorcgroup.Config{Path: w.Knob.Cgroup, Force: w.Knob.Force}
		if d.cgroup.Root, err = cgroupRoot(cfg); err != nil {
			return nil, fmt.Errorf("open knob of %s: %w", w.Name, err)
		}
		out = append(out, d)
		if m, ok := w.Knob.BoundsOf(trimtab.Memory); ok {
			d.Resource, d.Min, d.Max = trimtab.Memory, m.Min, m.Max
			// Version 1 keeps it in a hierarchy of its own.
			d.cgroup.Root = cmp.Or(hostfs.Twin(d.cgroup.Root, "memory"), d.cgroup.Root)
			out = append(out, d)
		}
	}
	return out, nil
}

// several tells whether the knob is a pattern, with one for each instance.
func (d knobConfig) several() bool { return strings.Contains(d.cgroup.Path, "*") }

// openAll opens the knobs that are declared, and makes finders of the patterns,
// one for each workload.
func openAll(all []knobConfig) (targets []actuator.Target, finders []actuator.Finder, err error) {
	roots := new(actuatorcgroup.Roots)
	var patterns [][]knobConfig
	for _, d := range all {
		switch last := len(patterns) - 1; {
		case d.several() && last >= 0 && patterns[last][0].Workload == d.Workload:
			patterns[last] = append(patterns[last], d)
		case d.several():
			patterns = append(patterns, []knobConfig{d})
		default:
			t, err := d.open(roots)
			if err != nil {
				return nil, nil, errors.Join(err, closeAll(targets))
			}
			targets = append(targets, t)
		}
	}
	for _, p := range patterns {
		finders = append(finders, finderOf(p, roots))
	}
	return targets, finders, nil
}

func closeAll(targets []actuator.Target) (err error) {
	for _, t := range targets {
		err = errors.Join(err, t.Knob.Close())
	}
	return err
}

// finderOf finds the instances of one workload, whose knobs are all on the same
// groups.
func finderOf(all []knobConfig, roots *actuatorcgroup.Roots) actuator.Finder {
	f := actuator.Finder{
		Workload: all[0].Workload, Pattern: "cgroup " + all[0].cgroup.Path,
		Find: func(ctx context.Context) ([]actuator.Instance, error) {
			return actuatorcgroup.Find(ctx, all[0].cgroup)
		},
		Open: func(name string) (targets []actuator.Target, err error) {
			for _, d := range all {
				d.cgroup = d.cgroup.Instance(name)
				t, err := d.open(roots)
				if err != nil {
					return nil, errors.Join(err, closeAll(targets))
				}
				targets = append(targets, t)
			}
			return targets, nil
		},
	}
	for _, d := range all {
		f.Like = append(f.Like, d.Target)
	}
	return f
}

// measureOf measures what the pool may give out of this host, where it has
// cgroups; nil where it has none. Numbers of workers are not measured.
func measureOf(cfg *config.Config, all []knobConfig) func() (map[string]float64, error) {
	roots := map[string]string{}
	for _, d := range all {
		if d.cgroup.Root != "" {
			roots[d.Resource] = d.cgroup.Root
		}
	}
	if len(roots) == 0 {
		return nil
	}
	reserve := cfg.Actuator.Reserve
	return func() (map[string]float64, error) {
		capacity := map[string]float64{}
		var errs []error
		for _, m := range []struct {
			resource string
			measure  func(root string) (float64, error)
			reserve  float64
		}{{trimtab.CPU, hostfs.CPUs, reserve.CPU}, {trimtab.Memory, hostfs.Memory, float64(reserve.Memory)}} {
			root, ok := roots[m.resource]
			if !ok {
				continue
			}
			v, err := m.measure(root)
			switch {
			case errors.Is(err, trimtab.ErrUnsupported): // a tree of plain files is no host's
			case err != nil:
				errs = append(errs, err)
			default:
				capacity[m.resource] = max(0, v-m.reserve)
			}
		}
		return capacity, errors.Join(errs...)
	}
}

// open opens the knob; those of one root share what is open of it.
func (d knobConfig) open(roots *actuatorcgroup.Roots) (t actuator.Target, err error) {
	t = d.Target
	c := d.cgroup
	c.Roots = roots
	switch {
	case c.Path == "":
		t.Knob, err = process.Open(d.process)
	case t.Resource == trimtab.Memory:
		t.Knob, err = actuatorcgroup.OpenMemory(c)
	default:
		t.Knob, err = actuatorcgroup.Open(c)
	}
	if err != nil {
		return t, fmt.Errorf("open %s knob of %s: %w", t.Resource, t.Workload, err)
	}
	t.Resource = t.Knob.Resource()
	return t, nil
}

// cgroupRoot is the declared root, or the mount with the cpu controller.
func cgroupRoot(cfg *config.Config) (string, error) {
	if cfg.Actuator.CgroupRoot != "" {
		return cfg.Actuator.CgroupRoot, nil
	}
	return hostfs.CPUHierarchy()
}

func queriesOf(cfg *config.Config) []prometheus.Query {
	var out []prometheus.Query
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		for _, q := range []struct {
			quantity trimtab.Quantity
			text     string
		}{{trimtab.Load, w.Load}, {trimtab.Performance, w.Performance}, {trimtab.Allocation, w.Allocation}, {trimtab.Proxy, w.Fallback.Proxy}} {
			if q.text == "" {
				continue
			}
			// Validated when the file was read.
			expr, _ := w.Match.Expand(q.text)
			query := prometheus.Query{Workload: w.Name, Quantity: q.quantity, Expr: expr}
			if requests := w.Ratio().Requests; q.quantity == trimtab.Performance && requests != "" {
				query.Requests, _ = w.Match.Expand(requests)
			}
			out = append(out, query)
		}
	}
	return out
}

// groupsOf lists the groups that a host reads. What they tell is of the whole
// workload, unless it has instances, or other hosts may have it too.
func groupsOf(cfg *config.Config, host string, fleet bool) []cgroup.Target {
	var out []cgroup.Target
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Cgroup == "" || !onHost(w, host) {
			continue
		}
		t := cgroup.Target{Workload: w.Name, Path: w.Knob.Cgroup}
		if w.Knob.Several() || fleet && w.Knob.Host == "" {
			t.Host = host
		}
		out = append(out, t)
	}
	return out
}
