package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// MaxRegistered bounds the jobs that register themselves.
const MaxRegistered = 500

// Workload is the workload of which self-registered jobs are instances.
const Workload = "jobs"

// ErrUnknown is the error for an unknown job.
var ErrUnknown = errors.New("no such job")

// Spec is a job as it registers itself.
type Spec struct {
	// Name is the job's name: letters, digits, '.', '_', '-'.
	Name string `json:"name"`
	// Cgroup is its control group, relative to the root.
	Cgroup string `json:"cgroup"`
	// File is the file to which it writes its progress; "": it reports over HTTP.
	File string `json:"progress_file,omitempty"`
	// Predict is the kind of prediction; "": none.
	Predict string `json:"predict,omitempty"`
}

// ID returns the name of the job everywhere else.
func (s *Spec) ID() string { return IDOf(Workload, s.Name) }

// IDOf is the name of a job by workload and instance.
func IDOf(workload, instance string) string {
	if instance == "" {
		return workload
	}
	return workload + "/" + instance
}

// Config says which groups may be registered.
type Config struct {
	// Root is the directory of the cgroup hierarchy.
	Root string
	// Reserved are the control groups of all declared workloads and of speculative tasks, perhaps
	// with a *: no job may register one of them, nor one above or below.
	Reserved []string
	// Own are the control groups of this program, and of others that it needs: no job may
	// register one of them, nor one above.
	Own []string
	// Most bounds the jobs that register themselves; 0: MaxRegistered.
	Most int
	// Predictions are the kinds of prediction.
	Predictions []string
}

// Registry keeps jobs. It is safe for concurrent use.
type Registry struct {
	config Config
	path   string

	mu         sync.Mutex
	registered map[string]Spec // by name
	progress   map[string]*Progress
}

// file is the form of the registry on disk.
type file struct {
	Version int    `json:"version"`
	Jobs    []Spec `json:"jobs"`
}

// Open reads the registered jobs from the directory; entries that cannot be read, or are no
// longer allowed, are dropped, and reported as problem.
func Open(dir string, c Config) (r *Registry, problem error) {
	r = &Registry{config: c, path: filepath.Join(dir, "jobs.json"), registered: map[string]Spec{}, progress: map[string]*Progress{}}
	b, err := hostfs.ReadFile(r.path, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	var f file
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return r, fmt.Errorf("read registered jobs: %w", err)
	}
	var errs []error
	for _, s := range f.Jobs {
		if err := r.check(&s); err != nil {
			errs = append(errs, err)
		} else if len(r.registered) < r.most() {
			r.registered[s.Name] = s
		}
	}
	return r, errors.Join(errs...)
}

// Register adds a job, or replaces the one of its name. A group that does not exist is refused.
func (r *Registry) Register(s Spec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(&s); err != nil {
		return fmt.Errorf("register job: %w", err)
	}
	if _, err := r.identity(s.Cgroup); err != nil {
		return trimtab.Invalidf("register job: there is no cgroup %s below %s", s.Cgroup, r.config.Root)
	}
	for name, other := range r.registered {
		if name != s.Name && Meet(s.Cgroup, other.Cgroup) {
			return trimtab.Invalidf("register job: cgroup %s is that of job %s, or one above or below it", s.Cgroup, name)
		}
	}
	old, had := r.registered[s.Name]
	if !had && len(r.registered) >= r.most() {
		return trimtab.Invalidf("register job: %d jobs are registered, limit %d", len(r.registered), r.most())
	}
	r.registered[s.Name] = s
	if err := r.store(); err != nil {
		delete(r.registered, s.Name)
		if had {
			r.registered[s.Name] = old
		}
		return fmt.Errorf("register job: %w", err)
	}
	if had && old.Cgroup != s.Cgroup {
		delete(r.progress, s.ID())
	}
	return nil
}

// Remove removes a job that registered itself: it continues with the limits from before, at most
// the declared minimum.
func (r *Registry) Remove(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove(strings.TrimPrefix(id, Workload+"/"))
}

func (r *Registry) remove(name string) error {
	s, ok := r.registered[name]
	if !ok {
		return fmt.Errorf("remove job %.60q: %w", name, ErrUnknown)
	}
	delete(r.registered, name)
	if err := r.store(); err != nil {
		r.registered[name] = s
		return fmt.Errorf("remove job: %w", err)
	}
	delete(r.progress, s.ID())
	return nil
}

// store replaces the file as a whole.
func (r *Registry) store() error {
	f := file{Version: 1, Jobs: []Spec{}}
	for _, name := range slices.Sorted(maps.Keys(r.registered)) {
		f.Jobs = append(f.Jobs, r.registered[name])
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return hostfs.ReplaceFile(r.path, b)
}

// Registered lists the jobs that registered themselves, in order of name.
func (r *Registry) Registered() (all []Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.registered)) {
		all = append(all, r.registered[name])
	}
	return all
}

