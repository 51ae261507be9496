package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Limits on the stored state of speculative work: number of jobs, bytes of all jobs, number of
// hosts.
const (
	maxBatchJobs  = 2000
	maxBatchBytes = 64 << 20
	maxBatchHosts = 20_000
	// maxBatchLines bounds the tasks whose last lines are kept, at most 20 lines each.
	maxBatchLines = 5000
)

// The state of speculative jobs, as the job manager reports it.
type (
	JobState  = speculation.JobState
	TaskState = speculation.TaskState
	Attempt   = speculation.Attempt
)

// Batch has the state of the pool's speculative jobs: GET /api/v1/batch.
type Batch struct {
	Pool string    `json:"pool"`
	Time time.Time `json:"time"`
	// Jobs are without their tasks: those that are not over first, then by their
	// submission, the newest first.
	Jobs []JobState `json:"jobs"`
	// Hosts lists the hosts that run speculative tasks, by name; the counts are sums over them.
	Hosts   []BatchHost `json:"hosts"`
	Running int         `json:"running"`
	Waiting int         `json:"waiting"`
}

// BatchHost is a host's newest report of its speculative tasks.
type BatchHost struct {
	Host string `json:"host"`
	// ReportAge is the age of the host's newest report. Silent says that it is too old for the host to
	// get tasks.
	ReportAge trimtab.Seconds    `json:"heard_s"`
	Silent    bool               `json:"silent,omitempty"`
	Running   int                `json:"running"`
	Waiting   int                `json:"waiting"`
	Regular   int                `json:"regular"`
	Load      map[string]float64 `json:"load,omitempty"`
	Capacity  map[string]float64 `json:"capacity,omitempty"`
	Blocked   string             `json:"blocked,omitempty"`
	// Signals has the signals of the services on the host, as the host judges them.
	Signals []ServiceSignal `json:"signals,omitempty"`
}

// ServiceSignal is one signal of a service beside speculative tasks.
type ServiceSignal = speculation.ServiceSignal

// HostSignal is a signal, with its host.
type HostSignal struct {
	Host string `json:"host"`
	ServiceSignal
}

// maxHostSignals bounds the signals of one workload that are shown.
const maxHostSignals = 100

// batchBook has the reported state of speculative work.
type batchBook struct {
	jobs  map[string]*speculation.JobState
	bytes int
	hosts map[string]*batchHost
	// lines has the hosts' reports of the newest attempts, with their last output, by job and task;
	// order has their keys, the oldest report first.
	lines map[[2]string]*Attempt
	order [][2]string
}

type batchHost struct {
	said       BatchHost
	reportedAt time.Time
}

// observeJob stores the state of a job.
func (b *batchBook) observeJob(j *speculation.JobState) {
	if b.jobs == nil {
		b.jobs = map[string]*speculation.JobState{}
	}
	old := b.jobs[j.Name]
	if old != nil && old.Time.After(j.Time) && !ahead(old.Time) {
		return
	}
	b.forget(old)
	if j.State == speculation.StateForgotten {
		return
	}
	b.jobs[j.Name] = j
	b.bytes += batchCost(j)
	for len(b.jobs) > maxBatchJobs || b.bytes > maxBatchBytes && len(b.jobs) > 1 {
		all := b.sorted()
		last := all[len(all)-1]
		if last == j && len(all) > 1 {
			last = all[len(all)-2]
		}
		b.forget(last)
	}
}

func (b *batchBook) forget(j *speculation.JobState) {
	if j != nil {
		b.bytes -= batchCost(j)
		delete(b.jobs, j.Name)
	}
}

// batchCost is about how many bytes a state takes.
func batchCost(j *speculation.JobState) int {
	n := 500
	for i := range j.Tasks {
		n += 300 + len(j.Tasks[i].Why)
		if a := j.Tasks[i].Last; a != nil {
			n += 300 + len(a.Reason) + len(a.Problem)
			for _, l := range a.LastLines {
				n += 16 + len(l)
			}
		}
	}
	return n
}

// sorted returns all jobs in the order in which they are shown.
func (b *batchBook) sorted() []*speculation.JobState {
	all := make([]*speculation.JobState, 0, len(b.jobs))
	for _, j := range b.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, c *speculation.JobState) int {
		if o, p := speculation.Over(a.State), speculation.Over(c.State); o != p {
			if p {
				return -1
			}
			return 1
		}
		return cmp.Or(c.Submitted.Compare(a.Submitted), cmp.Compare(a.Name, c.Name))
	})
	return all
}

// observeMachine stores the report of a host.
func (b *batchBook) observeMachine(m *speculation.Machine, now time.Time) {
	if b.hosts == nil {
		b.hosts = map[string]*batchHost{}
	}
	if b.hosts[m.Host] == nil && len(b.hosts) >= maxBatchHosts {
		b.tidy(now)
		if len(b.hosts) >= maxBatchHosts {
			return
		}
	}
	b.observeLines(m)
	b.hosts[m.Host] = &batchHost{BatchHost{Host: m.Host, Running: m.Running, Waiting: m.Waiting, Regular: m.Regular,
		Load: m.Load, Capacity: m.Capacity, Blocked: m.Blocked, Signals: m.Signals}, now}
}

