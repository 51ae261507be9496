package jobs

import "time"

// heap is a binary heap. Its first item is the least by the order of before.
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
	h.items[last] = none // frees what it pointed to
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

// alarm is something to check at a given time. Alarms are not cancelled: the handler finds out
// whether they still apply.
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
	leaseAlarm   alarmKind = iota // the leases of a host's attempts may have expired
	queueAlarm                    // an attempt has waited too long in the host's queue
	killAlarm                     // an attempt that must end is no longer listed
	droppedAlarm                  // the lease of an attempt that is no longer listed has expired
	backoffAlarm                  // a task may be tried again
	keepAlarm                     // a job that has ended is deleted
	stateAlarm                    // a job's state may be published again
)

// clock has the current time of a manager, and its alarms.
type clock struct {
	// start is when the manager was created; now is the time since then; wall is the newest time
	// that it was given.
	start, wall time.Time
	now         time.Duration
	alarms      heap[alarm]
}

func newClock(at time.Time) clock {
	return clock{start: at, wall: at, alarms: heap[alarm]{before: func(a, b alarm) bool { return a.at < b.at }}}
}

// advance sets the time. It never goes back.
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

// ring handles all alarms whose time has come.
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

// leaseEnds ends the attempts of a host if their leases have certainly expired, since the last
// answered report was too long ago, whatever the host's clock shows.
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

// drop stops listing an attempt that its host did not end in time. So its lease is no longer
// renewed and expires.
func (m *Manager) drop(a *attempt) {
	if a.gone || a.dropped {
		return
	}
	a.dropped = true
	m.hosts.touch(a.host, true)
	m.clock.wake(alarm{kind: droppedAlarm, attempt: a}, a.host.deadline-m.clock.now)
}

// sure returns the time after the last answered report at which all leases have certainly expired.
// It assumes that the speeds of two hosts' clocks differ by less than a tenth, and that a task ends
// within 5 s of its lease.
func sure(lease time.Duration) time.Duration { return lease + lease/10 + 5*time.Second }

// double returns the n-th wait: first · 2^(n−1), at most most.
func double(first, most time.Duration, n int) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
