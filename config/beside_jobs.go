package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// BesideJobs is best-effort jobs beside the latency-critical workloads of a host.
type BesideJobs struct {
	// What decides: rhythm (thresholds for each component, and the job that loses least goes first), rhythm-indiscriminate (any job goes), heracles (one rule for a whole service), deflation (the same share is taken from all) or none (no job runs). Left out: rhythm.
	Policy string `yaml:"policy" of:"rhythm rhythm-indiscriminate heracles deflation none"`
	// recommend: trimtab says what it would do, and writes nothing; act: trimtab does it. For jobs that have no mode of their own. Left out: recommend.
	Mode trimtab.Mode `yaml:"mode"`
	// Time between two decisions, 100ms to 1m. Left out: 2s.
	Period time.Duration `yaml:"period"`
	// Age at which the data of a service counts as missing. From then on no job grows; after the same time again all jobs are suspended. At least two periods. Left out: 5 periods and three report intervals.
	MaxAge time.Duration `yaml:"max_age"`
	// How long a job keeps its allocation when the agent is gone; then it falls back to the declared minimum. At least 5 periods and 5s. Left out: 10 periods, at least 20s.
	Lease time.Duration `yaml:"lease"`
	// What best-effort jobs of one host may have together. trimtab always limits CPU time, and other resources if this or start names them. Never more than the host has, less actuator.reserve and the claims of its other pools; left out: that much.
	Capacity Amounts `yaml:"capacity"`
	// What a new job gets. Left out: a tenth of the capacity, at most 1 core, and up to 2GiB of memory.
	Start Amounts `yaml:"start"`
	// What one decision gives or takes. Left out: as start, and 100MiB of memory.
	Step Amounts `yaml:"step"`
}

// Amounts are amounts of resources that best-effort jobs have.
type Amounts struct {
	// CPU time, in cores.
	CPU float64 `yaml:"cpu"`
	// Physical cores of their own, a whole number.
	Cores float64 `yaml:"cores"`
	// Memory.
	Memory Bytes `yaml:"memory"`
	// Ways of the last-level cache, a whole number.
	LLC float64 `yaml:"llc"`
	// Memory bandwidth, as the kernel of the host counts it: percent or MB/s.
	MemBW float64 `yaml:"membw"`
	// Network bandwidth, bytes a second.
	Network Bytes `yaml:"network"`
}

// ByResource returns the amounts that are given, by the name of the resource and in
// its unit.
func (a *Amounts) ByResource() map[string]float64 {
	out := map[string]float64{}
	for _, of := range a.list() {
		if of.amount != 0 {
			out[of.name] = of.amount
		}
	}
	return out
}

// given is one amount of Amounts.
type given struct {
	name   string
	amount float64
}

func (a *Amounts) list() []given {
	return []given{{trimtab.CPU, a.CPU}, {"cores", a.Cores}, {trimtab.Memory, float64(a.Memory)}, {"llc", a.LLC}, {"membw", a.MemBW}, {"network", float64(a.Network)}}
}

// Progress says where a best-effort job reports its progress.
type Progress struct {
	// File that the job writes, absolute; a * stands for the name of the instance, as in the cgroup. Its last line is JSON: {"done": 0.4}, or {"step": 123, "steps": 1000}, with "saved": 120, the step (or part) of the last checkpoint, up to which nothing can be lost, and "finished": true at the end. Left out: the job tells it over HTTP, or not at all.
	File string `yaml:"file"`
}

// Predict says how what a best-effort job would lose is predicted.
type Predict struct {
	// data-parallel (by the part that is done, as of Spark), training (by steps) or none (by the time since its last checkpoint). Left out: none.
	Kind string `yaml:"kind"`
}

// The kinds of prediction.
const (
	DataParallel = "data-parallel"
	Training     = "training"
	Unpredicted  = "none"
)

// Predictions lists the kinds of prediction.
func Predictions() []string { return []string{DataParallel, Training, Unpredicted} }

// LeastCPU is the least that a job may have where nothing is declared.
const LeastCPU = 0.01

// IsJob reports whether a workload is one of the host's best-effort jobs, which no
// pool plans for: its class says so, and there is a section beside.jobs.
func (c *Config) IsJob(w *Workload) bool {
	return c.Beside.Jobs != nil && w.Class == trimtab.BestEffort
}

// Jobs lists the workloads that are best-effort jobs.
func (c *Config) Jobs() (all []*Workload) {
	for i := range c.Workloads {
		if c.IsJob(&c.Workloads[i]) {
			all = append(all, &c.Workloads[i])
		}
	}
	return all
}

// Pooled returns the configuration without the best-effort jobs: of the workloads
// that share the pool. It is c where there are none.
func (c *Config) Pooled() *Config {
	if len(c.Jobs()) == 0 {
		return c
	}
	pooled := *c
	pooled.Workloads = nil
	for i := range c.Workloads {
		if !c.IsJob(&c.Workloads[i]) {
			pooled.Workloads = append(pooled.Workloads, c.Workloads[i])
		}
	}
	return &pooled
}

