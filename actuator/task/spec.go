package task

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// ID identifies one attempt at a task: an attempt is started once, on one host.
type ID = speculation.AttemptID

// leafOf returns the last part of its group's path, which is also the name of its directory. The
// kernel's own files contain no @.
func leafOf(id ID) string { return fmt.Sprintf("%s@%s@%d", id.Job, id.Task, id.Attempt) }

// parseLeaf parses the output of leafOf.
func parseLeaf(leaf string) (ID, error) {
	part := strings.Split(leaf, "@")
	if len(part) != 3 {
		return ID{}, trimtab.Invalidf("group %.80q: not of a task", leaf)
	}
	attempt, err := strconv.Atoi(part[2])
	id := ID{Job: part[0], Task: part[1], Attempt: attempt}
	if err != nil || leafOf(id) != leaf {
		return ID{}, trimtab.Invalidf("group %.80q: not of a task", leaf)
	}
	return id, id.Validate()
}

const namePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

// Class is the class of a task, which has a control group.
type Class string

// The classes. Oversubscribed is for speculative tasks.
const (
	Oversubscribed Class = "oversubscribed"
	Regular        Class = "regular"
)

// classes returns all classes with their CPU weights relative to each other.
func classes() map[Class]float64 { return map[Class]float64{Oversubscribed: 1, Regular: 100} }

// Resources are the limits of a task. Unlimited is a value; zero is an error.
type Resources struct {
	// Cores is the CPU quota, Memory the limit in bytes, at least MinMemory.
	Cores  trimtab.Amount `json:"cores"`
	Memory trimtab.Amount `json:"memory"`
}

// MinMemory is the least memory limit of a task, in bytes: on version 2 the shim runs within it.
const MinMemory = 32 << 20

