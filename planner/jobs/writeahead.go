package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// fence is the record that a manager writes with every store.
type fence struct {
	Version int    `json:"v"`
	Epoch   uint64 `json:"epoch"`
	// Run counts the managers of an epoch, so that their sequence numbers differ.
	Run uint64 `json:"run"`
	// Serial is the serial number of the job submitted last.
	Serial uint64 `json:"serial"`
	// Lease is the longest lease that any attempt may have.
	Lease trimtab.Seconds `json:"lease_s"`
	// Stores counts the stores of this run.
	Stores uint64 `json:"stores"`
}

// writeAhead has what is stored, and what the next tick stores before it publishes anything.
type writeAhead struct {
	fence      fence
	first      bool          // nothing was ever stored
	fenced     bool          // the fence must be stored even if nothing else is
	inherited  time.Duration // the longest lease of an earlier manager
	unreadable []error
	badNames   map[string]bool // names of jobs whose records cannot be read
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

// next returns the records to store: of each job the specs, the head and the states; then the
// fence, and the deletions. An interruption at any point leaves a usable state: the head is stored
// before the states when a job is cancelled, and a job counts as ended only if all its states say
// so.
func (s *writeAhead) next(now, lease time.Duration) []Record {
	var out []Record
	if s.first { // so that an interrupted first store leaves no records without a fence
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
	if now >= sure(s.inherited) && s.fence.Lease.Duration() > lease { // all longer leases have expired
		s.fence.Lease, s.fenced = trimtab.SecondsOf(lease), true
	}
	if len(out)+len(s.deletes) > 0 || s.fenced {
		s.fenced = false
		s.fence.Stores++
		out = append(out, record(FenceKey, s.fence))
	}
	out = append(out, s.deletes...) // what replaces them is committed now
	s.deletes = nil
	return out
}

// succeed makes the fence of this manager from that of the former one.
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

// recall returns the highest attempt number of a deleted job. The number is kept when another job
// takes the name, since that job may never be committed.
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
