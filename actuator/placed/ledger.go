package placed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Config identifies the ledger's host.
type Config struct {
	Pool, Host string
	// Life identifies this run of the agent; lists for another one are refused.
	Life uint64
	// MaxLease bounds every lease; 0: 5 min.
	MaxLease time.Duration
}

// State is the state of an attempt on this host.
type State uint8

// The states. A refused attempt was never started and never will be; one that was started
// is running until it has ended, frozen or not.
const (
	Queued State = iota
	Running
	Ended
	Refused
)

// Attempt is the ledger's record of one attempt.
type Attempt struct {
	speculation.Placement
	State State
	// Until is when its lease expires, as a time since the boot of the host.
	Until time.Duration
	// Why says why it was refused, or is being killed.
	Why string
}

// task names the task of attempts.
type task struct{ job, name string }

// mark is the highest attempt number known for a task, and when it was seen.
type mark struct {
	attempt int
	at      time.Duration
}

// maxMarks is the number of tasks for which the highest attempt number is kept, 7 MB.
const maxMarks = 50_000

// Ledger has the attempts of one run of a host's agent. It is not safe for concurrent use.
type Ledger struct {
	config   Config
	attempts map[speculation.AttemptID]*Attempt
	// sent has the time of each report by its number; next is the number of the next report.
	sent map[uint64]time.Duration
	next uint64
	// epoch, sequence and answered are those of the newest valid list.
	epoch, sequence, answered uint64
	marks                     map[task]mark
}

// New returns an empty ledger.
func New(c Config) (*Ledger, error) {
	c.MaxLease = cmp.Or(c.MaxLease, 5*time.Minute)
	if c.Pool == "" || c.Host == "" || c.Life == 0 || c.MaxLease < 0 {
		return nil, trimtab.Invalidf("ledger of pool %.40q, host %.40q, life %d, lease %v: want all of them", c.Pool, c.Host, c.Life, c.MaxLease)
	}
	return &Ledger{config: c, next: 1, attempts: map[speculation.AttemptID]*Attempt{}, sent: map[uint64]time.Duration{}, marks: map[task]mark{}}, nil
}

// Report returns the number of a report that must be sent now or later, never before: the lease
// counts from now.
func (l *Ledger) Report(now time.Duration) uint64 {
	for n, at := range l.sent {
		if now-at > l.config.MaxLease {
			delete(l.sent, n) // a list that answers it would have no lease left
		}
	}
	n := l.next
	l.next++
	l.sent[n] = now
	return n
}

// Newest returns the epoch and the sequence of the newest valid list.
func (l *Ledger) Newest() (epoch, sequence uint64) { return l.epoch, l.sequence }

// Find returns an attempt.
func (l *Ledger) Find(id speculation.AttemptID) (Attempt, bool) {
	a := l.attempts[id]
	if a == nil {
		return Attempt{}, false
	}
	return *a, true
}

// Attempts returns all known attempts, by name.
func (l *Ledger) Attempts() []Attempt {
	all := make([]Attempt, 0, len(l.attempts))
	for _, a := range l.attempts {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b Attempt) int { return compare(a.AttemptID, b.AttemptID) })
	return all
}

func compare(a, b speculation.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
}

// Start records that a queued attempt is about to be started. It returns false, and the attempt
// must not be started, if it is not queued or its lease has expired.
func (l *Ledger) Start(now time.Duration, id speculation.AttemptID) bool {
	a := l.attempts[id]
	if a == nil || a.State != Queued || now >= a.Until {
		return false
	}
	a.State = Running
	return true
}

// Refuse records that an attempt will never run: it is queued, or starting it failed before its
// command ran.
func (l *Ledger) Refuse(id speculation.AttemptID, why string) {
	if a := l.attempts[id]; a != nil && (a.State == Queued || a.State == Running) {
		a.State, a.Why = Refused, why
	}
}

// End records that a started attempt has ended.
func (l *Ledger) End(id speculation.AttemptID) {
	if a := l.attempts[id]; a != nil && a.State == Running {
		a.State = Ended
	}
}

// Adopt adds an attempt of an earlier run that has ended, so that it is reported and never started
// again.
func (l *Ledger) Adopt(now time.Duration, id speculation.AttemptID, class speculation.TaskClass) {
	if l.attempts[id] == nil && len(l.attempts) < speculation.MaxAttemptsHere {
		l.attempts[id] = &Attempt{Placement: speculation.Placement{AttemptID: id, Class: class}, State: Ended}
		l.mark(now, id)
	}
}

// Relabelled records that an attempt has another class.
func (l *Ledger) Relabelled(id speculation.AttemptID, class speculation.TaskClass) {
	if a := l.attempts[id]; a != nil {
		a.Class = class
	}
}

// mark records the number of a known attempt.
func (l *Ledger) mark(now time.Duration, id speculation.AttemptID) {
	key := task{id.Job, id.Task}
	m := l.marks[key]
	l.marks[key] = mark{max(m.attempt, id.Attempt), now}
	if len(l.marks) > maxMarks {
		l.forgetMarks()
	}
}

// forgetMarks drops the older half of the marks. Lists are ordered, so only a planner that returns
// to an older state would list such attempts again.
func (l *Ledger) forgetMarks() {
	times := make([]time.Duration, 0, len(l.marks))
	for _, m := range l.marks {
		times = append(times, m.at)
	}
	slices.Sort(times)
	oldest := times[len(times)/2]
	for key, m := range l.marks {
		if m.at < oldest {
			delete(l.marks, key)
		}
	}
}

// why returns why an unknown attempt is refused; "": it is not.
func (l *Ledger) why(p *speculation.Placement) string {
	if m, known := l.marks[task{p.Job, p.Task}]; known && m.attempt >= p.Attempt {
		return fmt.Sprintf("attempt %d of this task was here before", m.attempt)
	}
	return p.Kill
}
