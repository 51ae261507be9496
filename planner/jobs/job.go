package jobs

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// job is one that was submitted, until it is forgotten.
type job struct {
	speculation.BatchJob
	name string
	// serial orders jobs by their submission and is the name of their records.
	serial    uint64
	requests  []string // the newest last
	by        string
	submitted time.Time
	// base is the highest number of an attempt at the tasks of the job that had this
	// name before.
	base      int
	cancelled string // by whom, and why; "": it is not
	ended     time.Time
	tasks     []task
	// ready has the tasks that may be placed speculatively, the first of the job first. Some may
	// no longer be: see offered.
	ready heap[int32]
	live  []*attempt
	bad   []int32 // tasks that failed
	// running counts live attempts that run, done and ended tasks.
	running, done, finished int
	durations               durations
	penalties               map[string]int
	// problem is why tasks that are ready are not placed.
	problem string

	stored stored
	// stale: the state that was told is not the newest; quiet: one was told just now.
	stale, quiet, fresh, rated bool
	forgotten                  bool
}

// stored is which records of a job there are, and which the next tick stores.
type stored struct {
	specs  int      // records of them
	states []bool   // the records of states that there are
	listed bool     // the next tick stores the following ones
	parts  [][]byte // specs
	head   bool
	dirty  []int // records of states
}

// status is where a task is.
type status uint8

const (
	waiting status = iota
	placed
	done
	failed
	cancelled
)

// task is one of a job.
type task struct {
	status  status
	offered bool // in the heap of the ready ones
	pending bool // among those that wait for a granted host
	written bool // its chunk is to be stored
	// kept: it stays where it runs, and grant is in reserve.
	kept                    bool
	failures, refused, lost uint16
	number                  int32 // of the newest attempt
	size                    int32 // of the spec, encoded
	live                    *attempt
	next                    time.Duration // when it may be tried again
	grant                   string
	host                    string // of the newest attempt
	more                    *trouble
}

// trouble is the history of a task that did not succeed at once.
type trouble struct {
	last *speculation.Attempt
	why  string
	// avoid are hosts where it did not go well, the newest first.
	avoid [4]string
	// until is when a task waits no longer for the host that it was granted.
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

// attempt is one that was placed and has not ended.
type attempt struct {
	job  *job
	task int32
	at   int // in the job's live ones
	id   speculation.AttemptID
	host *host
	// life and report are the newest of the host when it was placed.
	life, report uint64
	class        speculation.TaskClass
	// kill is why it is to end; asked is the sequence of the first list that says so.
	kill  string
	asked uint64
	// told is what the host said of it last, in its report number seen; nil: nothing.
	told *speculation.Attempt
	seen uint64
	// placed is when it was placed, since when it is seen to run.
	placed, since time.Duration
	// counted: against its machine. dropped: it is listed no more. gone: it has ended.
	counted, dropped, gone bool
}

// runs says whether it was started, as far as is known.
func (a *attempt) runs() bool {
	return a.told != nil && (a.told.State == speculation.AttemptRunning || a.told.State == speculation.AttemptFrozen)
}

// listable says whether it is there and not to end.
func (a *attempt) listable() bool { return !a.gone && a.kill == "" }

func (a *attempt) of() *task { return &a.job.tasks[a.task] }

// durations are the running times of the newest successful attempts.
type durations struct {
	ring []time.Duration
	next int
	// sorted is the ring in order.
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
