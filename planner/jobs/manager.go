package jobs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Record is one stored value. Keys are of [a-z0-9.-]; a store for several pools prefixes the
// pool. A value has at most [MaxRecord] bytes.
type Record struct {
	Key string
	// Value is JSON; nil: the record is to be deleted.
	Value []byte
}

// MaxRecord is the largest value of a record.
const MaxRecord = 768 << 10

// Event is something that happened, for logs and metrics.
type Event struct {
	Kind EventKind
	// Job is always set; Task and Attempt are those of an attempt.
	speculation.AttemptID
	Host string
	Text string
}

// EventKind names what happened.
type EventKind string

// The kinds.
const (
	Placed       EventKind = "placed"
	Refused      EventKind = "refused"
	Lost         EventKind = "lost"
	Failed       EventKind = "failed"
	Succeeded    EventKind = "succeeded"
	Withdrawn    EventKind = "withdrawn" // killed, or taken from a queue, by the manager
	Preempted    EventKind = "preempted" // killed by its host
	Upgraded     EventKind = "upgraded"
	Reserved     EventKind = "reserved"
	JobSubmitted EventKind = "job submitted"
	JobEnded     EventKind = "job ended"
	JobForgotten EventKind = "job forgotten"
)

// Output is what one [Manager.Tick] requests, in this order: first store Store, one after the
// other, each by compare-and-swap against what this manager last read or wrote; only when all are
// stored, everything else.
//
// If a record cannot be stored, because another manager wrote it or the store does not answer,
// this manager has ended: publish nothing more of it, and create another by [New] from what is
// stored.
type Output struct {
	Store []Record
	// Placements are the lists to publish, each to its host.
	Placements []*speculation.Placements
	// States are of jobs that changed; Forgotten names jobs whose records are deleted.
	States    []*speculation.JobState
	Forgotten []string
	// Rated names jobs of which [Manager.Counts] changed.
	Rated  []string
	Events []Event
}

// Manager is the job manager of one pool. It is not safe for concurrent use.
type Manager struct {
	config Config
	rng    *rand.Rand
	// start is when it was made, now the time since, wall the newest time it was given.
	start, wall time.Time
	now         time.Duration
	alarms      heap[alarm]

	jobs  map[string]*job
	order []*job // the higher priority first, then the first submitted
	tasks int    // of all jobs
	hosts map[string]*host
	swept time.Duration // when hosts may be forgotten again
	// candidates are where speculative tasks may be placed; turn is the next of them.
	candidates []string
	turn       int
	// granted are tasks that wait for the host that they were granted.
	granted []place

	fence      fence
	first      bool // nothing was ever stored
	fenced     bool // the fence is to be stored, whatever else is
	sequence   uint64
	inherited  time.Duration // the longest lease of a former manager
	unreadable []error
	badNames   map[string]bool // names of jobs that cannot be read
	names      []oldName       // of deleted jobs
	namesDirty bool

	// What the next tick returns.
	writes    []*job
	deletes   []Record
	touched   []*host
	told      []*job
	rated     []*job
	forgotten []string
	events    []Event
}

// place is one task of a job.
type place struct {
	job  *job
	task int32
}

// New returns a manager that continues where the former one, whose records are given, was
// stopped. The caller has the pool's lock at now, reads the records after that, [FenceKey] first,
// and calls Tick only while it has the lock: what is assumed of a silent host relies on no other
// manager having answered its reports after now.
//
// Times given to a manager are time.Now's, with their monotonic reading; one before an earlier
// one counts as that.
//
// Records that cannot be read are left unchanged, see [Manager.Unreadable]. trimtab.ErrStale: the
// records are of a manager with a higher epoch.
func New(now time.Time, c Config, stored []Record) (*Manager, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		config: c, rng: rand.New(rand.NewPCG(c.Seed, c.Epoch)), start: now, wall: now,
		alarms: heap[alarm]{before: func(a, b alarm) bool { return a.at < b.at }},
		jobs:   map[string]*job{}, hosts: map[string]*host{}, badNames: map[string]bool{},
	}
	if err := m.restore(stored); err != nil {
		return nil, fmt.Errorf("restore jobs of pool %.60q: %w", c.Pool, err)
	}
	return m, nil
}

