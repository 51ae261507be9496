package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/speculation"
)

// Machine applies a report that was received at now. The next Tick answers it. An error says why
// the report was ignored; trimtab.ErrStale: it is older than the last one.
func (m *Manager) Machine(now time.Time, r *speculation.Machine) error {
	m.clock.advance(now)
	if r.Pool != m.config.Pool || r.Host == "" || len(r.Host) > machines.MaxName || !plain(r.Host) || r.Life == 0 || r.Report == 0 || len(r.Attempts) > speculation.MaxAttemptsHere {
		return trimtab.Invalidf("report of host %.60q, pool %.60q, life %d, number %d, %d attempts: want names, numbers > 0, at most %d attempts",
			r.Host, r.Pool, r.Life, r.Report, len(r.Attempts), speculation.MaxAttemptsHere)
	}
	h, err := m.hosts.meet(r.Host)
	if err != nil {
		return err
	}
	if m.hosts.older(h, r) {
		return fmt.Errorf("report %d of life %d of host %s, after %d of %d: %w", r.Report, r.Life, r.Host, h.report, h.life, trimtab.ErrStale)
	}
	h.heard, h.at, h.later = true, m.clock.now, r.Epoch > m.config.Epoch
	if r.Life != h.life {
		h.ack = 0
	}
	h.life, h.report, h.blocked = r.Life, r.Report, clip(r.Blocked, maxText)
	if r.Epoch == m.config.Epoch && r.Sequence <= m.hosts.sequence {
		h.ack = max(h.ack, r.Sequence)
	}
	m.hear(h, r.Attempts)
	m.conclude(h)
	m.hosts.touch(h, false)
	return nil
}

// hear applies the reported states of attempts.
func (m *Manager) hear(h *host, told []speculation.Attempt) {
	clear(h.foreign)
	for i := range told {
		r := &told[i]
		a := h.byID[r.AttemptID]
		switch {
		case a == nil:
			if r.Validate() == nil {
				if h.foreign == nil {
					h.foreign = map[speculation.AttemptID]bool{}
				}
				h.foreign[r.AttemptID] = true
			}
		case a.life == h.life && a.seen == h.report: // a report that repeats an attempt: the first counts
		default:
			m.learn(a, r)
		}
	}
}

// learn applies the report of an attempt that is placed on the host. A report of an earlier life of
// the host counts only if the attempt has ended.
func (m *Manager) learn(a *attempt, r *speculation.Attempt) {
	last := cleaned(a, r)
	switch r.State {
	case speculation.AttemptEnded:
		m.ended(a, last)
	case speculation.AttemptRefused:
		if !a.runs() {
			m.end(a, Refused, last, cmp.Or(last.Reason, "its host refused it"))
		}
	case speculation.AttemptQueued, speculation.AttemptRunning, speculation.AttemptFrozen:
		if a.life == a.host.life {
			m.lives(a, last)
		}
	}
}

// lives applies the report of an attempt that has not ended.
func (m *Manager) lives(a *attempt, last *speculation.Attempt) {
	a.seen = a.host.report
	if ran := a.runs(); ran && last.State == speculation.AttemptQueued {
		return // a running attempt does not become queued again
	} else if !ran && last.State != speculation.AttemptQueued {
		a.since, a.host.tries = m.clock.now, 0
		a.host.running++
		a.job.running++
	}
	if a.told == nil || a.told.State != last.State || a.told.Problem != last.Problem {
		m.changes.state(a.job)
	}
	a.told = last
	j := a.job
	if !a.counted && m.config.Straggler > 0 && len(j.durations.ring) >= max(1, m.config.StragglerAfter) &&
		float64(m.clock.now-a.since) > m.config.Straggler*float64(j.durations.median()) {
		m.changes.penalise(a)
	}
}

// ended applies the report that an attempt has ended.
func (m *Manager) ended(a *attempt, last *speculation.Attempt) {
	what := cmp.Or(last.Reason, last.Outcome, "no outcome was told")
	if last.Outcome == "exited" {
		what = fmt.Sprintf("exited %d", last.Code)
	}
	switch {
	case last.Succeeded():
		m.end(a, Succeeded, last, "")
	case a.kill != "":
		m.end(a, Withdrawn, last, a.kill)
	case last.Outcome == "killed":
		m.end(a, Preempted, last, what)
	case last.Outcome == "lost":
		m.end(a, Lost, last, what)
	default:
		m.end(a, Failed, last, what)
	}
}

// conclude ends attempts that the host no longer reports: those of an earlier life, and those that
// had to end, once the host has carried out the list that says so.
func (m *Manager) conclude(h *host) {
	for _, a := range slices.Clone(h.live) {
		t := a.of()
		switch {
		case a.gone:
		case a.life != h.life:
			m.end(a, Lost, nil, "its host was started again")
		case a.kill != "" && a.asked > 0 && a.asked <= h.ack && a.seen != h.report:
			m.end(a, Withdrawn, nil, a.kill)
		case a.kill == "" && t.grant != "" && !t.kept && a.class != speculation.RegularTask:
			m.upgrade(a.job, a.task) // the grant came while the host was silent
		}
	}
}

