package site

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/agent/grow"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/envelope"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/sizing"
)

// This file only converts the configuration for each stage.

// utilityTexts returns the source texts of the workloads' utility functions and of the operator's
// own objective.
func utilityTexts(cfg *config.Config) (all []string) {
	for i := range cfg.Workloads {
		all = append(all, cfg.Workloads[i].Utility)
	}
	return all
}

// demandUtilityTexts returns the source texts of the utility functions on which a declared demand
// depends.
func demandUtilityTexts(cfg *config.Config) (all []string) {
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Fallback.Demand > 0 {
			all = append(all, w.Utility)
		}
	}
	return all
}

// PathConfig converts the configuration for the path step of a partition.
func PathConfig(cfg *config.Config, partition int) path.Config {
	c := path.Config{
		Discover: true, Every: cfg.Analyzer.ReportInterval, Timeout: cfg.Analyzer.TraceTimeout, Lateness: min(collected, cfg.Analyzer.TraceTimeout), MaxSpans: cfg.Analyzer.MaxSpans,
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

// collected is how long a service may take to send its spans, if it is unknown or known to batch
// them. OpenTelemetry's SDKs and Envoy batch for 5 s by default.
const collected = 6 * time.Second

// AnalyzerConfig converts the configuration for the analyzer.
func AnalyzerConfig(cfg *config.Config) (analyzer.Config, error) {
	cfg = cfg.Pooled()
	level := cfg.Analyzer.Confidence
	report := cfg.Analyzer.ReportInterval
	coming := auto.Config{Horizon: max(1, int((cfg.Round+report-1)/report)), Level: level, Step: report}
	// Both constructors fail only for invalid settings; checked once here, they cannot fail later.
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
			Resource: cfg.Pool.Resource(), LoadFrom: source(w.Load), PerformanceFrom: source(w.Performance), Observe: w.SLO.Proposed,
			MemoryAlone: w.Knob.MemoryAlone(&cfg.Pool) && w.SLO.Target() == 0 && w.Mode != trimtab.Off,
		}
		out.MaxLoad, out.Servpods = w.MaxLoad, servpodsOf(w)
		if c.Entry != "" && w.Mode == trimtab.Off {
			out.Resource = "" // it is only observed, and is no part of the application
		}
		if b := w.Knob.Bounds(); b != nil {
			out.Min, out.Max = b.Min, b.Max
			if r := w.Knob.Replicas; r != nil { // the curve is a function of the pods' size times their number
				out.Max, out.Ahead = min(b.Max*float64(r.Max), cfg.Pool.Capacity()), max(r.Startup, time.Minute)
			}
			out.Learner = learner
			out.Queue = out.Resource == trimtab.CPU && out.Target < 1
			out.Within = w.Ratio().Within
			out.RestAfter = restAfter(w, &cfg.Pool)
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

// restAfter returns for how long pods must have had no load until their minimum is enough although
// their use is not measured: it was declared, or it bounds their number, or what is reserved for them.
// The latter rarely changes, since each change is one of the scheduler's sums; 0: never.
func restAfter(w *config.Workload, p *config.Pool) time.Duration {
	switch k := &w.Knob; {
	case k.Kubernetes == nil:
	case k.CPU != nil && k.CPU.Cap == config.CapNever:
		return 30 * time.Minute
	case w.Usage == "" && (k.CPU == nil || k.CPU.Min > p.Unit):
		return 5 * time.Minute
	}
	return 0
}

// servpodsOf returns the thresholds that the operator declared.
func servpodsOf(w *config.Workload) map[string]contribution.Thresholds {
	out := make(map[string]contribution.Thresholds, len(w.Servpods))
	for name, s := range w.Servpods {
		var t contribution.Thresholds
		if s.LoadLimit > 0 {
			t.LoadLimit = &s.LoadLimit
		}
		if s.SlackLimit > 0 {
			t.SlackLimit = &s.SlackLimit
		}
		out[name] = t
	}
	return out
}

// fallbackOf returns the declared fallback for when a workload's performance is missing.
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

// maxProfile is the largest profile file, in bytes.
const maxProfile = 1 << 20

// axesOf lists the resources, other than the first, for which a workload has a knob.
func axesOf(cfg *config.Config, w *config.Workload) []analyzer.Axis {
	var out []analyzer.Axis
	for _, s := range further(cfg) {
		if b, ok := w.Knob.BoundsOf(s.Name); ok && b.Max > b.Min {
			out = append(out, analyzer.Axis{Resource: s.Name, Min: b.Min, Max: b.Max, Stock: trimtab.ResourceOf(s.Name).Stock})
		}
	}
	return out
}

// further lists the resources of the pool other than the first.
func further(cfg *config.Config) []config.Share {
	shares := cfg.Pool.Shares()
	return shares[min(1, len(shares)):]
}

// source says where a quantity comes from: the answer to a query, or spans.
func source(query string) string {
	if query != "" {
		return analyzer.FromPrometheus
	}
	return analyzer.FromSpans
}

// PlannerConfig converts the configuration for the planner.
func PlannerConfig(cfg *config.Config) (planner.Config, error) {
	cfg = cfg.Pooled()
	policy, err := PolicyOf(cfg)
	if err != nil {
		return planner.Config{}, err
	}
	c := planner.Config{
		Pool: cfg.Pool.Name, Resource: cfg.Pool.Resource(), Capacity: cfg.Pool.Capacity(), Unit: cfg.Pool.Unit,
		Step: max(1, int(cfg.Pool.Step/cfg.Pool.Unit+0.5)), Round: cfg.Round, Lease: cfg.Lease, Urgent: cfg.Round / 5, AlertHold: cfg.Alertmanager.MaxHold, HoldRounds: cfg.Guard.HoldRounds, Policy: policy,
		Guard: guard.Config{Disabled: cfg.Guard.Off, Fall: cfg.Guard.MaxFall, Lowered: cfg.Guard.MaxLowered, Moved: cfg.Guard.MaxMoved,
			Band: orNone(cfg.Guard.DeadBand), Window: orNone(cfg.Guard.ReversalWindow)},
	}
	if f := cfg.Fast; f.Mode != trimtab.Off {
		c.Fast = &envelope.Rules{Floor: f.Floor, Ceiling: f.Ceiling, Budget: f.Stall.Seconds(), Burst: f.Burst}
	}
	for _, s := range further(cfg) {
		c.Others = append(c.Others, planner.Resource{Name: s.Name, Capacity: s.Capacity, Unit: s.Unit, Step: max(1, int(s.Step/s.Unit+0.5))})
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		var utility func(float64) float64
		if w.SLO.Target() > 0 { // a workload that is only observed needs none, nor one whose memory alone is planned
			var err error
			if utility, err = w.UtilityFunc(); err != nil {
				return c, fmt.Errorf("utility of %s: %w", w.Name, err)
			}
		}
		out := planner.WorkloadConfig{Name: w.Name, Mode: w.Mode, Class: w.Class, Weight: w.Weight, Host: w.Knob.Host, SLO: w.SLO.Target(), Utility: utility, Components: w.Components()}
		if b := w.Knob.Bounds(); b != nil {
			out.Min, out.Max, out.Default = b.Min, b.Max, b.Default
		}
		out.MemoryAlone = w.Knob.MemoryAlone(&cfg.Pool)
		out.Count = countOf(w.Knob.Replicas)
		out.Admit = admitOf(w)
		if m := w.Knob.Memory; w.Knob.Sized(&cfg.Pool) {
			out.Memory = &sizing.Bounds{Min: float64(m.Min), Max: float64(m.Max), Margin: m.Margin}
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

// admitOf returns the limits of the requests to a workload, by resource; nil: there are none.
func admitOf(w *config.Workload) map[string]planner.Admit {
	var all map[string]planner.Admit
	k := &w.Knob
	for _, a := range k.Admissions() {
		if all == nil {
			all = map[string]planner.Admit{}
		}
		b, _ := k.BoundsOf(a.Resource)
		admit := all[a.Resource]
		if a.Kind != "gate" {
			admit.Within = trimtab.Seconds(w.SLO.Latency.Seconds())
		}
		if admit.Max = b.Max; a.Class == "" {
			admit.Value = a.Value
		} else {
			if admit.Declared == nil {
				admit.Declared = map[string]float64{}
			}
			admit.Declared[a.Instance()] = a.Value
		}
		all[a.Resource] = admit
	}
	return all
}

// orNone converts a configured 0, "no limit", into the guard's negative value.
func orNone[T ~int64 | ~float64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// limitsOf returns the host's own limits, which the actuator applies to every plan.
func limitsOf(cfg *config.Config) actuator.Limits {
	own := &cfg.Actuator
	l := actuator.Limits{Capacity: map[string]float64{}, MaxLease: own.MaxLease, Skew: own.ClockSkew}
	for _, s := range cfg.Pool.Shares() {
		l.Capacity[s.Name] = s.Capacity
	}
	for i := range cfg.Workloads {
		if r := cfg.Workloads[i].Knob.Replicas; r != nil {
			l.Capacity[trimtab.Replicas] += float64(r.Max)
		}
	}
	if !cfg.Guard.Off {
		l.Fall, l.FallWindow, l.Share, l.ShareWindow = own.MaxFall, own.FallWindow, own.MaxLowered, own.LoweredWindow
	}
	return l
}

// limitMemory limits memory limits that the pool does not share: to the memory of this host, where that
// can be measured, and raises by what is free of it.
func limitMemory(c *actuator.Config, cfg *config.Config) {
	if len(marginsOf(cfg)) == 0 {
		return
	}
	c.Limits.Capacity[trimtab.Memory] = 1 << 60 // a tree of plain files
	if c.Measure == nil {
		return
	}
	if measured, err := c.Measure(); err == nil && measured[trimtab.Memory] > 0 {
		c.Limits.Capacity[trimtab.Memory] = measured[trimtab.Memory]
	}
	root, reserve := c.Roots[trimtab.Memory], cfg.Actuator.Reserve.Of(trimtab.Memory)
	if _, _, err := hostfs.FreeMemory(root); err != nil {
		return
	}
	c.FreeMemory = func() (free, used float64, err error) {
		free, used, err = hostfs.FreeMemory(root)
		return free - reserve, used, err
	}
}

// marginsOf returns the workloads whose memory limits the pool does not share, each with how far its
// limit is above its need, as a part of the need.
func marginsOf(cfg *config.Config) map[string]float64 {
	all := map[string]float64{}
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Knob.Sized(&cfg.Pool) {
			all[w.Name] = w.Knob.Memory.Margin
		}
	}
	return all
}

// probesOf returns the workloads whose instances are probed for the memory that they need.
func probesOf(cfg *config.Config) map[string]grow.Probe {
	all := map[string]grow.Probe{}
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Knob.Memory != nil && w.Knob.Memory.Probe > 0 {
			all[w.Name] = grow.Probe{Every: w.Knob.Memory.Probe, Target: w.SLO.Target()}
		}
	}
	return all
}

// groupsOf lists the control groups that a host reads. Their samples describe the whole workload,
// unless it has instances or may run on other hosts, too.
func groupsOf(cfg *config.Config, host string, fleet bool) []cgroup.Target {
	var out []cgroup.Target
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Cgroup == "" || !w.OnHost(host) {
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
