package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// The stored records:
//
//	manager          the fence: who manages, and up to which serial jobs are committed
//	names            the highest attempt numbers of deleted jobs, by name
//	job.N.spec.K     tasks of the job with serial N, as submitted; never changes
//	job.N.head       the rest of the job; written after its specs
//	job.N.state.K    the states of its tasks 32·K to 32·K + 31; missing: none was tried
//
// Every store writes the fence after the new records and before deletions. So a manager that has
// been replaced cannot complete a store, and has acted on nothing that it wrote.
const (
	version    = 1
	chunkTasks = 32
	maxSpec    = speculation.MaxTaskText + 64<<10
	namesKey   = "names"
	// keptNames is the number of deleted jobs whose names are kept.
	keptNames = 1000
)

// FenceKey is the key of the record to read before all others: if another manager completes a store
// after that read, the reader can store nothing any more.
const FenceKey = "manager"

// namesRecord lets a new job with the name of a deleted one continue its attempt numbers: hosts
// never start an attempt whose number they have seen.
type namesRecord struct {
	Version int       `json:"v"`
	Names   []oldName `json:"names"` // the oldest first
}

type oldName struct {
	Name    string `json:"n"`
	Highest int    `json:"h"`
}

type specRecord struct {
	Version int               `json:"v"`
	Tasks   []json.RawMessage `json:"tasks"`
}

type headRecord struct {
	Version      int             `json:"v"`
	Name         string          `json:"name"`
	Priority     int             `json:"priority,omitempty"`
	Retries      int             `json:"retries"`
	QueueTimeout trimtab.Seconds `json:"queue_timeout_s,omitempty"`
	Tasks        int             `json:"tasks"`
	Specs        int             `json:"specs"`
	Requests     []string        `json:"requests"`
	By           string          `json:"by,omitempty"`
	Submitted    time.Time       `json:"submitted"`
	Base         int             `json:"base,omitempty"`
	Cancelled    string          `json:"cancelled,omitempty"`
	Ended        time.Time       `json:"ended,omitzero"`
}

type stateRecord struct {
	Version int          `json:"v"`
	Tasks   []taskRecord `json:"tasks"`
}

type taskRecord struct {
	// Status is the status of the task: "", done, failed or cancelled.
	Status   string               `json:"s,omitempty"`
	Number   int32                `json:"n,omitempty"`
	Host     string               `json:"h,omitempty"`
	Failures uint16               `json:"f,omitempty"`
	Refused  uint16               `json:"r,omitempty"`
	Lost     uint16               `json:"l,omitempty"`
	Grant    string               `json:"g,omitempty"`
	Kept     bool                 `json:"k,omitempty"`
	Live     *attemptRecord       `json:"a,omitempty"`
	Why      string               `json:"w,omitempty"`
	Last     *speculation.Attempt `json:"o,omitempty"`
}

type attemptRecord struct {
	Life   uint64                `json:"life"`
	Report uint64                `json:"report"`
	Class  speculation.TaskClass `json:"class"`
	Kill   string                `json:"kill,omitempty"`
}

func key(serial uint64, kind string, k int) string {
	return fmt.Sprintf("job.%d.%s.%d", serial, kind, k)
}

func headKey(serial uint64) string { return fmt.Sprintf("job.%d.head", serial) }

// records returns the records of a job for deletion, the head first.
func (j *job) records() []Record {
	out := []Record{{Key: headKey(j.serial)}}
	for k := range j.stored.specs {
		out = append(out, Record{Key: key(j.serial, "spec", k)})
	}
	for k, is := range j.stored.states {
		if is {
			out = append(out, Record{Key: key(j.serial, "state", k)})
		}
	}
	return out
}

// unstored returns the records of a job that must be stored: specs, head, states.
func (j *job) unstored() (out []Record) {
	s := &j.stored
	for k, part := range s.parts {
		out = append(out, Record{Key: key(j.serial, "spec", k), Value: part})
	}
	if s.head {
		out = append(out, record(headKey(j.serial), j.head()))
	}
	slices.Sort(s.dirty)
	for _, k := range s.dirty {
		out = append(out, record(key(j.serial, "state", k), j.chunk(k)))
		s.states[k] = true
	}
	s.parts, s.head, s.dirty = nil, false, s.dirty[:0]
	return out
}

func record(key string, v any) Record {
	text, err := json.Marshal(v)
	if err != nil { // all values were validated when they came
		panic(fmt.Sprintf("jobs: encode %s: %v", key, err))
	}
	return Record{Key: key, Value: text}
}

func (j *job) head() headRecord {
	return headRecord{
		Version: version, Name: j.name, Priority: j.Priority, Retries: j.Retries, QueueTimeout: j.QueueTimeout,
		Tasks: len(j.tasks), Specs: j.stored.specs, Requests: j.requests, By: j.by, Submitted: j.submitted,
		Base: j.base, Cancelled: j.cancelled, Ended: j.ended,
	}
}

