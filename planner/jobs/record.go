package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
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
// been replaced completes no store, and has acted on nothing that it wrote in one.
const (
	version    = 1
	chunkTasks = 32
	maxSpec    = speculation.MaxTaskText + 64<<10
	namesKey   = "names"
	// keptNames is of how many deleted jobs the names are kept.
	keptNames = 1000
)

// FenceKey is the record to read before all others: whatever another manager completes after that
// prevents the reader from storing anything.
const FenceKey = "manager"

// fence is the record that each manager writes with all it stores.
type fence struct {
	Version int    `json:"v"`
	Epoch   uint64 `json:"epoch"`
	// Run counts the managers of an epoch; it makes their sequences differ.
	Run uint64 `json:"run"`
	// Serial is that of the job submitted last.
	Serial uint64 `json:"serial"`
	// Lease is the longest for which anything may have been renewed.
	Lease trimtab.Seconds `json:"lease_s"`
	// Stores counts those of this run.
	Stores uint64 `json:"stores"`
}

// namesRecord lets a job with the name of a deleted one continue its attempt numbers: hosts never
// start a number that they have seen.
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
	// Status is that of the task: "", done, failed or cancelled.
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

// records returns those of a job, for their deletion: the head first.
func (j *job) records() []Record {
	out := []Record{{Key: headKey(j.serial)}}
	for k := range j.chunks {
		out = append(out, Record{Key: key(j.serial, "spec", k)})
	}
	for k := range j.stored {
		if j.stored[k] {
			out = append(out, Record{Key: key(j.serial, "state", k)})
		}
	}
	return out
}

func record(key string, v any) Record {
	text, err := json.Marshal(v)
	if err != nil { // every value was checked when it came
		panic(fmt.Sprintf("jobs: encode %s: %v", key, err))
	}
	return Record{Key: key, Value: text}
}

// store returns what to store: of each job the specs, the head, the states; then the fence, and
// the deletions. An interruption anywhere leaves a usable state: the head says that a job was
// cancelled before a state does, and a job counts as ended only if all states say so.
func (m *Manager) store() []Record {
	var out []Record
	if m.first { // so that a first store that is cut off leaves no records without a fence
		m.first = false
		none := m.fence
		none.Serial = 0
		out = append(out, record(FenceKey, none))
	}
	for _, j := range m.writes {
		j.chunkDirty = false
		if m.jobs[j.name] != j {
			continue // forgotten
		}
		for k, part := range j.parts {
			out = append(out, Record{Key: key(j.serial, "spec", k), Value: part})
		}
		j.parts = nil
		if j.headDirty {
			j.headDirty = false
			out = append(out, record(headKey(j.serial), j.head()))
		}
		slices.Sort(j.dirty)
		for _, k := range j.dirty {
			out = append(out, record(key(j.serial, "state", k), j.chunk(k)))
			j.stored[k] = true
		}
		j.dirty = j.dirty[:0]
	}
	m.writes = nil
	if m.namesDirty {
		m.namesDirty = false
		out = append(out, record(namesKey, namesRecord{version, m.names}))
	}
	if m.now >= sure(m.inherited) && m.fence.Lease.Duration() > m.config.Lease { // nothing of the longer lease is left
		m.fence.Lease, m.fenced = trimtab.SecondsOf(m.config.Lease), true
	}
	if len(out)+len(m.deletes) > 0 || m.fenced {
		m.fenced = false
		m.fence.Stores++
		out = append(out, record(FenceKey, m.fence))
	}
	out = append(out, m.deletes...) // what makes them needless is committed now
	m.deletes = nil
	return out
}