func (r *Registry) most() int {
	if r.config.Most > 0 {
		return min(r.config.Most, MaxRegistered)
	}
	return MaxRegistered
}

// Find returns a job that registered itself by its name.
func (r *Registry) Find(name string) (s Spec, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok = r.registered[name]
	return s, ok
}

// There returns the registered jobs whose group exists, with the identity of the group; finished
// jobs are left out.
func (r *Registry) There() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]uint64{}
	for name, s := range r.registered {
		if p := r.progress[s.ID()]; p != nil && p.Last.Finished {
			continue
		}
		if id, err := r.identity(s.Cgroup); err == nil {
			out[name] = id
		}
	}
	return out
}

// Forget drops the registered jobs whose group is gone.
func (r *Registry) Forget() (gone []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.registered {
		if _, err := r.identity(s.Cgroup); errors.Is(err, os.ErrNotExist) && r.remove(name) == nil {
			gone = append(gone, s.ID())
		}
	}
	slices.Sort(gone)
	return gone
}

// identity distinguishes a group from earlier ones of its name.
func (r *Registry) identity(group string) (uint64, error) {
	info, err := os.Lstat(filepath.Join(r.config.Root, group))
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok {
		return 0, fmt.Errorf("%s is no directory: %w", group, os.ErrNotExist)
	}
	return st.Ino, nil
}

// Take applies a job's report. Unknown jobs are accepted: jobs of a pattern come and go.
func (r *Registry) Take(id string, now time.Time, report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(id).Take(now, report)
}

// Fail records why a report could not be read.
func (r *Registry) Fail(id string, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(id).Problem = problem
}

// Change changes a job's progress.
func (r *Registry) Change(id string, change func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.of(id))
}

// of returns the progress of a job, creating it if needed.
func (r *Registry) of(id string) *Progress {
	p := r.progress[id]
	if p == nil {
		p = new(Progress)
		r.progress[id] = p
	}
	return p
}

// Progress returns the progress of a job.
func (r *Registry) Progress(id string) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.progress[id]; p != nil {
		return *p
	}
	return Progress{}
}

// Keep drops the progress of all jobs but these.
func (r *Registry) Keep(ids map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.progress, func(id string, _ *Progress) bool { return !ids[id] })
}

// check returns an error for a specification that may not be a job.
func (r *Registry) check(s *Spec) error {
	bad := strings.IndexFunc(s.Name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c))
	})
	switch {
	case s.Name == "" || len(s.Name) > 100 || bad >= 0 || strings.ContainsAny(s.Name[:1], ".-"):
		return trimtab.Invalidf("job name %.60q: want 1 to 100 letters, digits, '.', '_', '-', the first a letter or digit", s.Name)
	case !filepath.IsLocal(s.Cgroup) || path.Clean(s.Cgroup) != s.Cgroup || s.Cgroup == "." || strings.ContainsAny(s.Cgroup, "\x00\n?*") || len(s.Cgroup) > 1024:
		return trimtab.Invalidf("cgroup %.60q: want a plain path below the root, such as batch.slice/train.scope", s.Cgroup)
	case s.File != "" && (!filepath.IsAbs(s.File) || path.Clean(s.File) != s.File || strings.ContainsAny(s.File, "\x00\n*") || len(s.File) > 1024):
		return trimtab.Invalidf("progress_file %.60q: want a plain absolute path", s.File)
	case s.Predict != "" && !slices.Contains(r.config.Predictions, s.Predict):
		return trimtab.Invalidf("predict %.60q: want one of %s", s.Predict, strings.Join(r.config.Predictions, ", "))
	}
	for _, of := range r.config.Reserved {
		if Meet(s.Cgroup, of) {
			return trimtab.Invalidf("cgroup %s is that of a declared workload or of speculative tasks (%s), or one above or below it", s.Cgroup, of)
		}
	}
	if of := Holds(s.Cgroup, r.config.Own); of != "" {
		return trimtab.Invalidf("cgroup %s holds trimtab itself or the system's first process, which are in %s", s.Cgroup, of)
	}
	return nil
}

// Holds returns the first of groups that is, or contains, group; "": none does.
func Holds(group string, groups []string) string {
	for _, of := range groups {
		if of == group || strings.HasPrefix(of, group+"/") {
			return of
		}
	}
	return ""
}

// Meet reports whether two paths, of which the second may have a *, can be the same
// or one above the other.
func Meet(group, pattern string) bool {
	a, b := strings.Split(group, "/"), strings.Split(pattern, "/")
	for i := range min(len(a), len(b)) {
		if ok, err := path.Match(escaped(b[i]), a[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// escaped leaves of a pattern only the *.
func escaped(part string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "?", `\?`).Replace(part)
}
