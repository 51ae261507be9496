package jobs

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/speculation"
)

// stateTasks is the largest number of tasks in a job's published state.
const stateTasks = 100

// State returns the state of a job, or nil.
func (m *Manager) State(now time.Time, job string) *speculation.JobState {
	m.clock.advance(now)
	j := m.jobs.byName[job]
	if j == nil {
		return nil
	}
	return j.state(m.config.Pool, &m.clock)
}

func (j *job) state(pool string, c *clock) *speculation.JobState {
	s := &speculation.JobState{
		Pool: pool, Name: j.name, Time: c.wall, Submitted: j.submitted, By: j.by, State: j.how(), Priority: j.Priority,
		Running: j.running, Done: j.done, Failed: len(j.bad), Waiting: len(j.tasks) - j.finished - j.running,
		Problem: j.problem,
	}
	some := j.some()
	for _, i := range some {
		s.Tasks = append(s.Tasks, j.taskState(i, c))
	}
	s.Omitted = len(j.tasks) - len(some)
	return s
}

// some returns the tasks that a state includes, in the order of the job: failed ones first, then
// placed ones.
func (j *job) some() []int32 {
	var out []int32
	if len(j.tasks) <= stateTasks {
		for i := range j.tasks {
			out = append(out, int32(i))
		}
		return out
	}
	out = append(out, j.bad[:min(len(j.bad), stateTasks)]...)
	for k := 0; k < len(j.live) && len(out) < stateTasks; k++ {
		out = append(out, j.live[k].task)
	}
	for i := int32(0); int(i) < len(j.tasks) && len(out) < stateTasks; i++ {
		if t := &j.tasks[i]; t.live == nil && t.status != failed {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

func (j *job) taskState(i int32, c *clock) speculation.TaskState {
	t := &j.tasks[i]
	s := speculation.TaskState{Name: j.Tasks[i].Name, State: t.status.String(), Host: t.host, Attempts: int(t.number) - j.base, Granted: t.grant}
	if t.more != nil {
		s.Last, s.Why = t.more.last, t.more.why
	}
	if t.status == waiting && t.next > c.now {
		s.Next = c.wall.Add(t.next - c.now)
	}
	if t.status == done {
		s.Last = &speculation.Attempt{
			AttemptID: speculation.AttemptID{Job: j.name, Task: s.Name, Attempt: int(t.number)},
			State:     speculation.AttemptEnded, Outcome: "exited",
		}
	}
	if a := t.live; a != nil {
		s.Why = cmp.Or(a.kill, s.Why)
		if a.told != nil {
			s.Last = a.told
		}
		if a.runs() {
			s.State = string(a.told.State)
		}
	}
	return s
}

// Counts returns how many tasks of a job failed, crashed, straggled or were killed on each
// machine (algorithm 3), for [machines.Index.Rate]; at returns the position of a host in the list
// of machines. It counts since this manager was created.
func (m *Manager) Counts(job string, at func(host string) (uint32, bool)) []machines.Count {
	j := m.jobs.byName[job]
	if j == nil {
		return nil
	}
	var out []machines.Count
	for host, n := range j.penalties {
		if i, ok := at(host); ok {
			out = append(out, machines.Count{Machine: i, Tasks: n})
		}
	}
	slices.SortFunc(out, func(a, b machines.Count) int { return cmp.Compare(a.Machine, b.Machine) })
	return out
}
