package config

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"
)

// BesideTasks lets speculative tasks run on the hosts that have it in their file.
type BesideTasks struct {
	// Account that tasks run as, a name or a number; never root. Required.
	User string `yaml:"user"`
	// Group that tasks run as. Left out: that of the user.
	Group string `yaml:"group"`
	// Control group, below the root of all, in which tasks are, one part of a path. Of two agents on one host each needs its own. Left out: trimtab.
	Cgroup string `yaml:"cgroup"`
	// Programs that may run: absolute paths, in which a * stands for a part of a name, such as [/opt/batch/*]. Nothing else starts, whatever a planner asks. An interpreter among them runs anything that user may. Required.
	Programs []string `yaml:"programs"`
	// UP: use first, tasks are only admitted by the thresholds and ratios below; RP: responsiveness first, tasks of which it is proven that they disturb a service are frozen, and none starts beside a service of which no fresh signal is known. Left out: RP.
	Mode string `yaml:"mode" of:"UP RP" hint:"write UP (use first) or RP (responsiveness of services first)"`
	// Cores beyond those that services have by their limits to which tasks are bound last, in mode RP. Left out: 1.
	Slack int `yaml:"slack" want:"0 to 10000"`
	// Which part of what the host has speculative tasks may be promised together, those of other pools included.
	Ratio TaskRatio `yaml:"ratio"`
	// Loads of the host under which a task starts, as shares of what it has. One that is set and cannot be measured starts nothing.
	Thresholds TaskThresholds `yaml:"thresholds"`
	// What tasks may have together to which the cluster's resource manager granted regular resources, never more than other claims leave of the host. Left out: they stay speculative.
	Regular TaskRegular `yaml:"regular"`
	// Tasks that may run at a time, 1 to 100. Left out: 64.
	Tasks int `yaml:"tasks" want:"1 to 100"`
	// Tasks that may wait here; one more is refused and dispatched elsewhere. Left out: 100.
	Queue int `yaml:"queue" want:"1 to 1000"`
	// What is kept of the output of a task, the first half and the last. Left out: 1MiB.
	Output Bytes `yaml:"output"`
	// Processes and threads that a task may have. Left out: 1024.
	Processes int `yaml:"processes" want:"1 to 1048576"`
	// Longest time that any task may run. Left out: as long as it asks for.
	Wall time.Duration `yaml:"wall" want:"1s to 8760h"`
	// Longest time that a task runs on without a word of the planner, 10s to 10m. Left out: 5m.
	Lease time.Duration `yaml:"lease" want:"10s to 10m"`
}

// The modes of speculative tasks.
const (
	Utilization    = "UP"
	Responsiveness = "RP"
)

// TaskRatio has the oversubscription ratios.
type TaskRatio struct {
	// Of CPU time. Left out: 1.
	CPU float64 `yaml:"cpu"`
	// Of memory. Left out: 0.4.
	Memory float64 `yaml:"memory"`
}

// TaskThresholds are loads of a host.
type TaskThresholds struct {
	// CPU time in use. Left out: 0.8.
	CPU float64 `yaml:"cpu"`
	// Memory in use. Left out: 0.8.
	Memory float64 `yaml:"memory"`
	// Load average of a minute over the number of CPUs. Left out: none.
	Load float64 `yaml:"load"`
	// Time in which the busiest disk was busy. Left out: none.
	Disk float64 `yaml:"disk"`
	// What is sent over all links whose speed is known. Left out: none.
	Network float64 `yaml:"network"`
	// Time in which something waited for a CPU (PSI). Left out: none.
	PressureCPU float64 `yaml:"pressure_cpu"`
	// Time in which something waited for memory (PSI). Left out: none.
	PressureMemory float64 `yaml:"pressure_memory"`
	// Time in which something waited for a disk (PSI). Left out: none.
	PressureIO float64 `yaml:"pressure_io"`
}

// Threshold is one load with its bound.
type Threshold struct {
	Name  string
	Upper float64
}

// List returns those that are set.
func (t *TaskThresholds) List() (set []Threshold) {
	for _, one := range t.list() {
		if one.Upper > 0 {
			set = append(set, one)
		}
	}
	return set
}

func (t *TaskThresholds) list() []Threshold {
	return []Threshold{{"cpu", t.CPU}, {"memory", t.Memory}, {"load", t.Load}, {"disk", t.Disk}, {"network", t.Network},
		{"pressure_cpu", t.PressureCPU}, {"pressure_memory", t.PressureMemory}, {"pressure_io", t.PressureIO}}
}

// TaskRegular limits the resources of all granted tasks together.
type TaskRegular struct {
	// CPU time, in cores.
	CPU float64 `yaml:"cpu" want:"more than 0 and at most 1000000" hint:"write cores"`
	// Memory.
	Memory Bytes `yaml:"memory"`
}