// fill sets what was left out.
func (c *BesideJobs) fill(report time.Duration) {
	c.Policy = cmp.Or(c.Policy, "rhythm")
	c.Mode = cmp.Or(c.Mode, trimtab.Recommend)
	c.Period = cmp.Or(c.Period, 2*time.Second)
	c.MaxAge = cmp.Or(c.MaxAge, 5*c.Period+3*report)
	c.Lease = cmp.Or(c.Lease, max(10*c.Period, 20*time.Second))
}

// fillJob sets what was left out of a best-effort job.
func (w *Workload) fillJob(c *BesideJobs) {
	w.Mode = cmp.Or(w.Mode, c.Mode)
	w.Predict.Kind = cmp.Or(w.Predict.Kind, Unpredicted)
	if w.Knob.CPU == nil {
		w.Knob.CPU = new(CPUBounds)
	}
	w.Knob.CPU.Min = cmp.Or(w.Knob.CPU.Min, LeastCPU)
}

// check looks at the section.
func (c *BesideJobs) check(v *validator) {
	if c == nil {
		return
	}
	if modes := []string{string(trimtab.Recommend), string(trimtab.Act)}; c.Mode != "" && !slices.Contains(modes, string(c.Mode)) {
		v.fail("beside.jobs.mode", fmt.Sprintf("unknown mode %q", clip(string(c.Mode))), suggest(string(c.Mode), []string{"recommend", "act"})+"; without the section nothing is decided")
	}
	period := c.Period
	period = cmp.Or(period, 2*time.Second)
	v.between("beside.jobs.period", period, 100*time.Millisecond, time.Minute)
	if v.has("beside.jobs.max_age") {
		v.between("beside.jobs.max_age", c.MaxAge, 2*period, time.Hour)
	}
	if v.has("beside.jobs.lease") {
		v.between("beside.jobs.lease", c.Lease, max(5*period, 5*time.Second), time.Hour)
	}
	capacity := c.Capacity.ByResource()
	for _, s := range []struct {
		name string
		of   *Amounts
	}{{"capacity", &c.Capacity}, {"start", &c.Start}, {"step", &c.Step}} {
		at := "beside.jobs." + s.name
		for _, of := range s.of.list() {
			of.check(v, at+"."+of.name, capacity[of.name])
		}
	}
	if v.has("beside.jobs.capacity") && len(capacity) == 0 {
		v.fail("beside.jobs.capacity", "capacity is empty", "write capacity: {cpu: 4, memory: 8GiB}, or remove the key for what the host has")
	}
}

// check looks at one amount of what jobs get; most is the capacity, 0: none is
// declared.
func (of given) check(v *validator, at string, most float64) {
	if !v.has(at) {
		return
	}
	whole := of.name == "cores" || of.name == "llc"
	switch {
	case !(of.amount > 0 && of.amount <= 1e15):
		v.fail(at, fmt.Sprintf("%s is %v, want more than 0", of.name, of.amount), "remove the key to leave it alone")
	case whole && of.amount != float64(int64(of.amount)):
		v.fail(at, fmt.Sprintf("%s is %v, want a whole number", of.name, of.amount), "round it")
	case most > 0 && of.amount > most:
		v.fail(at, fmt.Sprintf("%s %s is more than the capacity %s", of.name, amount(of.name, of.amount), amount(of.name, most)), "no job would ever start: lower it or raise the capacity")
	}
}

// checkJob checks a best-effort job.
func (w *Workload) checkJob(v *validator, at string) {
	k, where := &w.Knob, at+".knob"
	switch {
	case !k.Declared():
		v.fail(at, fmt.Sprintf("best-effort job %q has no cgroup", clip(w.Name)), "write knob: {cgroup: batch.slice/*.scope}, or remove it: a job may also register itself with POST /api/v1/jobs")
		return
	case k.Process != nil:
		v.fail(where+".process", "a best-effort job is a cgroup", "write knob: {cgroup: PATH}: processes outside of a cgroup can be neither limited nor frozen")
		return
	}
	v.cgroup(where+".cgroup", k.Cgroup)
	if v.has(where + ".workers") {
		v.fail(where+".workers", "a cgroup knob has no workers", "write cpu: {min: …, max: …}")
	}
	if k.CPU != nil {
		k.CPU.Bounds.checkPositives(v, where+".cpu")
		k.CPU.Bounds.checkOrder(v, where+".cpu", Share{Name: trimtab.CPU})
	}
	if k.Memory != nil {
		b := k.Memory.bounds()
		b.checkPositives(v, where+".memory")
		b.checkOrder(v, where+".memory", Share{Name: trimtab.Memory})
	}
	for name := range k.Resources {
		v.fail(where+".resources."+name, "the further resources of a best-effort job have no bounds", "remove the key: beside.jobs.capacity, start and step say what jobs get")
	}
	for _, key := range []string{"slo", "load", "performance", "fallback", "guarantee", "guarantees"} {
		if v.has(at + "." + key) {
			v.warn(at+"."+key, fmt.Sprintf("%s of best-effort job %q does not count", key, clip(w.Name)), "remove it: what a job is given is what latency-critical workloads leave")
		}
	}
	w.checkProgress(v, at)
}

