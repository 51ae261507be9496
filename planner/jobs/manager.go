package jobs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// Record is one stored value. Keys are of [a-z0-9.-]; a store for several pools puts the pool
// before the key. A value has at most [MaxRecord] bytes.
type Record struct {
	Key string
	// Value is JSON; nil: the record is to be deleted.
	Value []byte
}

// MaxRecord is the largest value of a record.
const MaxRecord = 768 << 10

// Event is reported for logs and metrics.
type Event struct {
	Kind EventKind
	// Job is always set; Task and Attempt are set for events of an attempt.
	speculation.AttemptID
	Host string
	Text string
}

// EventKind says what happened.
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
// If a record cannot be stored, because another manager wrote it or the store does not answer, this
// manager must not be used any more: publish nothing of this Output, and create another manager
// with [New] from the stored records.
type Output struct {
	Store []Record
	// Placements are the lists of attempts to publish, one for each host.
	Placements []*speculation.Placements
	// States has the states of jobs that changed; Forgotten names jobs whose records are deleted.
	States    []*speculation.JobState
	Forgotten []string
	// Rated names jobs whose [Manager.Counts] changed.
	Rated  []string
	Events []Event
}

// Manager is the job manager of one pool. It is not safe for concurrent use.
type Manager struct {
	config     Config
	clock      clock
	store      writeAhead
	jobs       table
	hosts      hosts
	candidates candidates
	// granted are tasks that wait for their granted host.
	granted []place
	changes changes
}

// place identifies a task of a job.
type place struct {
	job  *job
	task int32
}

// New returns a manager that continues the work of the former one, from its stored records. The
// caller must have the pool's lock at now, must read the records after that, [FenceKey] first, and
// may call Tick only while it has the lock. The manager assumes that no other manager answers
// reports of hosts after now.
//
// Times given to a manager are time.Now's, with their monotonic reading; a time before an earlier
// one counts as the earlier.
//
// Records that cannot be read are left unchanged, see [Manager.Unreadable]. trimtab.ErrStale: the
// records are of a manager with a higher epoch.
func New(now time.Time, c Config, stored []Record) (*Manager, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		config: c, clock: newClock(now), store: writeAhead{badNames: map[string]bool{}}, jobs: table{byName: map[string]*job{}},
	}
	m.hosts = hosts{config: &m.config, clock: &m.clock, byName: map[string]*host{}}
	m.candidates = candidates{config: &m.config, hosts: &m.hosts, rng: rand.New(rand.NewPCG(c.Seed, c.Epoch))}
	if err := m.restore(stored); err != nil {
		return nil, fmt.Errorf("restore jobs of pool %.60q: %w", c.Pool, err)
	}
	return m, nil
}

// Unreadable returns why some records could not be read. Their jobs do not run, their names are
// reserved, and their records stay.
func (m *Manager) Unreadable() []error { return m.store.unreadable }

// Candidates sets the hosts on which speculative tasks may be placed, in the order for
// RoundRobin; nil: none. Only those that reported lately are used.
func (m *Manager) Candidates(hosts []string) { m.candidates.names = slices.Clone(hosts) }

// Tick decides what to do at now. Its running time depends on the number of changes, not on the
// number of jobs. Call it every second or so, and after a report with a change.
func (m *Manager) Tick(now time.Time) Output {
	m.clock.advance(now)
	m.ring()
	m.dispatch()
	out := Output{Store: m.store.next(m.clock.now, m.config.Lease), Placements: m.hosts.lists(), Events: m.changes.events}
	for _, name := range m.changes.forgotten {
		if m.jobs.byName[name] == nil { // no other job took its name
			out.Forgotten = append(out.Forgotten, name)
		}
	}
	for _, j := range m.changes.told {
		j.fresh = false
		if !j.forgotten {
			out.States = append(out.States, j.state(m.config.Pool, &m.clock))
			j.stale, j.quiet = false, true
			m.clock.wake(alarm{kind: stateAlarm, job: j}, m.config.StateEvery)
		}
	}
	for _, j := range m.changes.rated {
		j.rated = false
		out.Rated = append(out.Rated, j.name)
	}
	m.changes = changes{}
	return out
}

// write makes the next tick store and publish the state of a task.
func (m *Manager) write(j *job, i int32) {
	m.store.task(j, i)
	m.changes.state(j)
}

// writeJob makes the next tick store and publish the state of a job.
func (m *Manager) writeJob(j *job) {
	m.store.job(j)
	m.changes.state(j)
}

// Jobs returns the names of all jobs, in the order of submission.
func (m *Manager) Jobs() []string {
	all := slices.Clone(m.jobs.order)
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.serial, b.serial) })
	names := make([]string, len(all))
	for i, j := range all {
		names[i] = j.name
	}
	return names
}