// chunk returns the state record of some tasks.
func (j *job) chunk(k int) stateRecord {
	r := stateRecord{Version: version}
	for i := k * chunkTasks; i < min(len(j.tasks), (k+1)*chunkTasks); i++ {
		t := &j.tasks[i]
		t.written = false
		s := taskRecord{Number: t.number, Host: t.host, Failures: t.failures, Refused: t.refused, Lost: t.lost, Grant: t.grant, Kept: t.kept}
		if t.ended() {
			s.Status = t.status.String()
		}
		if t.live != nil {
			s.Live = &attemptRecord{t.live.life, t.live.report, t.live.class, t.live.kill}
		}
		if t.more != nil {
			s.Why, s.Last = t.more.why, t.more.last
		}
		r.Tasks = append(r.Tasks, s)
	}
	return r
}

func (s status) String() string {
	return [...]string{speculation.StateWaiting, speculation.StatePlaced, speculation.StateDone, speculation.StateFailed, speculation.StateCancelled}[s]
}

func parseKey(k string) (serial uint64, rest string, ok bool) {
	k, ok = strings.CutPrefix(k, "job.")
	number, rest, ok2 := strings.Cut(k, ".")
	serial, err := strconv.ParseUint(number, 10, 64)
	return serial, rest, ok && ok2 && err == nil && serial > 0 && serial < math.MaxUint64>>1
}

func decode(text []byte, v any) error {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
	}
	if head.Version != version {
		return fmt.Errorf("version %d, want %d: %w", head.Version, version, trimtab.ErrUnsupported)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
	}
	return nil
}

// revive builds a job from its records.
func revive(serial uint64, head *headRecord, records map[string][]byte) (*job, error) {
	j := &job{
		name: head.Name, serial: serial, requests: head.Requests, by: head.By, submitted: head.Submitted,
		base: head.Base, cancelled: head.Cancelled, ended: head.Ended, stored: stored{specs: head.Specs},
		BatchJob: speculation.BatchJob{Name: head.Name, Priority: head.Priority, Retries: head.Retries, QueueTimeout: head.QueueTimeout},
	}
	var sizes []int32
	for k := range head.Specs {
		var part specRecord
		if err := decode(records[fmt.Sprintf("spec.%d", k)], &part); err != nil {
			return nil, fmt.Errorf("specs %d: %w", k, err)
		}
		for _, text := range part.Tasks {
			var t speculation.BatchTask
			if err := json.Unmarshal(text, &t); err != nil {
				return nil, fmt.Errorf("task %d: %w: %w", len(j.Tasks), trimtab.ErrInvalid, err)
			}
			j.Tasks, sizes = append(j.Tasks, t), append(sizes, listed(&t.TaskSpec, len(text)))
		}
	}
	if len(j.Tasks) != head.Tasks {
		return nil, trimtab.Invalidf("%d tasks, the head says %d", len(j.Tasks), head.Tasks)
	}
	if err := j.BatchJob.Validate(); err != nil {
		return nil, err
	}
	j.fill(sizes)
	for k := range j.stored.states {
		text, ok := records[fmt.Sprintf("state.%d", k)]
		if !ok {
			continue
		}
		var r stateRecord
		err := decode(text, &r)
		if err == nil {
			err = j.take(k, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("states %d: %w", k, err)
		}
		j.stored.states[k] = true
	}
	return j, nil
}

// take restores the states of some tasks.
func (j *job) take(k int, r *stateRecord) error {
	first := k * chunkTasks
	if len(r.Tasks) != min(chunkTasks, len(j.tasks)-first) {
		return trimtab.Invalidf("%d tasks", len(r.Tasks))
	}
	for n := range r.Tasks {
		s, t := &r.Tasks[n], &j.tasks[first+n]
		at := slices.Index([]string{"", "", done.String(), failed.String(), cancelled.String()}, s.Status)
		if at < 0 || s.Number < 0 || s.Live != nil && (s.Host == "" || at > 0 || s.Number == 0 || s.Live.Life == 0) {
			return trimtab.Invalidf("task %d: %+v", first+n, *s)
		}
		t.status, t.number, t.host = status(at), s.Number, s.Host
		t.failures, t.refused, t.lost, t.grant, t.kept = s.Failures, s.Refused, s.Lost, s.Grant, s.Kept
		if s.Why != "" || s.Last != nil {
			t.more = &trouble{why: s.Why, last: s.Last}
		}
		if s.Live != nil {
			t.live = &attempt{
				job: j, task: int32(first + n), id: speculation.AttemptID{Job: j.name, Task: j.Tasks[first+n].Name, Attempt: int(s.Number)},
				life: s.Live.Life, report: s.Live.Report, class: s.Live.Class, kill: s.Live.Kill,
			}
		}
	}
	return nil
}

// waits returns the longest time that a waiting task may have to wait until its next attempt.
func (t *task) waits(c *Config) time.Duration {
	wait := time.Duration(0)
	for _, n := range []int{int(t.failures), int(t.lost), int(t.refused) - freeRefusals} {
		if n > 0 {
			wait = max(wait, double(c.Backoff, c.MaxBackoff, n))
		}
	}
	return wait
}