// checkProgress checks where a job reports its progress.
func (w *Workload) checkProgress(v *validator, at string) {
	if kind := w.Predict.Kind; kind != "" && !slices.Contains(Predictions(), kind) {
		v.fail(at+".predict.kind", fmt.Sprintf("unknown kind of prediction %q", clip(kind)), suggest(kind, Predictions()))
	}
	where, file := at+".progress.file", w.Progress.File
	switch {
	case !v.has(where):
	case !strings.HasPrefix(file, "/") || strings.ContainsAny(file, "\x00\n") || len(file) > 1024 || slices.Contains(strings.Split(file, "/"), ".."):
		v.fail(where, fmt.Sprintf("file %q is not a plain absolute path", clip(file)), "write it as in /run/batch/train.progress")
	case strings.Count(file, "*") > 1:
		v.fail(where, fmt.Sprintf("file %q has more than one *", clip(file)), "one * stands for the name of the instance")
	case strings.Contains(file, "*") && !w.Knob.Several():
		v.fail(where, fmt.Sprintf("file %q has a *, and the cgroup has none", clip(file)), "write the whole path")
	case !strings.Contains(file, "*") && w.Knob.Several():
		v.fail(where, fmt.Sprintf("file %q is one for all instances", clip(file)), "write a * where the name of the instance stands")
	}
}

// checkNoJob refuses what only best-effort jobs have.
func (w *Workload) checkNoJob(v *validator, at string) {
	for _, key := range []string{"progress", "predict"} {
		if !v.has(at + "." + key) {
			continue
		}
		hint := "write class: best-effort, or remove the key"
		if w.Class == trimtab.BestEffort {
			hint = "add beside: {jobs: {}}, or remove the key: without it a best-effort workload shares the pool as others do"
		}
		v.fail(at+"."+key, fmt.Sprintf("%s is for best-effort jobs, and %q is none", key, clip(w.Name)), hint)
	}
}

// RegisteredJobs is the name for all jobs that register themselves: their
// IDs are jobs/NAME.
const RegisteredJobs = "jobs"

// jobsApart refuses names under which two jobs, or a job and a service, would be one,
// and jobs in the control groups of services.
func (v *validator) jobsApart() {
	if v.config.Beside.Jobs == nil {
		return
	}
	several := map[string]bool{} // names whose jobs are called NAME/INSTANCE
	for i := range v.config.Workloads {
		if w := &v.config.Workloads[i]; v.config.IsJob(w) && w.Knob.Several() {
			several[w.Name] = true
		}
	}
	for i := range v.config.Workloads {
		w, at := &v.config.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		if w.Name == RegisteredJobs || strings.HasPrefix(w.Name, RegisteredJobs+"/") {
			v.fail(at+".name", fmt.Sprintf("the name %q is that of best-effort jobs that register themselves", clip(w.Name)),
				"give it another name, or remove beside.jobs")
		}
		if !v.config.IsJob(w) {
			continue
		}
		for j, c := range w.Name {
			if c == '/' && several[w.Name[:j]] {
				v.fail(at+".name", fmt.Sprintf("job %q may have the name of an instance of %q", clip(w.Name), clip(w.Name[:j])), "give one of them another name")
			}
		}
		w.checkJobOfComponent(v, at)
	}
}

// checkJobOfComponent refuses a job in, or above, the control group of a component that is
// watched.
func (w *Workload) checkJobOfComponent(v *validator, at string) {
	for _, group := range v.config.componentGroups() {
		if meet(strings.Split(plainGroup(w.Knob.Cgroup), "/"), strings.Split(plainGroup(group), "/")) {
			v.fail(at+".knob.cgroup", fmt.Sprintf("cgroup %q is, or can be, that of the component in %q, or one above or below it", clip(w.Knob.Cgroup), clip(group)),
				"declare the groups of the jobs alone: a job is cut to next to nothing, with all that is in its group")
			return
		}
	}
}

// componentGroups lists the control groups of the components that are watched.
func (c *Config) componentGroups() (all []string) {
	for i := range c.Sockets.Components {
		if group := strings.Trim(c.Sockets.Components[i].Cgroup, "/"); group != "" {
			all = append(all, group)
		}
	}
	return all
}

// ServiceGroups lists the control groups that the file names, perhaps with a *: of
// workloads, of components and of speculative tasks. No job that registers itself may be one of them.
func (c *Config) ServiceGroups() (all []string) {
	for i := range c.Workloads {
		if group := c.Workloads[i].Knob.Cgroup; group != "" {
			all = append(all, group)
		}
	}
	if c.Beside.Tasks != nil {
		all = append(all, c.Beside.Tasks.Cgroup)
	}
	return append(all, c.componentGroups()...)
}
