package jobs

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/machines"
)

// Record is one stored value. Keys are of [a-z0-9.-]; who stores for several pools puts
// the pool before them. A value has at most [MaxRecord] bytes.
type Record struct {
	Key string
	// Value is JSON; nil: the record is to be deleted.
	Value []byte
}

// MaxRecord is the largest value of a record.
const MaxRecord = 768 << 10

// Event is one thing that happened, for logs and metrics.
type Event struct {
	Kind EventKind
	// Job is always set; Task and Attempt are those of an attempt.
	trimtab.AttemptID
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

// Output is what one [Manager.Tick] asks for, in this order: Store, one after the other,
// each compare-and-swap against what this manager read or wrote last; when all are
// stored, and not before, everything else.
//
// When a record cannot be stored, because another manager wrote it or the store cannot
// tell, this manager has ended: publish nothing more of it, and make another by [New]
// from what is stored.
type Output struct {
	Store []Record
	// Placements are the lists to publish, each to its host.
	Placements []*trimtab.Placements
	// States are of jobs that changed; Forgotten names jobs whose records are deleted.
	States    []*trimtab.JobState
	Forgotten []string
	// Rated names jobs of which [Manager.Counts] changed.
	Rated  []string
	Events []Event
}

// New returns a manager that goes on where the one before it, whose records are given,
// was stopped. Its caller has the pool's lock at now and read the records after that, and
// calls Tick only while it has the lock: what is known of a silent host rests on no other
// manager having answered its reports after now.
//
// Times given to a manager are time.Now's, with their monotonic reading; one before an
// earlier one counts as that.
//
// Records that cannot be read are left as they are, see [Manager.Unreadable]. trimtab.ErrStale:
// the records are of a manager with a higher epoch.
func New(now time.Time, c Config, stored []Record) (*Manager, error) { panic("TODO") }

// Unreadable returns why some records could not be read. Their jobs are not run, their
// names are taken, and their records stay.
func (m *Manager) Unreadable() []error { panic("TODO") }

// Request takes what a person or the cluster's resource manager asks for. nil may be told
// to the asker when what the next Tick returns is stored. A request that comes again, by
// its ID or because what it wants is so already, is taken again.
//
// trimtab.ErrInvalid: it breaks the rules; trimtab.ErrRefused: it cannot be done now.
func (m *Manager) Request(now time.Time, r *trimtab.JobRequest) error { panic("TODO") }

// Machine takes a report that was received at now. It is answered by the next Tick.
// An error says why it was not taken; trimtab.ErrStale: an older one.
func (m *Manager) Machine(now time.Time, r *trimtab.Machine) error { panic("TODO") }

// Candidates sets on which hosts speculative tasks may be placed, in the order for
// RoundRobin; nil: on none. Of these only hosts that were heard lately are used.
func (m *Manager) Candidates(hosts []string) { panic("TODO") }

// Tick decides what is to be done at now. It takes time for what changed, not for what
// there is. Call it every second or so, and after a report that came with a change.
func (m *Manager) Tick(now time.Time) Output { panic("TODO") }

// State returns how a job stands, or nil.
func (m *Manager) State(now time.Time, job string) *trimtab.JobState { panic("TODO") }

// Jobs returns the names of all jobs, the first submitted first.
func (m *Manager) Jobs() []string { panic("TODO") }

// Where returns the host and the newest attempt of a task, for its logs; host is "" when
// none was placed, or its host is not known any more.
func (m *Manager) Where(job, task string) (id trimtab.AttemptID, host string, ok bool) { panic("TODO") }

// Counts returns how many tasks of a job failed, crashed, straggled or were killed on
// each machine (algorithm 3), for [machines.Index.Rate]; at returns where a host is in
// the list of machines.
func (m *Manager) Counts(job string, at func(host string) (uint32, bool)) []machines.Count { panic("TODO") }

// Manager is the job manager of one pool. It is not safe for concurrent use.
type Manager struct{}
