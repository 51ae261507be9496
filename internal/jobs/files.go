package jobs

import (
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// maxReads bounds the reads at a time that are not late, maxLate those that are: a
	// read that hangs in the kernel can be neither ended nor waited for.
	maxReads, maxLate = 16, 256
	// lateAfter is the duration after which a read counts as late.
	lateAfter = 5 * time.Second
)

// Files reads files of progress. One that does not answer, as on an NFS server that is
// gone, delays no other for longer than some seconds, and has at most one read. It is
// safe for concurrent use.
type Files struct {
	take func(id string, now time.Time, r Report, err error)

	mu      sync.Mutex
	sources map[string]Source
	// queue are the jobs whose file is to be read next.
	queue   []string
	pending map[string]*reading
	known   map[string]knownFile
	now     time.Time
	// active counts the goroutines that read, without the late.
	active, late int
}

// reading is a read that has begun and not ended.
type reading struct {
	source Source
	began  time.Time
	late   bool
}

// knownFile is the last state and error of a file.
type knownFile struct {
	source  Source
	mark    mark
	problem string
}

// NewFiles returns a reader that calls take from its own goroutines for each new report and each
// changed error, with the time of the poll that read it. A missing file of the host's own
// configuration is no error: its job has not reported yet.
func NewFiles(take func(id string, now time.Time, r Report, err error)) *Files {
	return &Files{take: take, pending: map[string]*reading{}, known: map[string]knownFile{}}
}

// Poll begins to read the files, by job, and forgets all others. It waits for none.
func (f *Files) Poll(now time.Time, sources map[string]Source) {
	f.mu.Lock()
	f.sources, f.now = maps.Clone(sources), now
	maps.DeleteFunc(f.known, func(id string, _ knownFile) bool { _, ok := sources[id]; return !ok })
	var late []string
	stuck := map[string]bool{}
	for id, r := range f.pending {
		if !r.late && now.Sub(r.began) >= lateAfter {
			r.late = true
			f.active, f.late = f.active-1, f.late+1
			late = append(late, id)
		}
		stuck[path.Dir(r.source.Name)] = stuck[path.Dir(r.source.Name)] || r.late
	}
	f.queue = f.queue[:0]
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		if f.pending[id] == nil && !stuck[path.Dir(sources[id].Name)] {
			f.queue = append(f.queue, id)
		}
	}
	for range min(len(f.queue), maxReads-f.active, maxReads+maxLate-f.active-f.late) {
		f.active++
		go f.read()
	}
	f.mu.Unlock()
	for _, id := range late {
		f.slow(id, now)
	}
}

// read reads the queued files until none is left, or until a read was late.
func (f *Files) read() {
	for {
		f.mu.Lock()
		if len(f.queue) == 0 {
			f.active--
			f.mu.Unlock()
			return
		}
		id := f.queue[0]
		f.queue = f.queue[1:]
		source, known := f.sources[id], f.known[id]
		this := &reading{source: source, began: f.now}
		f.pending[id] = this
		f.mu.Unlock()
		if known.source != source {
			known = knownFile{source: source}
		}
		r, now, news, err := source.readNew(known.mark)
		if errors.Is(err, os.ErrNotExist) { // only for a file that the host's configuration names
			news, err = false, nil
		}
		tell, late := f.done(id, this, knownFile{source, now, textOf(err)}, news || err != nil)
		if tell {
			f.take(id, this.began, r, err)
		}
		if late { // another reads in its place
			return
		}
	}
}

// done ends a read, and returns whether its result must be passed on, and whether it was late.
func (f *Files) done(id string, r *reading, now knownFile, news bool) (tell, late bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pending, id)
	if r.late {
		f.late--
	}
	if f.sources[id] != r.source {
		return false, r.late // the job is gone, or reports elsewhere
	}
	same := now.problem != "" && now.problem == f.known[id].problem
	if now.problem != "" {
		now.mark = mark{} // read it again even if it does not change
	}
	f.known[id] = now
	return news && !same, r.late
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// slow records and reports that a read is late.
func (f *Files) slow(id string, now time.Time) {
	f.mu.Lock()
	source, there := f.sources[id]
	err := trimtab.Invalidf("read progress: %s has not answered for %v: is its file system gone?", source.Name, lateAfter)
	f.known[id] = knownFile{source: source, problem: err.Error()}
	f.mu.Unlock()
	if there {
		f.take(id, now, Report{}, err)
	}
}
