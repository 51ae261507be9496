package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Request applies a request of a person or of the cluster's resource manager. If it returns nil,
// the caller may confirm the request once the output of the next Tick is stored. A request with a
// known ID, or whose effect is there already, is accepted again.
//
// trimtab.ErrInvalid: it breaks the rules; trimtab.ErrRefused: it cannot be done now.
func (m *Manager) Request(now time.Time, r *speculation.JobRequest) error {
	m.clock.advance(now)
	if r.Pool != m.config.Pool || len(r.ID) > 200 {
		return trimtab.Invalidf("request %.60q for pool %.60q: want pool %s, an ID of at most 200 bytes", r.ID, r.Pool, m.config.Pool)
	}
	var err error
	switch r.Verb {
	case speculation.SubmitJob:
		err = m.submit(r)
	case speculation.CancelJob:
		err = m.cancel(r)
	case speculation.GrantTask:
		err = m.grant(r)
	case speculation.RevokeGrant:
		err = m.revoke(r)
	default:
		err = trimtab.Invalidf("verb %.20q", string(r.Verb))
	}
	if err != nil {
		return fmt.Errorf("%.20s job %.63s: %w", string(r.Verb), r.Job.Name, err)
	}
	return nil
}

func refusedf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), trimtab.ErrRefused)
}

// submit adds a job. A job that has ended is replaced by a new one with its name.
func (m *Manager) submit(r *speculation.JobRequest) error {
	old := m.jobs.byName[r.Job.Name]
	if old != nil && r.ID != "" && slices.Contains(old.requests, r.ID) {
		return nil
	}
	if err := r.Job.Validate(); err != nil {
		return err
	}
	switch {
	case r.ID == "":
		return trimtab.Invalidf("no ID")
	case m.store.badNames[r.Job.Name]:
		return refusedf("a job of this name is stored that cannot be read")
	case old != nil && old.ended.IsZero():
		return refusedf("there is one, of %s, that has not ended", old.submitted.Format(time.RFC3339))
	}
	parts, sizes, err := split(r.Job.Tasks)
	if err != nil {
		return err
	}
	over, err := m.jobs.over(old, len(r.Job.Tasks), &m.config)
	if err != nil {
		return err
	}
	for _, j := range over {
		m.forget(j)
	}
	m.store.fence.Serial++
	j := &job{BatchJob: r.Job, name: r.Job.Name, serial: m.store.fence.Serial, by: clip(r.By, maxText), submitted: m.clock.wall.UTC()}
	j.Tasks = cloned(r.Job.Tasks)
	if old != nil {
		j.requests = old.requests[max(0, len(old.requests)-7):]
		m.forget(old)
	}
	j.base = m.store.recall(j.name)
	j.requests = append(slices.Clone(j.requests), r.ID)
	j.fill(sizes)
	j.stored.specs, j.stored.parts, j.stored.head = len(parts), parts, true
	m.jobs.enter(j)
	m.writeJob(j)
	for i := range j.tasks {
		m.offer(j, int32(i))
	}
	m.changes.event(JobSubmitted, speculation.AttemptID{Job: j.name}, "", fmt.Sprintf("%d tasks", len(j.tasks)))
	return nil
}

// cloned returns a deep copy of tasks.
func cloned(tasks []speculation.BatchTask) []speculation.BatchTask {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		t := &tasks[i]
		t.Command = slices.Clone(t.Command)
		if t.Env != nil {
			env := make(map[string]string, len(t.Env))
			for k, v := range t.Env {
				env[k] = v
			}
			t.Env = env
		}
	}
	return tasks
}

// fill creates the tasks of a job in their initial state.
func (j *job) fill(sizes []int32) {
	j.ready.before = func(a, b int32) bool { return a < b }
	j.tasks = make([]task, len(j.Tasks))
	j.stored.states = make([]bool, (len(j.tasks)+chunkTasks-1)/chunkTasks)
	for i := range j.tasks {
		j.tasks[i].number, j.tasks[i].size = int32(j.base), sizes[i]
	}
}

// highest returns the highest attempt number of the job.
func (j *job) highest() int {
	n := j.base
	for i := range j.tasks {
		n = max(n, int(j.tasks[i].number))
	}
	return n
}

// forget deletes a job that has ended.
func (m *Manager) forget(j *job) {
	m.jobs.remove(j)
	m.store.delete(j)
	m.changes.forgotten = append(m.changes.forgotten, j.name)
	m.changes.event(JobForgotten, speculation.AttemptID{Job: j.name}, "", "")
}