// Unreadable returns why some records could not be read. Their jobs do not run, their names are
// reserved, and their records stay.
func (m *Manager) Unreadable() []error { return m.unreadable }

// Candidates sets the hosts on which speculative tasks may be placed, in the order for
// RoundRobin; nil: none. Only those that reported lately are used.
func (m *Manager) Candidates(hosts []string) { m.candidates = slices.Clone(hosts) }

// Tick decides what to do at now. Its time depends on what changed, not on how much there is.
// Call it every second or so, and after a report with a change.
func (m *Manager) Tick(now time.Time) Output {
	m.advance(now)
	m.ring()
	m.dispatch()
	out := Output{Store: m.store(), Placements: m.lists(), Events: m.events}
	for _, name := range m.forgotten {
		if m.jobs[name] == nil { // no other took its name
			out.Forgotten = append(out.Forgotten, name)
		}
	}
	for _, j := range m.told {
		j.fresh = false
		if m.jobs[j.name] == j {
			out.States = append(out.States, m.state(j))
			j.stale, j.quiet = false, true
			m.wake(alarm{kind: stateAlarm, job: j}, m.config.StateEvery)
		}
	}
	for _, j := range m.rated {
		j.rated = false
		out.Rated = append(out.Rated, j.name)
	}
	m.told, m.rated, m.forgotten, m.events = nil, nil, nil, nil
	return out
}

// lists returns the lists of hosts that changed or must be answered.
func (m *Manager) lists() []*speculation.Placements {
	var out []*speculation.Placements
	for _, h := range m.touched {
		tells := h.changed || len(h.live) > 0 || len(h.foreign) > 0
		if h.heard && tells && (h.changed || h.reported) {
			out = append(out, m.list(h))
		}
		h.touched, h.changed, h.reported = false, false, false
	}
	m.touched = nil
	return out
}

// list returns the whole list of a host. It renews the leases of the attempts in it.
func (m *Manager) list(h *host) *speculation.Placements {
	m.sequence++
	p := &speculation.Placements{
		Pool: m.config.Pool, Host: h.name, Epoch: m.config.Epoch, Sequence: m.sequence, Time: m.wall,
		Life: h.life, Report: h.report, Lease: trimtab.SecondsOf(m.config.Lease),
	}
	for _, a := range h.live {
		if a.dropped {
			continue
		}
		if a.kill != "" && a.asked == 0 {
			a.asked = m.sequence
		}
		p.Tasks = append(p.Tasks, speculation.Placement{
			AttemptID: a.id, Class: a.class, Priority: a.job.Priority, Spec: a.job.Tasks[a.task].TaskSpec, Kill: a.kill,
		})
	}
	if len(p.Tasks) > 0 {
		h.deadline = max(h.deadline, h.at+sure(m.config.Lease))
	}
	if len(h.live) > 0 {
		m.watch(h)
	}
	return p
}

// touch makes the next tick look at a host's list.
func (m *Manager) touch(h *host, changed bool) {
	if !h.touched {
		h.touched = true
		m.touched = append(m.touched, h)
	}
	h.changed = h.changed || changed
	h.reported = h.reported || !changed
}

// write makes the next tick store the state of a task.
func (m *Manager) write(j *job, i int32) {
	if t := &j.tasks[i]; !t.written {
		t.written = true
		if chunk := int(i) / chunkTasks; !slices.Contains(j.dirty, chunk) {
			j.dirty = append(j.dirty, chunk)
		}
	}
	m.writeJob(j)
}

func (m *Manager) writeJob(j *job) {
	if !j.chunkDirty {
		j.chunkDirty = true
		m.writes = append(m.writes, j)
	}
	m.changed(j)
}

// changed makes a tick publish the state of a job.
func (m *Manager) changed(j *job) {
	j.stale = true
	if !j.quiet && !j.fresh {
		j.fresh = true
		m.told = append(m.told, j)
	}
}

func (m *Manager) event(kind EventKind, id speculation.AttemptID, host, text string) {
	m.events = append(m.events, Event{Kind: kind, AttemptID: id, Host: host, Text: text})
}

// Jobs returns the names of all jobs, the first submitted first.
func (m *Manager) Jobs() []string {
	all := slices.Clone(m.order)
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.serial, b.serial) })
	names := make([]string, len(all))
	for i, j := range all {
		names[i] = j.name
	}
	return names
}
