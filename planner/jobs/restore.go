package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// restore restores the manager's state from the records.
func (m *Manager) restore(stored []Record) error {
	byJob := map[uint64]map[string][]byte{}
	last := uint64(0)
	for _, r := range stored {
		switch r.Key {
		case FenceKey:
			if err := decode(r.Value, &m.store.fence); err != nil {
				return fmt.Errorf("read %s: %w", FenceKey, err)
			}
			continue
		case namesKey:
			var names namesRecord
			if err := decode(r.Value, &names); err != nil {
				m.store.unreadable = append(m.store.unreadable, fmt.Errorf("read %s: %w", namesKey, err))
			}
			m.store.names = names.Names
			continue
		}
		serial, rest, ok := parseKey(r.Key)
		if !ok {
			m.store.unreadable = append(m.store.unreadable, trimtab.Invalidf("record %.80q: not a key of a job", r.Key))
			continue
		}
		if byJob[serial] == nil {
			byJob[serial] = map[string][]byte{}
		}
		byJob[serial][rest] = r.Value
		last = max(last, serial)
	}
	if m.store.fence.Version == 0 && len(byJob) > 0 {
		return trimtab.Invalidf("there are records of jobs and none %q", FenceKey)
	}
	if m.store.fence.Epoch > m.config.Epoch {
		return fmt.Errorf("epoch %d, the records are of %d: %w", m.config.Epoch, m.store.fence.Epoch, trimtab.ErrStale)
	}
	committed := m.store.fence.Serial
	m.store.succeed(m.config.Epoch, last, m.config.Lease)
	m.hosts.sequence = m.store.fence.Run << 32
	for _, serial := range slices.Sorted(maps.Keys(byJob)) {
		m.restoreJob(serial, byJob[serial], serial <= committed)
	}
	return nil
}

// restoreJob restores one job. It deletes records without a head record, and those that were never
// committed. It leaves unreadable records alone.
func (m *Manager) restoreJob(serial uint64, records map[string][]byte, committed bool) {
	text, ok := records["head"]
	if !ok || !committed {
		m.store.discard(serial, records)
		return
	}
	var head headRecord
	err := decode(text, &head)
	var j *job
	if err == nil {
		j, err = revive(serial, &head, records)
	}
	if err != nil {
		m.store.unreadable = append(m.store.unreadable, fmt.Errorf("read job %d %.63q: %w", serial, head.Name, err))
		if head.Name != "" {
			m.store.badNames[head.Name] = true
		}
		return
	}
	if old := m.jobs.byName[j.name]; old != nil { // a newer job took its name
		m.forget(old)
	}
	m.jobs.enter(j)
	m.resume(j)
}

// resume continues a job. Its live attempts may run until their leases expire. Waiting times start
// again.
func (m *Manager) resume(j *job) {
	for i := range j.tasks {
		t := &j.tasks[i]
		switch {
		case t.live != nil:
			m.adopt(t.live)
		case t.ended():
			j.finished++
			switch t.status {
			case done:
				j.done++
			case failed:
				j.bad = append(j.bad, int32(i))
			}
		case j.cancelled != "": // handled below
		default:
			if n := t.waits(&m.config); n > 0 {
				t.next = n
				m.clock.wake(alarm{kind: backoffAlarm, job: j, task: int32(i)}, n)
			}
			m.offer(j, int32(i))
		}
	}
	if j.cancelled != "" {
		m.halt(j)
	}
	if !j.ended.IsZero() {
		if j.finished == len(j.tasks) {
			m.clock.wake(alarm{kind: keepAlarm, job: j}, min(max(m.config.Keep-m.clock.wall.Sub(j.ended), 0), m.config.Keep))
		} else {
			j.ended = time.Time{} // the store was interrupted
		}
	}
	m.close(j)
	m.changes.state(j)
}

// adopt takes over an attempt of an earlier manager.
func (m *Manager) adopt(a *attempt) {
	t := a.of()
	t.status = placed
	h := m.hosts.byName[t.host]
	if h == nil {
		h = &host{name: t.host, deadline: sure(m.store.inherited)}
		m.hosts.byName[t.host] = h
	}
	if a.life > h.life {
		h.life, h.report = a.life, 0
	}
	if a.life == h.life {
		h.report = max(h.report, a.report)
	}
	a.host, a.at = h, len(a.job.live)
	a.enlist()
	m.hosts.touch(h, true)
	m.hosts.watch(h)
	// Written again, so that a manager that was replaced, and does not know it yet, cannot
	// overwrite the record of what may run now.
	m.write(a.job, a.task)
	if a.kill != "" {
		m.clock.wake(alarm{kind: killAlarm, attempt: a}, m.config.KillTimeout)
	} else {
		m.clock.wake(alarm{kind: queueAlarm, attempt: a}, a.job.queueTimeout(&m.config))
	}
}
