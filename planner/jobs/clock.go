package jobs

import "time"

// heap is a binary heap: the first is the one that is before all others.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
}

func (h *heap[T]) push(v T) {
	h.items = append(h.items, v)
	for i := len(h.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(h.items[i], h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	first, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	var none T
	h.items[last] = none // holds nothing
	h.items = h.items[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return first
		}
		if down+1 < last && h.before(h.items[down+1], h.items[down]) {
			down++
		}
		if !h.before(h.items[down], h.items[i]) {
			return first
		}
		h.items[i], h.items[down] = h.items[down], h.items[i]
		i = down
	}
}

// alarm is what to check at a time. Alarms are not cancelled: the handler finds out whether they
// still matter.
type alarm struct {
	at      time.Duration
	kind    alarmKind
	task    int32
	job     *job
	host    *host
	attempt *attempt
}

type alarmKind uint8

const (
	leaseAlarm   alarmKind = iota // a host's attempts end unless it is answered
	queueAlarm                    // an attempt waits too long
	killAlarm                     // an attempt that is to end is listed no more
	droppedAlarm                  // the lease of such a one ends
	backoffAlarm                  // a task may be tried again
	keepAlarm                     // a job that has ended is forgotten
	stateAlarm                    // a job's state may be told again
)

// clock is the time of a manager, and what is to be checked at later times.
type clock struct {
	// start is when the manager was made, now the time since, wall the newest time it was given.
	start, wall time.Time
	now         time.Duration
	alarms      heap[alarm]
}

func newClock(at time.Time) clock {
	return clock{start: at, wall: at, alarms: heap[alarm]{before: func(a, b alarm) bool { return a.at < b.at }}}
}

// advance sets the time, which never goes back.
func (c *clock) advance(now time.Time) {
	if d := now.Sub(c.start); d > c.now {
		c.now, c.wall = d, now
	}
}

func (c *clock) wake(a alarm, in time.Duration) {
	a.at = c.now + in
	c.alarms.push(a)
}

// due removes and returns the next alarm whose time has come.
func (c *clock) due() (a alarm, ok bool) {
	if len(c.alarms.items) == 0 || c.alarms.items[0].at > c.now {
		return alarm{}, false
	}
	return c.alarms.pop(), true
}

// ring handles what is due.
func (m *Manager) ring() {
	for a, ok := m.clock.due(); ok; a, ok = m.clock.due() {
		switch a.kind {
		case leaseAlarm:
			m.leaseEnds(a.host)
		case queueAlarm:
			if a.attempt.listable() && !a.attempt.runs() {
				m.kill(a.attempt, "it waited too long in the queue")
			}
		case killAlarm:
			m.drop(a.attempt)
		case droppedAlarm:
			if !a.attempt.gone {
				m.end(a.attempt, Lost, nil, "its host did not end it; its lease has ended")
			}
		case backoffAlarm:
			if t := &a.job.tasks[a.task]; t.status == waiting && t.next <= m.clock.now {
				m.offer(a.job, a.task)
			}
		case keepAlarm:
			if !a.job.forgotten {
				m.forget(a.job)
			}
		case stateAlarm:
			a.job.quiet = false
			if a.job.stale {
				m.changes.state(a.job)
			}
		}
	}
}

// leaseEnds ends the attempts of a host that was answered last so long ago that all
// their leases have ended, whatever the host's clock.
func (m *Manager) leaseEnds(h *host) {
	h.timed = false
	if len(h.live) == 0 {
		return
	}
	if h.deadline > m.clock.now {
		m.hosts.watch(h)
		return
	}
	for _, a := range append([]*attempt(nil), h.live...) {
		m.end(a, Lost, nil, "its host is silent; its lease has ended")
	}
}

// drop lists an attempt no more that its host did not end in time. Its lease is not
// renewed any more, so that it ends.
func (m *Manager) drop(a *attempt) {
	if a.gone || a.dropped {
		return
	}
	a.dropped = true
	m.hosts.touch(a.host, true)
	m.clock.wake(alarm{kind: droppedAlarm, attempt: a}, a.host.deadline-m.clock.now)
}

// sure returns how long after the last report that was answered all leases have certainly ended:
// the clocks of two hosts differ by less than a tenth, and a task ends within 5 s of its lease.
func sure(lease time.Duration) time.Duration { return lease + lease/10 + 5*time.Second }

// double is the n-th wait: first, doubled n - 1 times, at most most.
func double(first, most time.Duration, n int) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
