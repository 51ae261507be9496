package config

import (
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// JobFile is a job as a person writes it. The comments of the fields are its
// documentation, docs/jobs.md.
type JobFile struct {
	// Name of the job: letters, digits, dots, dashes and underscores, at most 63. Required.
	Name string `yaml:"name"`
	// The higher one starts first. Left out: 0.
	Priority int `yaml:"priority"`
	// Further attempts at each task after one that failed or took too long, 0 to 100. Left out: 2.
	Retries *int `yaml:"retries"`
	// How long a task waits in a host's queue before it is dispatched elsewhere. Left out: the planner's.
	QueueTimeout time.Duration `yaml:"queue_timeout" want:"1s to 168h"`
	// The tasks, which may run in any order and at the same time. Required.
	Tasks []JobTask `yaml:"tasks"`
}

// JobTask is one task of a file, or several copies of it.
type JobTask struct {
	// Name of the task, as that of the job; copies get -1, -2 and so on behind it. Required.
	Name string `yaml:"name"`
	// How many there are, 1 to 10000. Each has its number, from 1, in the variable TRIMTAB_COPY. Left out: 1.
	Copies int `yaml:"copies"`
	// Program and arguments, which no shell sees: [/opt/batch/render, --frame, "7"]. Hosts run only the programs that they allow. Required.
	Command []string `yaml:"command"`
	// Variables of its environment, which is empty otherwise.
	Env map[string]string `yaml:"env"`
	// Working directory. Left out: /.
	Dir string `yaml:"dir"`
	// Cores that it may use. Required.
	CPU float64 `yaml:"cpu"`
	// Memory that it may use; a task that needs more is ended. Required.
	Memory Bytes `yaml:"memory"`
	// File in which it writes its progress, a number from 0 to 1.
	Progress string `yaml:"progress"`
	// Time after which it is ended, and counts as failed. Left out: none.
	Wall time.Duration `yaml:"wall" want:"1s to 8760h"`
}

const defaultRetries = 2

// LoadJob reads the job file at a path. The error is [Errors], or that of reading it.
func LoadJob(name string) (*speculation.BatchJob, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	defer f.Close()
	return ReadJob(name, f)
}

// ReadJob reads a job file; name is only for messages.
func ReadJob(name string, r io.Reader) (*speculation.BatchJob, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return ParseJob(name, data)
}

// ParseJob reads data, see [ReadJob]. The error is [Errors].
func ParseJob(name string, data []byte) (*speculation.BatchJob, error) {
	d := newDecoder(name)
	var f JobFile
	if root := d.read(data); len(d.errs) == 0 {
		d.value("", root, reflect.ValueOf(&f).Elem())
		v := &validator{decoder: d, broken: map[position]bool{}}
		for _, e := range d.errs {
			v.broken[position{e.Line, e.Col}] = true
		}
		f.check(v)
	}
	if len(d.errs) > 0 {
		return nil, d.errs.ordered()
	}
	job := f.job()
	if err := job.Validate(); err != nil { // whatever is only seen of all together
		d.report(position{1, 1}, strings.TrimSuffix(err.Error(), ": "+trimtab.ErrInvalid.Error()), "make it smaller, or split it into several jobs")
		return nil, d.errs.ordered()
	}
	return job, nil
}

// check checks each field, and reports mistakes at its position.
func (f *JobFile) check(v *validator) {
	v.declared()
	v.jobName("name", "job", f.Name)
	v.count("priority", f.Priority, -speculation.MaxPriority, speculation.MaxPriority)
	if f.Retries != nil {
		v.count("retries", *f.Retries, 0, speculation.MaxRetries)
	}
	if len(f.Tasks) == 0 {
		v.fail("tasks", "the job has no tasks", "write tasks: [{name: first, command: [/opt/batch/first], cpu: 1, memory: 256MiB}]")
	}
	names, total := map[string]bool{}, 0
	for i := range f.Tasks {
		t, at := &f.Tasks[i], "tasks["+strconv.Itoa(i)+"]"
		t.check(v, at)
		for _, name := range t.names() {
			if names[name] && name != "" {
				v.fail(at+".name", fmt.Sprintf("there is another task %q", clip(name)), "give each task a name of its own")
				break
			}
			names[name] = true
		}
		if total += max(1, t.Copies); total > speculation.MaxBatchTasks {
			v.fail(at, fmt.Sprintf("the job has more than %d tasks", speculation.MaxBatchTasks), "split it into several jobs")
			return
		}
	}
}

// need reports a key that must be there.
func (v *validator) need(at, key, hint string) bool {
	if v.has(at + key) {
		return true
	}
	v.fail(strings.TrimSuffix(at, "."), fmt.Sprintf("%s has no %s", strings.TrimSuffix(at, "."), key), hint)
	return false
}

func (v *validator) jobName(at, what, name string) {
	if !v.has(at) {
		v.fail(at, "the "+what+" has no name", "write name: nightly-render")
	} else if !speculation.IsTaskName(name) {
		v.fail(at, fmt.Sprintf("the %s cannot be called %q", what, clip(name)), "1 to 63 letters, digits, '.', '-' and '_', first a letter or digit")
	}
}

func (t *JobTask) check(v *validator, at string) {
	v.jobName(at+".name", "task", t.Name)
	if v.has(at + ".copies") {
		v.count(at+".copies", t.Copies, 1, speculation.MaxBatchTasks)
		if n := len(t.Name) + len(strconv.Itoa(t.Copies)) + 1; t.Copies > 1 && n > 63 {
			v.fail(at+".name", "the name is too long for the numbers of its copies", "shorten it")
		}
	}
	if v.need(at+".", "command", "write command: [/opt/batch/render, --frame, \"7\"]") && (len(t.Command) == 0 || t.Command[0] == "") {
		v.fail(at+".command", "the command has no program", "write command: [/opt/batch/render, --frame, \"7\"]")
	}
	if v.need(at+".", "cpu", "write the cores that it may use, such as cpu: 0.5") && !(t.CPU >= 0.01 && t.CPU <= 10_000) {
		v.fail(at+".cpu", fmt.Sprintf("cpu is %v, want 0.01 to 10000 cores", t.CPU), "write the cores that it may use, such as cpu: 0.5")
	}
	if v.need(at+".", "memory", "write what it may use, such as memory: 256MiB") && (t.Memory < 1<<20 || t.Memory > 1<<50) {
		v.fail(at+".memory", fmt.Sprintf("memory is %s, want 1MiB to 1PiB", t.Memory), "write what it may use, such as memory: 256MiB")
	}
	for key, p := range map[string]string{"dir": t.Dir, "progress": t.Progress} {
		if v.has(at+"."+key) && !path.IsAbs(p) {
			v.fail(at+"."+key, fmt.Sprintf("%s %q is no absolute path", key, clip(p)), "hosts have no working directory of yours: begin with /")
		}
	}
	for name := range t.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			v.fail(at+".env."+name, fmt.Sprintf("a variable cannot be called %q", clip(name)), "write names without =")
		}
	}
}