// Limits has further limits of a task.
type Limits struct {
	// Output is how many bytes of output are kept, the first half and the last; 0: 1 MiB.
	Output int64 `json:"output,omitempty"`
	// Wall is the time after which it is killed, including the time in which it was frozen; 0:
	// none.
	Wall time.Duration `json:"wall_ns,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL when it is killed on request or because of
	// Wall; 0: 5 s.
	Grace time.Duration `json:"grace_ns,omitempty"`
	// Processes limits the number of its processes and threads, if the kernel can; 0: 1024.
	Processes int `json:"processes,omitempty"`
}

const (
	defaultOutput    = 1 << 20
	minOutput        = 4 << 10
	maxOutput        = 1 << 30
	defaultGrace     = 5 * time.Second
	maxGrace         = 5 * time.Minute
	defaultProcesses = 1024
	maxProcesses     = 1 << 20
	// maxText is the largest size of command and environment together, well below the kernel's
	// limit, in bytes.
	maxText = 128 << 10
)

func (l Limits) withDefaults() Limits {
	if l.Output == 0 {
		l.Output = defaultOutput
	}
	if l.Grace == 0 {
		l.Grace = defaultGrace
	}
	if l.Processes == 0 {
		l.Processes = defaultProcesses
	}
	return l
}

// Spec describes the task to run.
type Spec struct {
	ID
	// Class is Oversubscribed unless it is set.
	Class Class `json:"class,omitempty"`
	// Command is the program, an absolute path or a name to be found in Env's PATH, and
	// its arguments.
	Command []string `json:"command"`
	// Env is the whole environment.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the working directory, an absolute path.
	Dir string `json:"dir"`
	// User and Group are names or numbers; "": the user of this process, and the user's group.
	User  string `json:"user,omitempty"`
	Group string `json:"group,omitempty"`
	Resources
	// CPUs are the CPUs on which it runs, as a list such as "4-7"; "": all.
	CPUs string `json:"cpus,omitempty"`
	// Progress is a file to which the task writes its progress (package jobs); "": none.
	Progress string `json:"progress,omitempty"`
	Limits   Limits `json:"limits,omitzero"`
}

func (s Spec) withDefaults() Spec {
	if s.Class == "" {
		s.Class = Oversubscribed
	}
	s.Limits = s.Limits.withDefaults()
	return s
}

// Validate returns all mistakes, as an error that is trimtab.ErrInvalid.
func (s Spec) Validate() error {
	s = s.withDefaults()
	_, known := classes()[s.Class]
	return errors.Join(s.ID.Validate(),
		unless(known, "class %.40q: want oversubscribed or regular", s.Class),
		s.validateCommand(), s.validateEnv(),
		unless(plain(s.Dir), "directory %.200q: want an absolute path without . and ..", s.Dir),
		unless(validCPUs(s.CPUs), "CPUs %.60q: want a list such as 0-3,8", s.CPUs),
		unless(s.Progress == "" || plain(s.Progress), "progress %.200q: want an absolute path without . and ..", s.Progress),
		unless(s.Group == "" || s.User != "", "group %.40q: without a user", s.Group),
		s.Resources.validate(), s.Limits.validate())
}

func (s Spec) validateCommand() error {
	if len(s.Command) == 0 {
		return trimtab.Invalidf("command: empty")
	}
	size := 0
	for _, word := range s.Command {
		if strings.ContainsRune(word, 0) {
			return trimtab.Invalidf("command: a word has a NUL byte")
		}
		size += len(word) + 1
	}
	for name, value := range s.Env {
		size += len(name) + len(value) + 2
	}
	program := s.Command[0]
	bare := program != "" && !strings.Contains(program, "/") && program != "." && program != ".."
	return errors.Join(
		unless(size <= maxText, "command and environment: %d bytes, limit %d", size, maxText),
		unless(bare || plain(program), "command %.200q: want an absolute path, or a name without a slash", program),
		unless(!bare || s.Env["PATH"] != "", "command %.200q: a name needs PATH in the environment", program))
}

func (s Spec) validateEnv() error {
	name := regexp.MustCompile(namePattern)
	for _, n := range slices.Sorted(maps.Keys(s.Env)) {
		if !name.MatchString(n) {
			return trimtab.Invalidf("environment: name %.80q: want letters, digits and underscores", n)
		}
		if strings.ContainsRune(s.Env[n], 0) {
			return trimtab.Invalidf("environment: %s has a NUL byte", n)
		}
	}
	return nil
}

func (r Resources) validate() error {
	for _, a := range []trimtab.Amount{r.Cores, r.Memory} {
		if err := a.Validate(); err != nil {
			return err
		}
	}
	return errors.Join(
		unless(r.Cores.Unlimited || r.Cores.Value >= 0.01 && r.Cores.Value <= 1e5, "cores %v: want at least 0.01, or without limit", r.Cores),
		unless(r.Memory.Unlimited || r.Memory.Value >= MinMemory && r.Memory.Value <= 1<<60, "memory %v: want at least %d bytes, or without limit", r.Memory, MinMemory))
}

func (l Limits) validate() error {
	return errors.Join(
		unless(l.Output >= minOutput && l.Output <= maxOutput, "output %d: want %d to %d bytes", l.Output, minOutput, maxOutput),
		unless(l.Wall >= 0, "wall time %v: below zero", l.Wall),
		unless(l.Grace > 0 && l.Grace <= maxGrace, "grace %v: want up to %v", l.Grace, maxGrace),
		unless(l.Processes > 0 && l.Processes <= maxProcesses, "processes %d: want 1 to %d", l.Processes, maxProcesses))
}

// plain reports whether p is an absolute path in its shortest form.
func plain(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0) && len(p) < 4096
}

func unless(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return trimtab.Invalidf(format, args...)
}

// environment returns Env in the form NAME=VALUE, sorted.
func (s Spec) environment() []string {
	env := make([]string, 0, len(s.Env))
	for _, n := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, n+"="+s.Env[n])
	}
	return env
}
