package jobs

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// job is a submitted job, until it is deleted.
type job struct {
	speculation.BatchJob
	name string
	// serial numbers jobs in the order of their submission; it is part of the keys of their
	// records.
	serial    uint64
	requests  []string // the newest last
	by        string
	submitted time.Time
	// base is the highest attempt number of an earlier job with the same name.
	base      int
	cancelled string // who cancelled it, and why; "": it was not cancelled
	ended     time.Time
	tasks     []task
	// ready has the tasks that may be placed speculatively, in the order of the job. Some may no
	// longer be: see offered.
	ready heap[int32]
	live  []*attempt
	bad   []int32 // failed tasks
	// running counts the live attempts that run, done the tasks that succeeded, finished those that
	// have ended.
	running, done, finished int
	durations               durations
	penalties               map[string]int
	// problem is why ready tasks are not placed.
	problem string

	stored stored
	// stale says that the state changed since it was published; quiet says that one was published
	// less than StateEvery ago.
	stale, quiet, fresh, rated bool
	forgotten                  bool
}

// stored says which records of a job exist, and which the next tick stores.
type stored struct {
	specs  int      // number of spec records
	states []bool   // which state records exist
	listed bool     // the next tick stores the following
	parts  [][]byte // spec records
	head   bool
	dirty  []int // state records to store
}

// status is the state of a task.
type status uint8

const (
	waiting status = iota
	placed
	done
	failed
	cancelled
)

// task is the state of one task of a job.
type task struct {
	status  status
	offered bool // it is in the heap of ready tasks
	pending bool // it waits for a granted host
	written bool // its state record is to be stored
	// kept says that the task stays where it runs, and that the grant is kept in case it fails
	// there.
	kept                    bool
	failures, refused, lost uint16
	number                  int32 // of the newest attempt
	size                    int32 // size of the encoded spec, in bytes
	live                    *attempt
	next                    time.Duration // when it may be tried again
	grant                   string
	host                    string // of the newest attempt
	more                    *trouble
}

// trouble is the history of a task whose first attempt did not succeed.
type trouble struct {
	last *speculation.Attempt
	why  string
	// avoid has the hosts where attempts went wrong, the newest first.
	avoid [4]string
	// until is when a task stops waiting for its granted host.
	until time.Duration
}

func (t *task) trouble() *trouble {
	if t.more == nil {
		t.more = &trouble{}
	}
	return t.more
}

func (t *task) shun(host string) {
	v := t.trouble()
	if !slices.Contains(v.avoid[:], host) {
		copy(v.avoid[1:], v.avoid[:])
		v.avoid[0] = host
	}
}

func (t *task) shuns(host string) bool {
	return t.more != nil && slices.Contains(t.more.avoid[:], host)
}

func (t *task) ended() bool { return t.status >= done }

// attempt is an attempt that was placed and has not ended.
type attempt struct {
	job  *job
	task int32
	at   int // index in the job's live attempts
	id   speculation.AttemptID
	host *host
	// life and report are the host's newest numbers when the attempt was placed.
	life, report uint64
	class        speculation.TaskClass
	// kill is why the attempt must end; asked is the number of the first list that says so.
	kill  string
	asked uint64
	// told is the attempt in the last report of its host, whose number is seen; nil: none.
	told *speculation.Attempt
	seen uint64
	// placed is when it was placed; since is when it was first reported as running.
	placed, since time.Duration
	// counted says that it counts against its machine; dropped, that it is no longer listed; gone,
	// that it has ended.
	counted, dropped, gone bool
}

// runs reports whether the host has reported it as started.
func (a *attempt) runs() bool {
	return a.told != nil && (a.told.State == speculation.AttemptRunning || a.told.State == speculation.AttemptFrozen)
}

// listable reports whether it has not ended and need not end.
func (a *attempt) listable() bool { return !a.gone && a.kill == "" }

func (a *attempt) of() *task { return &a.job.tasks[a.task] }

// durations has the running times of the newest successful attempts.
type durations struct {
	ring []time.Duration
	next int
	// sorted has the values of the ring in ascending order.
	sorted []time.Duration
}

const keptDurations = 101

func (d *durations) add(v time.Duration) {
	if len(d.ring) < keptDurations {
		d.ring = append(d.ring, v)
	} else {
		at, _ := slices.BinarySearch(d.sorted, d.ring[d.next])
		d.sorted = slices.Delete(d.sorted, at, at+1)
		d.ring[d.next] = v
		d.next = (d.next + 1) % keptDurations
	}
	at, _ := slices.BinarySearch(d.sorted, v)
	d.sorted = slices.Insert(d.sorted, at, v)
}

func (d *durations) median() time.Duration { return d.sorted[len(d.sorted)/2] }