// end removes an ended attempt, and determines the next state of its task.
func (m *Manager) end(a *attempt, kind EventKind, last *speculation.Attempt, why string) {
	j, t, h := a.job, a.of(), a.host
	if kind != Succeeded && a.kill != "" {
		kind, why = Withdrawn, a.kill
	}
	a.remove()
	m.hosts.touch(h, true)
	m.write(j, a.task)
	m.changes.event(kind, a.id, h.name, why)
	if kind == Succeeded {
		j.durations.add(a.ran(last, m.clock.now))
		m.finish(j, a.task, done)
		return
	}
	if last == nil {
		last = &speculation.Attempt{AttemptID: a.id, State: speculation.AttemptEnded, Class: a.class, Outcome: "lost", Reason: why}
		if a.told != nil {
			last.Started, last.LastLines, last.Output = a.told.Started, a.told.LastLines, a.told.Output
		}
	}
	t.trouble().last = last
	t.more.why = clip(why, maxText)
	if kind == Failed || kind == Lost || kind == Preempted {
		m.changes.penalise(a)
	}
	wait, over := a.charge(kind, m.clock.now, &m.config)
	switch {
	case j.cancelled != "":
		m.finish(j, a.task, cancelled)
	case over != "":
		m.fail(j, a.task, clip(fmt.Sprintf("%s: %s", over, why), maxText))
	default:
		t.status, t.kept, t.next = waiting, false, m.clock.now+wait
		if a.class == speculation.RegularTask && kind != Failed && t.grant == h.name {
			t.grant = "" // the granted host did not keep the task
		}
		if wait > 0 {
			m.clock.wake(alarm{kind: backoffAlarm, job: j, task: a.task}, wait)
		}
		m.offer(j, a.task)
	}
}

// freeRefusals is the number of refusals of a task after which the next one makes it wait.
const freeRefusals = 3

// charge counts the end of an attempt against its task. It returns how long the task must wait, or,
// in over, why it is not tried again.
func (a *attempt) charge(kind EventKind, now time.Duration, c *Config) (wait time.Duration, over string) {
	t, h := a.of(), a.host
	t.shun(h.name)
	switch kind {
	case Failed:
		t.failures++
		if int(t.failures) > a.job.Retries {
			return 0, fmt.Sprintf("failed %d times", t.failures)
		}
		return double(c.Backoff, c.MaxBackoff, int(t.failures)), ""
	case Refused:
		h.tries++
		h.hold = now + double(c.Backoff, c.HostTimeout, h.tries)
		t.refused++
		if int(t.refused) > c.RefusedLimit {
			return 0, fmt.Sprintf("refused %d times", t.refused)
		}
		if t.refused > freeRefusals {
			wait = double(c.Backoff, c.MaxBackoff, int(t.refused)-freeRefusals)
		}
		return wait, ""
	case Lost, Preempted:
		if kind == Lost {
			h.tries++
			h.hold = now + double(c.Backoff, c.MaxBackoff, h.tries)
		}
		t.lost++
		if int(t.lost) > c.LostLimit {
			return 0, fmt.Sprintf("lost with its host, or killed by it, %d times", t.lost)
		}
		return double(c.Backoff, c.MaxBackoff, int(t.lost)), ""
	}
	return 0, ""
}

// ran returns how long an attempt ran, by its host's clock if possible.
func (a *attempt) ran(last *speculation.Attempt, now time.Duration) time.Duration {
	if d := last.Ended.Sub(last.Started); !last.Started.IsZero() && !last.Ended.IsZero() && d >= 0 && d <= now-a.placed {
		return d
	}
	return now - a.since
}

const (
	maxText   = 200
	maxLines  = 20
	maxOutput = 2 << 10 // size of the last lines, as JSON
)

// cleaned returns a copy of a host's report of an attempt without invalid or too long values.
func cleaned(a *attempt, r *speculation.Attempt) *speculation.Attempt {
	c := &speculation.Attempt{
		AttemptID: a.id, State: r.State, Class: a.class, Started: possible(r.Started), Ended: possible(r.Ended),
		Outcome: clip(r.Outcome, 40), Code: r.Code, Reason: clip(r.Reason, maxText), Output: max(r.Output, 0), Problem: clip(r.Problem, maxText),
	}
	if r.Class == speculation.RegularTask || r.Class == speculation.OversubscribedTask {
		c.Class = r.Class
	}
	if r.Progress != nil && *r.Progress >= 0 && *r.Progress <= 1 {
		p := *r.Progress
		c.Progress = &p
	}
	left := maxOutput
	for _, line := range slices.Backward(r.LastLines[max(0, len(r.LastLines)-maxLines):]) {
		line = clip(line, maxText)
		text, _ := json.Marshal(line)
		if left -= len(text) + 1; left < 0 {
			break
		}
		c.LastLines = append(c.LastLines, line)
	}
	slices.Reverse(c.LastLines)
	return c
}

// possible returns t in UTC if it is a plausible time, else the zero time.
func possible(t time.Time) time.Time {
	if t.Unix() < 0 || t.Unix() >= 1<<33 {
		return time.Time{}
	}
	return t.UTC()
}

// clip returns at most n bytes of a text, without control characters.
func clip(s string, n int) string {
	if len(s) <= n && plain(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), 4*n)], "?"))
	for len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// plain says whether a text is ASCII without control characters.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
}
