package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// TaskManager is the job manager of the pool, a part of the planner. A file with a section
// beside.tasks has one too.
type TaskManager struct {
	// How machines are selected for speculative tasks: MMF (by load, then by queue, as in ROSE), RB (at random), SLB (by load), QLB (by queue). Left out: MMF.
	Policy string `yaml:"policy" of:"MMF RB SLB QLB" hint:"write one of: MMF, RB, SLB, QLB"`
	// UP: use first; RP: responsiveness first, which leaves out the machines with the highest CPI and MPKI where they are counted. Left out: RP.
	Mode string `yaml:"mode" of:"UP RP" hint:"write one of: UP, RP"`
	// The most machines on which speculative tasks start at a time (L_max), 1 to 100000. Left out: 100.
	Candidates int `yaml:"candidates" want:"1 to 100000"`
	// How many times as many pass by their load before the queue decides (d), 1 to 100. Left out: 2.
	Widen float64 `yaml:"widen" want:"1 to 100"`
	// Share of the machines that are left out for the highest CPI or MPKI, and for tasks that failed on them, 0 to 0.5. Left out: 0.1.
	Worst *float64 `yaml:"worst" want:"0 to 0.5" hint:"0.1 leaves out a tenth of the machines"`
	// Loads over which a machine is no candidate, by name, as shares of what it has: cpu, memory, load, disk, network, pressure_cpu, pressure_memory, pressure_io. Left out: {cpu: 0.8, memory: 0.8}.
	Thresholds map[string]float64 `yaml:"thresholds"`
	// Weights of the loads by which machines are ranked. A machine that does not report one of them is no candidate. Left out: {cpu: 1, memory: 1}.
	Weights map[string]float64 `yaml:"weights"`
	// Order in which candidates get tasks: random or round-robin. Left out: random.
	Dispatch string `yaml:"dispatch" of:"random round-robin" hint:"write one of: random, round-robin"`
	// Progress from which a task that was granted regular resources elsewhere goes on where it runs, 0 to 1. Left out: 0.6.
	Keep *float64 `yaml:"keep" want:"0 to 1" hint:"0.6 keeps tasks of which 60% are done"`
	// How long a host runs on tasks after a report that was answered; a host that is silent for longer than that and a tenth is known to have ended them. 10s to 10m. Left out: 30s.
	Lease time.Duration `yaml:"lease" want:"10s to 10m"`
	// How long a task waits in a host's queue before it is dispatched elsewhere, 1s to 24h. Left out: 1m.
	QueueTimeout time.Duration `yaml:"queue_timeout" want:"1s to 24h"`
}

// batchLoads lists the loads that thresholds and weights may name.
func batchLoads() []string {
	var names []string
	for _, t := range (&TaskThresholds{}).list() {
		names = append(names, t.Name)
	}
	return names
}

// fill sets what was left out.
func (b *TaskManager) fill() {
	b.Policy = cmp.Or(b.Policy, "MMF")
	b.Mode = cmp.Or(b.Mode, Responsiveness)
	b.Dispatch = cmp.Or(b.Dispatch, "random")
	b.Candidates = cmp.Or(b.Candidates, 100)
	b.Widen = cmp.Or(b.Widen, 2)
	b.Lease = cmp.Or(b.Lease, 30*time.Second)
	b.QueueTimeout = cmp.Or(b.QueueTimeout, time.Minute)
	b.Worst = cmp.Or(b.Worst, new(0.1))
	b.Keep = cmp.Or(b.Keep, new(0.6))
	if b.Thresholds == nil {
		b.Thresholds = map[string]float64{"cpu": 0.8, "memory": 0.8}
	}
	if b.Weights == nil {
		b.Weights = map[string]float64{"cpu": 1, "memory": 1}
	}
}

// check looks at the section.
func (b *TaskManager) check(v *validator) {
	if b == nil {
		return
	}
	for at, of := range map[string]map[string]float64{"beside.manager.thresholds.": b.Thresholds, "beside.manager.weights.": b.Weights} {
		for name, x := range of {
			switch {
			case !slices.Contains(batchLoads(), name):
				v.fail(at+name, fmt.Sprintf("no machine tells a load %q", clip(name)), suggest(name, batchLoads()))
			case !(x > 0 && x <= 100):
				v.fail(at+name, fmt.Sprintf("%s is %v, want more than 0 and at most 100", clip(name), x), "remove the key to leave the load out")
			}
		}
	}
}
