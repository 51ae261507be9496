package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

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

// writeAhead is what is stored, and what the next tick adds to it before it publishes anything.
type writeAhead struct {
	fence      fence
	first      bool          // nothing was ever stored
	fenced     bool          // the fence is to be stored, whatever else is
	inherited  time.Duration // the longest lease of a former manager
	unreadable []error
	badNames   map[string]bool // names of jobs that cannot be read
	names      []oldName       // of deleted jobs
	namesDirty bool
	writes     []*job
	deletes    []Record
}

// task makes the next tick store the state of a task.
func (s *writeAhead) task(j *job, i int32) {
	if t := &j.tasks[i]; !t.written {
		t.written = true
		if chunk := int(i) / chunkTasks; !slices.Contains(j.stored.dirty, chunk) {
			j.stored.dirty = append(j.stored.dirty, chunk)
		}
	}
	s.job(j)
}

// job makes the next tick store what changed of a job.
func (s *writeAhead) job(j *job) {
	if !j.stored.listed {
		j.stored.listed = true
		s.writes = append(s.writes, j)
	}
}

// delete makes the next tick delete the records of a job.
func (s *writeAhead) delete(j *job) {
	s.deletes = append(s.deletes, j.records()...)
	if n := j.highest(); n > 0 {
		s.retain(j.name, n)
	}
}

// next returns what to store: of each job the specs, the head, the states; then the fence, and
// the deletions. An interruption anywhere leaves a usable state: the head says that a job was
// cancelled before a state does, and a job counts as ended only if all states say so.
func (s *writeAhead) next(now, lease time.Duration) []Record {
	var out []Record
	if s.first { // so that a first store that is cut off leaves no records without a fence
		s.first = false
		none := s.fence
		none.Serial = 0
		out = append(out, record(FenceKey, none))
	}
	for _, j := range s.writes {
		if j.stored.listed = false; !j.forgotten {
			out = append(out, j.unstored()...)
		}
	}
	s.writes = nil
	if s.namesDirty {
		s.namesDirty = false
		out = append(out, record(namesKey, namesRecord{version, s.names}))
	}
	if now >= sure(s.inherited) && s.fence.Lease.Duration() > lease { // nothing of the longer lease is left
		s.fence.Lease, s.fenced = trimtab.SecondsOf(lease), true
	}
	if len(out)+len(s.deletes) > 0 || s.fenced {
		s.fenced = false
		s.fence.Stores++
		out = append(out, record(FenceKey, s.fence))
	}
	out = append(out, s.deletes...) // what makes them needless is committed now
	s.deletes = nil
	return out
}

// succeed makes the fence of a manager from the former one's.
func (s *writeAhead) succeed(epoch, last uint64, lease time.Duration) {
	f := &s.fence
	run := uint64(0)
	s.first = f.Version == 0
	if f.Version != 0 && f.Epoch == epoch {
		run = f.Run + 1
	}
	s.inherited = max(lease, min(f.Lease.Duration(), maxTime))
	*f = fence{Version: version, Epoch: epoch, Run: run, Serial: max(f.Serial, last), Lease: trimtab.SecondsOf(s.inherited)}
	s.fenced = true
}

// discard deletes records that belong to no job.
func (s *writeAhead) discard(serial uint64, records map[string][]byte) {
	for _, rest := range slices.Sorted(maps.Keys(records)) {
		s.deletes = append(s.deletes, Record{Key: fmt.Sprintf("job.%d.%s", serial, rest)})
	}
}

// recall returns the highest attempt number of a deleted job. It is kept when another job takes
// the name, since that one may never be committed.
func (s *writeAhead) recall(name string) int {
	for _, n := range s.names {
		if n.Name == name {
			return n.Highest
		}
	}
	return 0
}

// retain keeps the name of a deleted job.
func (s *writeAhead) retain(name string, highest int) {
	s.names = slices.DeleteFunc(s.names, func(n oldName) bool { return n.Name == name })
	s.names, s.namesDirty = append(s.names[max(0, len(s.names)+1-keptNames):], oldName{name, highest}), true
}