// observeLines stores the last lines of attempts, since the job manager reports only those of failed
// tasks.
func (b *batchBook) observeLines(m *speculation.Machine) {
	if b.lines == nil {
		b.lines = map[[2]string]*Attempt{}
	}
	for i := range m.Attempts {
		a := &m.Attempts[i]
		key := [2]string{a.Job, a.Task}
		old := b.lines[key]
		if len(a.LastLines) == 0 || old != nil && old.Attempt > a.Attempt {
			continue
		}
		if old == nil {
			b.order = append(b.order, key)
		}
		b.lines[key] = a
	}
	for len(b.order) > maxBatchLines {
		delete(b.lines, b.order[0])
		b.order = b.order[1:]
	}
}

// withLines adds the last lines of a task's newest attempt, as a host reported them.
func (b *batchBook) withLines(job string, t *TaskState) *TaskState {
	a := b.lines[[2]string{job, t.Name}]
	if a == nil || a.Attempt < t.Attempts || t.Last != nil && len(t.Last.LastLines) > 0 {
		return t
	}
	out, last := *t, *a
	if t.Last != nil {
		last = *t.Last
		last.LastLines, last.Output = a.LastLines, max(a.Output, last.Output)
	}
	out.Last = &last
	return &out
}

// tidy forgets hosts that were silent for long.
func (b *batchBook) tidy(now time.Time) {
	for name, h := range b.hosts {
		if now.Sub(h.reportedAt) > jobsGone {
			delete(b.hosts, name)
		}
	}
}

// signalsOf returns the signals of a workload on all hosts that reported lately: those with an
// anomaly first, then by host.
func (b *batchBook) signalsOf(workload string, now time.Time) (all []HostSignal) {
	for name, h := range b.hosts {
		if now.Sub(h.reportedAt) > jobsSilent {
			continue
		}
		for _, s := range h.said.Signals {
			if s.Workload == workload {
				all = append(all, HostSignal{name, s})
			}
		}
	}
	first := map[bool]int{true: 0, false: 1}
	slices.SortFunc(all, func(a, c HostSignal) int {
		return cmp.Or(cmp.Compare(first[a.Anomaly], first[c.Anomaly]), cmp.Compare(a.Host, c.Host), cmp.Compare(a.Instance, c.Instance), cmp.Compare(a.Signal, c.Signal))
	})
	return all[:min(len(all), maxHostSignals)]
}

// Verdict describes the state of a signal: "1.32, anomalous: over 1.2 (typical 1.02)".
func (s HostSignal) Verdict() string {
	switch {
	case s.Boundary <= 0:
		return Number(s.Value) + ", too little is known of it without tasks"
	case s.Anomaly:
		return fmt.Sprintf("%s, anomalous: over %s (typical %s)", Number(s.Value), Number(s.Boundary), Number(s.Typical))
	case s.Value > s.Boundary:
		return fmt.Sprintf("%s, over %s (typical %s)", Number(s.Value), Number(s.Boundary), Number(s.Typical))
	}
	return fmt.Sprintf("%s, under %s (typical %s)", Number(s.Value), Number(s.Boundary), Number(s.Typical))
}

// Judge describes the model that judged the signal and its quality: "by phases (KS 0.31); false
// alarms 0.2% of 512 windows alone".
func (s HostSignal) Judge() string {
	text := "by " + s.Model
	if s.Model == "unknown" {
		text = "not judged"
	}
	if s.Distance != nil {
		text += fmt.Sprintf(" (KS %.2f)", *s.Distance)
	}
	if rate, known := s.FalseAlarmRate(); known {
		text += fmt.Sprintf("; false alarms %.1f%% of %s alone", 100*rate, Count(int(s.Judged), "window"))
	}
	return text
}

// HasBatch reports whether there is any report of speculative work.
func (v *Model) HasBatch() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.batch.jobs) > 0 || len(v.batch.hosts) > 0
}

// Batch returns how the speculative jobs stand.
func (v *Model) Batch(now time.Time) Batch {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := Batch{Pool: v.config.Pool, Time: now, Jobs: []JobState{}, Hosts: []BatchHost{}}
	for _, j := range v.batch.sorted() {
		brief := *j
		brief.Omitted += len(brief.Tasks)
		brief.Tasks = []TaskState{}
		out.Jobs = append(out.Jobs, brief)
	}
	v.batch.tidy(now)
	for _, h := range v.batch.hosts {
		said := h.said
		said.ReportAge = trimtab.SecondsOf(now.Sub(h.reportedAt))
		said.Silent = now.Sub(h.reportedAt) > jobsSilent
		if !said.Silent {
			out.Running, out.Waiting = out.Running+said.Running, out.Waiting+said.Waiting
		}
		out.Hosts = append(out.Hosts, said)
	}
	slices.SortFunc(out.Hosts, func(a, c BatchHost) int { return cmp.Compare(a.Host, c.Host) })
	return out
}

// BatchJob returns the state of a job, with its tasks. Callers must not change it.
func (v *Model) BatchJob(name string) (*JobState, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	j, ok := v.batch.jobs[name]
	return j, ok
}

// BatchTask returns the state of a task, with its last known output.
func (v *Model) BatchTask(job *JobState, task string) (*TaskState, bool) {
	i := slices.IndexFunc(job.Tasks, func(t TaskState) bool { return t.Name == task })
	if i < 0 {
		return nil, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.batch.withLines(job.Name, &job.Tasks[i]), true
}