func (j *job) head() headRecord {
	return headRecord{
		Version: version, Name: j.name, Priority: j.Priority, Retries: j.Retries, QueueTimeout: j.QueueTimeout,
		Tasks: len(j.tasks), Specs: j.chunks, Requests: j.requests, By: j.by, Submitted: j.submitted,
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

// restore restores what was stored.
func (m *Manager) restore(stored []Record) error {
	byJob := map[uint64]map[string][]byte{}
	last := uint64(0)
	for _, r := range stored {
		switch r.Key {
		case FenceKey:
			if err := decode(r.Value, &m.fence); err != nil {
				return fmt.Errorf("read %s: %w", FenceKey, err)
			}
			continue
		case namesKey:
			var names namesRecord
			if err := decode(r.Value, &names); err != nil {
				m.unreadable = append(m.unreadable, fmt.Errorf("read %s: %w", namesKey, err))
			}
			m.names = names.Names
			continue
		}
		serial, rest, ok := parseKey(r.Key)
		if !ok {
			m.unreadable = append(m.unreadable, trimtab.Invalidf("record %.80q: not a key of a job", r.Key))
			continue
		}
		if byJob[serial] == nil {
			byJob[serial] = map[string][]byte{}
		}
		byJob[serial][rest] = r.Value
		last = max(last, serial)
	}
	if m.fence.Version == 0 && len(byJob) > 0 {
		return trimtab.Invalidf("there are records of jobs and none %q", FenceKey)
	}
	if m.fence.Epoch > m.config.Epoch {
		return fmt.Errorf("epoch %d, the records are of %d: %w", m.config.Epoch, m.fence.Epoch, trimtab.ErrStale)
	}
	committed := m.fence.Serial
	m.succeed(last)
	for _, serial := range slices.Sorted(maps.Keys(byJob)) {
		m.restoreJob(serial, byJob[serial], serial <= committed)
	}
	return nil
}

// succeed makes this manager's fence from the former one's.
func (m *Manager) succeed(last uint64) {
	f := &m.fence
	run := uint64(0)
	m.first = f.Version == 0
	if f.Version != 0 && f.Epoch == m.config.Epoch {
		run = f.Run + 1
	}
	m.inherited = max(m.config.Lease, min(f.Lease.Duration(), maxTime))
	*f = fence{Version: version, Epoch: m.config.Epoch, Run: run, Serial: max(f.Serial, last), Lease: trimtab.SecondsOf(m.inherited)}
	m.sequence = run << 32
	m.fenced = true
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

// restoreJob restores one job. It deletes records without a head, or that were never committed;
// records that cannot be read stay.
func (m *Manager) restoreJob(serial uint64, records map[string][]byte, committed bool) {
	text, ok := records["head"]
	if !ok || !committed {
		m.discard(serial, records)
		return
	}
	var head headRecord
	err := decode(text, &head)
	var j *job
	if err == nil {
		j, err = revive(serial, &head, records)
	}
	if err != nil {
		m.unreadable = append(m.unreadable, fmt.Errorf("read job %d %.63q: %w", serial, head.Name, err))
		if head.Name != "" {
			m.badNames[head.Name] = true
		}
		return
	}
	if old := m.jobs[j.name]; old != nil { // the newer one took its name
		m.forget(old)
	}
	m.enter(j)
	m.resume(j)
}

func (m *Manager) discard(serial uint64, records map[string][]byte) {
	for _, rest := range slices.Sorted(maps.Keys(records)) {
		m.deletes = append(m.deletes, Record{Key: fmt.Sprintf("job.%d.%s", serial, rest)})
	}
}

// revive makes a job of its records.
func revive(serial uint64, head *headRecord, records map[string][]byte) (*job, error) {
	j := &job{
		name: head.Name, serial: serial, requests: head.Requests, by: head.By, submitted: head.Submitted,
		base: head.Base, cancelled: head.Cancelled, ended: head.Ended, chunks: head.Specs,
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
	for k := range j.stored {
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
		j.stored[k] = true
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

// resume continues a job: its live attempts may run until their leases have ended. Waits start
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
		case j.cancelled != "": // below
		default:
			if n := m.waits(t); n > 0 {
				t.next = n
				m.wake(alarm{kind: backoffAlarm, job: j, task: int32(i)}, n)
			}
			m.offer(j, int32(i))
		}
	}
	if j.cancelled != "" {
		m.halt(j)
	}
	if !j.ended.IsZero() {
		if j.finished == len(j.tasks) {
			m.wake(alarm{kind: keepAlarm, job: j}, min(max(m.config.Keep-m.wall.Sub(j.ended), 0), m.config.Keep))
		} else {
			j.ended = time.Time{} // the store was cut off
		}
	}
	m.close(j)
	m.changed(j)
}

// waits is the longest that a task which waits may have to.
func (m *Manager) waits(t *task) time.Duration {
	c := &m.config
	wait := time.Duration(0)
	for _, n := range []int{int(t.failures), int(t.lost), int(t.refused) - freeRefusals} {
		if n > 0 {
			wait = max(wait, double(c.Backoff, c.MaxBackoff, n))
		}
	}
	return wait
}

// adopt takes over an attempt of a former manager.
func (m *Manager) adopt(a *attempt) {
	t := a.of()
	t.status = placed
	h := m.hosts[t.host]
	if h == nil {
		h = &host{name: t.host, deadline: sure(m.inherited)}
		m.hosts[t.host] = h
	}
	if a.life > h.life {
		h.life, h.report = a.life, 0
	}
	if a.life == h.life {
		h.report = max(h.report, a.report)
	}
	a.host, a.at = h, len(a.job.live)
	m.enlist(a)
	m.watch(h)
	// Written again, so that no record of a manager that was replaced, and does not know it yet,
	// can overwrite one that says what may run now.
	m.write(a.job, a.task)
	if a.kill != "" {
		m.wake(alarm{kind: killAlarm, attempt: a}, m.config.KillTimeout)
	} else {
		m.wake(alarm{kind: queueAlarm, attempt: a}, m.queueTimeout(a.job))
	}
}
