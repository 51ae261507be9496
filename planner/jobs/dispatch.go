package jobs

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// offer queues a task for placement if it may be placed: on its granted host, or speculatively.
func (m *Manager) offer(j *job, i int32) {
	t := &j.tasks[i]
	switch {
	case t.status != waiting || t.next > m.clock.now:
	case t.grant != "":
		t.trouble().until = m.clock.now + j.queueTimeout(&m.config)
		if !t.pending {
			t.pending = true
			m.granted = append(m.granted, place{j, i})
		}
	case !t.offered:
		t.offered = true
		j.ready.push(i)
	}
}

// first returns the first task that may be placed speculatively.
func (j *job) first(now time.Duration) (i int32, ok bool) {
	for len(j.ready.items) > 0 {
		i = j.ready.items[0]
		if t := &j.tasks[i]; t.status == waiting && t.grant == "" && t.next <= now {
			return i, true
		}
		j.tasks[j.ready.pop()].offered = false
	}
	return 0, false
}

func (j *job) queueTimeout(c *Config) time.Duration {
	if j.QueueTimeout > 0 {
		return min(j.QueueTimeout.Duration(), maxTime)
	}
	return c.QueueTimeout
}

// dispatch places tasks: first those with a regular grant, then speculative ones, by priority of
// their jobs and then by the order of submission (algorithm 5, lines 1 to 3).
func (m *Manager) dispatch() {
	starts := m.config.Starts
	m.regular(&starts)
	var u usable
	known := false
	for _, j := range m.jobs.order {
		i, ok := j.first(m.clock.now)
		if ok && !known {
			u, known = m.candidates.usable(), true
		}
		for ; ok && starts > 0; i, ok = j.first(m.clock.now) {
			h := m.candidates.choose(&u, &j.tasks[i])
			if h == nil {
				break
			}
			j.tasks[j.ready.pop()].offered = false
			m.place(j, i, h, speculation.OversubscribedTask)
			starts--
		}
		problem := ""
		if ok && starts > 0 {
			problem = u.why
		}
		if j.problem != problem {
			j.problem = problem
			m.changes.state(j)
		}
	}
}

// regular places tasks on their granted hosts. A grant ends if its host does not accept the task
// within QueueTimeout.
func (m *Manager) regular(starts *int) {
	all := m.granted
	m.granted = nil
	for _, p := range all {
		t := &p.job.tasks[p.task]
		if t.status != waiting || t.grant == "" || t.next > m.clock.now {
			t.pending = false
			continue
		}
		h := m.hosts.byName[t.grant]
		switch {
		case *starts > 0 && m.hosts.takes(h) && len(h.live) < m.config.Here && h.size+int(t.size) <= maxList:
			t.pending = false
			m.place(p.job, p.task, h, speculation.RegularTask)
			*starts--
		case t.more.until <= m.clock.now:
			t.pending = false
			t.trouble().why = fmt.Sprintf("the grant on %s is over: the host did not take it", t.grant)
			t.grant = ""
			m.write(p.job, p.task)
			m.offer(p.job, p.task)
		default:
			m.granted = append(m.granted, p)
		}
	}
}

// maxList is the largest size of a host's list, in bytes; attemptSize is the size of an attempt in
// it, without its spec.
const (
	maxList     = 640 << 10
	attemptSize = 640
)

// place makes the next attempt at a task, on a host. Its number is higher than those of all earlier
// attempts, and unknown to the host.
func (m *Manager) place(j *job, i int32, h *host, class speculation.TaskClass) {
	t := &j.tasks[i]
	id := speculation.AttemptID{Job: j.name, Task: j.Tasks[i].Name, Attempt: int(t.number) + 1}
	for h.foreign[id] {
		id.Attempt++
	}
	if id.Attempt > speculation.MaxAttempt {
		m.fail(j, i, "it has used up the numbers of attempts")
		return
	}
	a := &attempt{
		job: j, task: i, at: len(j.live), id: id, host: h, life: h.life, report: h.report,
		class: class, placed: m.clock.now, since: m.clock.now,
	}
	t.status, t.number, t.live, t.host = placed, int32(id.Attempt), a, h.name
	a.enlist()
	m.hosts.touch(h, true)
	m.write(j, i)
	m.changes.event(Placed, id, h.name, string(class))
	m.clock.wake(alarm{kind: queueAlarm, attempt: a}, j.queueTimeout(&m.config))
}

// kill marks an attempt as one that must end.
func (m *Manager) kill(a *attempt, why string) {
	a.kill, a.asked = clip(why, maxText), 0
	m.write(a.job, a.task)
	m.hosts.touch(a.host, true)
	m.clock.wake(alarm{kind: killAlarm, attempt: a}, m.config.KillTimeout)
}

// fail marks a task without an attempt as failed.
func (m *Manager) fail(j *job, i int32, why string) {
	t := &j.tasks[i]
	t.trouble().why = why
	m.finish(j, i, failed)
}

// finish ends a task.
func (m *Manager) finish(j *job, i int32, s status) {
	t := &j.tasks[i]
	t.status, t.grant, t.kept = s, "", false
	j.finished++
	switch s {
	case done:
		j.done++
		t.more = nil
	case failed:
		j.bad = append(j.bad, i)
	}
	m.write(j, i)
	m.close(j)
}

// close ends a job whose tasks have all ended.
func (m *Manager) close(j *job) {
	if j.finished < len(j.tasks) || !j.ended.IsZero() {
		return
	}
	j.ended = m.clock.wall.UTC()
	j.ready.items = nil
	j.stored.head = true
	m.writeJob(j)
	m.changes.event(JobEnded, speculation.AttemptID{Job: j.name}, "", j.how())
	m.clock.wake(alarm{kind: keepAlarm, job: j}, m.config.Keep)
}

// how returns the state of a job as a word.
func (j *job) how() string {
	switch {
	case j.ended.IsZero() && (len(j.live) > 0 || j.finished > 0):
		return speculation.StateRunning
	case j.ended.IsZero():
		return speculation.StateWaiting
	case j.cancelled != "" && j.done < len(j.tasks):
		return speculation.StateCancelled
	case len(j.bad) > 0:
		return speculation.StateFailed
	}
	return speculation.StateDone
}