// fill sets what was left out.
func (s *BesideTasks) fill() {
	s.Mode = cmp.Or(s.Mode, Responsiveness)
	s.Cgroup = cmp.Or(s.Cgroup, "trimtab")
	s.Ratio.CPU = cmp.Or(s.Ratio.CPU, 1)
	s.Ratio.Memory = cmp.Or(s.Ratio.Memory, 0.4)
	s.Thresholds.CPU = cmp.Or(s.Thresholds.CPU, 0.8)
	s.Thresholds.Memory = cmp.Or(s.Thresholds.Memory, 0.8)
	s.Tasks = cmp.Or(s.Tasks, 64)
	s.Queue = cmp.Or(s.Queue, 100)
	s.Processes = cmp.Or(s.Processes, 1024)
	s.Output = cmp.Or(s.Output, 1<<20)
	s.Lease = cmp.Or(s.Lease, 5*time.Minute)
}

// check looks at the section.
func (s *BesideTasks) check(v *validator) {
	if s == nil {
		return
	}
	s.checkAccount(v)
	s.checkPrograms(v)
	if !v.has("beside.tasks.slack") {
		s.Slack = 1 // 0 can be asked for
	}
	if v.has("beside.tasks.output") && (s.Output < 4<<10 || s.Output > 1<<30) {
		v.fail("beside.tasks.output", fmt.Sprintf("output %s, want 4KiB to 1GiB", s.Output), "leave it out for 1MiB")
	}
	s.checkAmounts(v)
}

// checkAccount refuses root by its names; the agent looks the account up.
func (s *BesideTasks) checkAccount(v *validator) {
	const hint = "make an account that owns nothing, as with useradd --system --no-create-home batch, and write its name"
	switch {
	case s.User == "":
		at := "beside.tasks"
		if v.has("beside.tasks.user") {
			at = "beside.tasks.user"
		}
		v.fail(at, "beside.tasks has no user that tasks run as", hint)
	case s.User == "root" || strings.Trim(s.User, "0") == "":
		v.fail("beside.tasks.user", "tasks do not run as root", hint)
	case strings.ContainsAny(s.User, " :/\n\x00"):
		v.fail("beside.tasks.user", fmt.Sprintf("user %q is no name of an account", clip(s.User)), hint)
	}
	if strings.ContainsAny(s.Cgroup, "/*@\n\x00") || strings.HasPrefix(s.Cgroup, ".") || len(s.Cgroup) > 200 {
		v.fail("beside.tasks.cgroup", fmt.Sprintf("cgroup %q is not one part of a path", clip(s.Cgroup)), "write a name, or leave it out for trimtab")
	}
	if strings.ContainsAny(s.Group, " :/\n\x00") {
		v.fail("beside.tasks.group", fmt.Sprintf("group %q is no name of a group", clip(s.Group)), "write one, or leave it out for that of the user")
	}
}

// checkPrograms checks what may run.
func (s *BesideTasks) checkPrograms(v *validator) {
	if len(s.Programs) == 0 {
		at := "beside.tasks"
		if v.has("beside.tasks.programs") {
			at = "beside.tasks.programs"
		}
		v.fail(at, "beside.tasks has no programs that may run", "write programs: [/opt/batch/*], the fewest that do")
	}
	if len(s.Programs) > 1000 {
		v.fail("beside.tasks.programs", fmt.Sprintf("%d programs, limit 1000", len(s.Programs)), "write patterns")
		return
	}
	for i, p := range s.Programs {
		at := fmt.Sprintf("beside.tasks.programs[%d]", i)
		_, err := path.Match(p, "/")
		switch {
		case !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00\n") || len(p) > 4096:
			v.fail(at, fmt.Sprintf("program %q is not a plain absolute path", clip(p)), "write it as in /opt/batch/render or /opt/batch/*")
		case err != nil:
			v.fail(at, fmt.Sprintf("program %q is no pattern", clip(p)), "a * stands for a part of a name, [ begins a set of letters")
		}
	}
}

// checkAmounts checks ratios, thresholds and grants.
func (s *BesideTasks) checkAmounts(v *validator) {
	for _, r := range []Threshold{{"cpu", s.Ratio.CPU}, {"memory", s.Ratio.Memory}} {
		if at := "beside.tasks.ratio." + r.Name; v.has(at) && !(r.Upper > 0 && r.Upper <= 100) {
			v.fail(at, fmt.Sprintf("ratio of %s is %v, want more than 0 and at most 100", r.Name, r.Upper), "0.4 lets tasks be promised 40% of what the host has")
		}
	}
	if s.Ratio.Memory > 1 {
		v.warn("beside.tasks.ratio.memory", fmt.Sprintf("tasks may be promised %v times the memory of the host", s.Ratio.Memory), "the kernel kills processes when it is used: at most 1 cannot promise more than there is")
	}
	for _, t := range s.Thresholds.list() {
		if at := "beside.tasks.thresholds." + t.Name; v.has(at) && !(t.Upper > 0 && t.Upper <= 100) {
			v.fail(at, fmt.Sprintf("threshold of %s is %v, want more than 0 and at most 100", t.Name, t.Upper), "0.8 starts tasks below 80% of what the host has")
		}
	}
	if v.has("beside.tasks.regular") && (s.Regular.CPU == 0 || s.Regular.Memory == 0) {
		v.fail("beside.tasks.regular", "a grant is of CPU time and memory, and one of them is not given", "write regular: {cpu: 4, memory: 8GiB}")
	}
}