// names are those of the task, or of its copies; a bounded number of them.
func (t *JobTask) names() []string {
	if t.Copies <= 1 {
		return []string{t.Name}
	}
	all := make([]string, min(t.Copies, speculation.MaxBatchTasks))
	for i := range all {
		all[i] = t.Name + "-" + strconv.Itoa(i+1)
	}
	return all
}

func (f *JobFile) job() *speculation.BatchJob {
	j := &speculation.BatchJob{Name: f.Name, Priority: f.Priority, Retries: defaultRetries, QueueTimeout: trimtab.SecondsOf(f.QueueTimeout)}
	if f.Retries != nil {
		j.Retries = *f.Retries
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		spec := speculation.TaskSpec{Command: t.Command, Env: t.Env, Dir: t.Dir, Cores: t.CPU, Memory: float64(t.Memory), Progress: t.Progress, Wall: trimtab.SecondsOf(t.Wall)}
		names := t.names()
		for n, name := range names {
			s := spec
			if len(names) > 1 {
				s.Env = map[string]string{"TRIMTAB_COPY": strconv.Itoa(n + 1)}
				for k, v := range t.Env {
					s.Env[k] = v
				}
			}
			j.Tasks = append(j.Tasks, speculation.BatchTask{Name: name, TaskSpec: s})
		}
	}
	return j
}
