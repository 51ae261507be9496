package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// offer queues a task for placement, if it may be placed: on its granted host, or speculatively.
func (m *Manager) offer(j *job, i int32) {
	t := &j.tasks[i]
	switch {
	case t.status != waiting || t.next > m.now:
	case t.grant != "":
		t.trouble().until = m.now + m.queueTimeout(j)
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

func (m *Manager) queueTimeout(j *job) time.Duration {
	if j.QueueTimeout > 0 {
		return min(j.QueueTimeout.Duration(), maxTime)
	}
	return m.config.QueueTimeout
}

// dispatch places tasks: those with a regular grant, then, speculatively, those of the highest
// priority, and among these those of the job submitted first (algorithm 5, lines 1 to 3).
func (m *Manager) dispatch() {
	starts := m.config.Starts
	m.regular(&starts)
	var u usable
	known := false
	for _, j := range m.order {
		i, ok := j.first(m.now)
		if ok && !known {
			u, known = m.usable(), true
		}
		for ; ok && starts > 0; i, ok = j.first(m.now) {
			h := m.choose(&u, &j.tasks[i])
			if h == nil {
				break
			}
			j.tasks[j.ready.pop()].offered = false
			m.place(j, i, h, speculation.OversubscribedTask)
			starts--
		}
		m.blocked(j, ok && starts > 0, &u)
	}
}

// blocked says why tasks of a job are not placed.
func (m *Manager) blocked(j *job, is bool, u *usable) {
	problem := ""
	if is {
		problem = u.why
	}
	if j.problem != problem {
		j.problem = problem
		m.changed(j)
	}
}

// regular places tasks on their granted hosts. A grant on a host that does not accept the task
// within the queue's time-out ends.
func (m *Manager) regular(starts *int) {
	all := m.granted
	m.granted = nil
	for _, p := range all {
		t := &p.job.tasks[p.task]
		if t.status != waiting || t.grant == "" || t.next > m.now {
			t.pending = false
			continue
		}
		h := m.hosts[t.grant]
		switch {
		case *starts > 0 && m.takes(h) && len(h.live) < m.config.Here && h.size+int(t.size) <= maxList:
			t.pending = false
			m.place(p.job, p.task, h, speculation.RegularTask)
			*starts--
		case t.more.until <= m.now:
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

// takes reports whether a host may get an attempt.
func (m *Manager) takes(h *host) bool {
	return h != nil && h.heard && !h.later && m.now-h.at <= m.config.HostTimeout
}

// usable are the candidates with room.
type usable struct {
	hosts []*host
	// turn is the next of them.
	turn int
	// why there is none.
	why string
}

func (m *Manager) usable() usable {
	u := usable{why: "no host is a candidate"}
	heard, free, blocked := 0, 0, ""
	n := len(m.candidates)
	for k := range n {
		h := m.hosts[m.candidates[(m.turn+k)%n]]
		if !m.takes(h) {
			continue
		}
		heard++
		switch {
		case h.blocked != "":
			blocked = h.blocked
		case m.room(h):
			u.hosts = append(u.hosts, h)
			fallthrough
		default:
			free++
		}
	}
	switch {
	case heard > 0 && free == 0:
		u.why = "all candidates start nothing now, one of them because of: " + blocked
	case heard > 0:
		u.why = "the queues of all candidates are full, or refused tasks just now"
	case n > 0:
		u.why = fmt.Sprintf("none of %d candidates was heard within %v", n, m.config.HostTimeout)
	}
	return u
}

// room reports whether a host may get another speculative attempt.
func (m *Manager) room(h *host) bool {
	return h.hold <= m.now && len(h.live) < m.config.Here && len(h.live)-h.running < m.config.Queued
}

// probes is how many hosts are tried for one task.
const probes = 8

// choose returns a host for a task, at random or in turn; a host where an attempt at the task
// went wrong only if no other is found. nil: there is none.
func (m *Manager) choose(u *usable, t *task) *host {
	at := -1
	if len(u.hosts) > 0 && m.config.Dispatch == Random {
		u.turn = m.rng.IntN(len(u.hosts))
	}
	for k := range min(probes, len(u.hosts)) {
		i := (u.turn + k) % len(u.hosts)
		if u.hosts[i].size+int(t.size) > maxList {
			continue
		}
		if at < 0 || !t.shuns(u.hosts[i].name) {
			at = i
		}
		if !t.shuns(u.hosts[i].name) {
			break
		}
	}
	if at < 0 {
		return nil
	}
	h := u.hosts[at]
	u.turn = at + 1
	if len(h.live)+1 >= m.config.Here || len(h.live)-h.running+1 >= m.config.Queued { // full with this one
		u.hosts = slices.Delete(u.hosts, at, at+1)
		u.turn = at
	}
	if m.config.Dispatch == RoundRobin {
		m.turn = (slices.Index(m.candidates, h.name) + 1) % len(m.candidates)
	}
	return h
}

// maxList bounds a list in bytes; attemptSize is the size of an attempt in it, without its spec.
const (
	maxList     = 640 << 10
	attemptSize = 640
)

// place makes the next attempt at a task, on a host. Its number is above those of all earlier
// ones, and none that the host knows.
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
		class: class, placed: m.now, since: m.now,
	}
	t.status, t.number, t.live, t.host = placed, int32(id.Attempt), a, h.name
	m.enlist(a)
	m.write(j, i)
	m.event(Placed, id, h.name, string(class))
	m.wake(alarm{kind: queueAlarm, attempt: a}, m.queueTimeout(j))
}

// enlist puts an attempt among those of its job and host.
func (m *Manager) enlist(a *attempt) {
	a.job.live = append(a.job.live, a)
	a.host.live = append(a.host.live, a)
	if a.host.byID == nil {
		a.host.byID = map[speculation.AttemptID]*attempt{}
	}
	a.host.byID[a.id] = a
	a.host.size += int(a.of().size)
	m.touch(a.host, true)
}

// kill marks an attempt as one that must end.
func (m *Manager) kill(a *attempt, why string) {
	a.kill, a.asked = clip(why, maxText), 0
	m.write(a.job, a.task)
	m.touch(a.host, true)
	m.wake(alarm{kind: killAlarm, attempt: a}, m.config.KillTimeout)
}

// fail gives a task up that has no attempt.
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

// close ends a job of which all tasks have ended.
func (m *Manager) close(j *job) {
	if j.finished < len(j.tasks) || !j.ended.IsZero() {
		return
	}
	j.ended = m.wall.UTC()
	j.ready.items = nil
	j.headDirty = true
	m.writeJob(j)
	m.event(JobEnded, speculation.AttemptID{Job: j.name}, "", j.how())
	m.wake(alarm{kind: keepAlarm, job: j}, m.config.Keep)
}

// how returns the state of a job.
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