func (m *Manager) cancel(r *speculation.JobRequest) error {
	if j := m.jobs.byName[r.Job.Name]; j != nil && j.cancelled != "" {
		return nil
	}
	j, err := m.jobs.named(r)
	if err != nil {
		return err
	}
	j.cancelled = clip("cancelled by "+cmp.Or(r.By, "nobody who said so"), maxText)
	j.stored.head = true
	m.writeJob(j)
	m.halt(j)
	return nil
}

// halt ends all tasks of a cancelled job.
func (m *Manager) halt(j *job) {
	for i := range j.tasks {
		switch t := &j.tasks[i]; {
		case t.status == waiting:
			t.status, t.grant = cancelled, "" // the head record says so for all tasks
			j.finished++
		case t.live != nil && t.live.kill == "":
			m.kill(t.live, j.cancelled)
		}
	}
	m.close(j)
}

// grant applies a regular grant.
func (m *Manager) grant(r *speculation.JobRequest) error {
	j, i, err := m.jobs.task(r)
	if err != nil {
		return err
	}
	t := &j.tasks[i]
	switch h := m.hosts.byName[r.Host]; {
	case t.grant == r.Host && r.Host != "":
		return nil
	case !m.hosts.takes(h):
		return refusedf("host %.60q was not heard within %v", r.Host, m.config.HostTimeout)
	case t.live != nil && t.live.class == speculation.RegularTask && t.live.runs() && t.live.kill == "":
		return refusedf("task %s runs regularly on %s", r.Task, t.host)
	}
	t.grant, t.kept = r.Host, false
	m.write(j, i)
	m.upgrade(j, i)
	return nil
}

// upgrade applies algorithm 5, lines 5 to 19, to a task that was granted a host.
func (m *Manager) upgrade(j *job, i int32) {
	t := &j.tasks[i]
	a := t.live
	switch {
	case a == nil: // the task has no attempt
		m.offer(j, i)
	case a.kill != "": // the attempt must end anyway
	case !a.host.heard: // the host's next report decides
	case !a.runs(): // it is queued: cancelled now, and started with the grant once the host has reported that
		m.kill(a, "its regular resources were granted on "+t.grant)
	case a.host.name == t.grant:
		a.class = speculation.RegularTask
		m.write(j, i)
		m.hosts.touch(a.host, true)
		m.changes.event(Upgraded, a.id, t.grant, "")
	case a.told.Progress != nil && *a.told.Progress > m.config.Tau:
		t.kept = true
		m.write(j, i)
		m.changes.event(Reserved, a.id, t.grant, fmt.Sprintf("at progress %.2f on %s", *a.told.Progress, t.host))
	default:
		m.kill(a, "its regular resources were granted on "+t.grant)
	}
}

// revoke withdraws a grant. The task becomes speculative again, on the host where it is.
func (m *Manager) revoke(r *speculation.JobRequest) error {
	j, i, err := m.jobs.task(r)
	if err != nil {
		return err
	}
	t := &j.tasks[i]
	if t.grant == "" || r.Host != "" && r.Host != t.grant {
		return nil
	}
	t.grant, t.kept = "", false
	m.write(j, i)
	if a := t.live; a == nil {
		m.offer(j, i)
	} else if a.class == speculation.RegularTask {
		a.class = speculation.OversubscribedTask
		m.hosts.touch(a.host, true)
	}
	return nil
}

// split encodes the specs into records, and returns the size of each task in a host's list.
func split(tasks []speculation.BatchTask) (parts [][]byte, sizes []int32, err error) {
	var part []json.RawMessage
	sum := 0
	flush := func() {
		text, _ := json.Marshal(specRecord{Version: version, Tasks: part})
		parts, part, sum = append(parts, text), nil, 0
	}
	for i := range tasks {
		text, err := json.Marshal(&tasks[i])
		if err != nil {
			return nil, nil, fmt.Errorf("encode task %s: %w", tasks[i].Name, err)
		}
		if len(text) > maxSpec {
			return nil, nil, trimtab.Invalidf("task %s has %d bytes: want at most %d", tasks[i].Name, len(text), maxSpec)
		}
		if sum+len(text) > maxSpec {
			flush()
		}
		part, sum = append(part, text), sum+len(text)+1
		sizes = append(sizes, listed(&tasks[i].TaskSpec, len(text)))
	}
	flush()
	return parts, sizes, nil
}

// listed returns how much of [maxList] a task whose spec has so many bytes takes. It also counts
// the number of parts, which is limited, too.
func listed(s *speculation.TaskSpec, encoded int) int32 {
	_, parts := s.Size()
	return int32(max(encoded+attemptSize, parts*(maxList/speculation.MaxListParts+1)))
}
