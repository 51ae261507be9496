package actuator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// owner is the content of a knob's lock file. It names the process that has the lock, or had it
// last. The lock shows whether that process lives; the content says where its journal is.
type owner struct {
	PID int `json:"pid"`
	// Dir is the directory of its journal.
	Dir string `json:"dir"`
	trimtab.KnobID
	Location string    `json:"place"`
	Since    time.Time `json:"since"`
}

func (o *owner) String() string {
	return fmt.Sprintf("process %d (storage %s, pool %s, workload %s) since %s",
		o.PID, filepath.Dir(o.Dir), o.Pool, o.Workload, o.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// readOwner parses the content of a lock file; invalid content gives the zero owner.
func readOwner(text []byte) (o owner) {
	if json.Unmarshal(text, &o) != nil {
		return owner{}
	}
	return o
}

// readMark reads the content of a lock file.
func readMark(path string) owner {
	b, err := hostfs.ReadFile(path, hostfs.MaxRead)
	if err != nil {
		return owner{}
	}
	return readOwner(b)
}

// DefaultLockDir returns the default directory of the locks of knobs, which is the same for all
// processes of one user, whatever their storage.
func DefaultLockDir() string {
	const system = "/run/trimtab"
	if hostfs.MakeWritable(system) {
		return system
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "trimtab")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("trimtab-%d", os.Getuid()))
}

// lockPath returns the path of the lock file for a resource at a location.
func lockPath(dir, resource, place string) string {
	sum := sha256.Sum256([]byte(resource + "\x00" + place))
	return filepath.Join(dir, filepath.Base(resource)+"-"+hex.EncodeToString(sum[:8])+".lock")
}

// location returns the knob's location; "": unknown.
func (t *Traits) location() string {
	if t.Location == nil {
		return ""
	}
	if place, err := t.Location(); err == nil {
		return place
	}
	return ""
}

// lockKnob takes the lock of a knob. It returns no lock, and no error, without a lock directory,
// for a knob without a location, and for one that is gone.
func lockKnob(ctx context.Context, dir, resource string, can *Traits, wait time.Duration) (lock *hostfs.Lock, last owner, place string, err error) {
	if dir == "" || can.Location == nil {
		return nil, owner{}, "", nil
	}
	if place, err = can.Location(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, owner{}, "", err
	}
	// The directory may have been removed: /run is empty after a boot. A knob that is gone has
	// another error.
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, owner{}, "", fmt.Errorf("make directory of locks: %w", err)
	}
	path := lockPath(dir, resource, place)
	lock, err = hostfs.AcquireFile(ctx, path, wait)
	return lock, readMark(path), place, err
}

// claim makes sure that only this process sets the knob, and takes over the baseline of an owner
// that died. It returns why this process may not set the knob; "": it may.
func (ks *knobs) claim(ctx context.Context, h *managed) string {
	if h.lock != nil && h.lock.There() {
		return ""
	}
	if h.lock != nil { // the lock file was removed: another process may have created it again
		h.lock.Close()
		h.lock = nil
	}
	why := ""
	if ks.awaits(h) {
		why = "what an earlier configuration set there is put back first"
	} else if err := ks.own(ctx, h); err != nil {
		why = err.Error()
	}
	if why != h.block.contested {
		h.block.contested = why
		ks.logger.Info("owner of knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", why)
		ks.notify()
	}
	return why
}

// awaits reports whether the knob's journal entry belongs to another kind of knob, and is not
// restored yet.
func (ks *knobs) awaits(h *managed) bool {
	return slices.ContainsFunc(ks.orphans, func(e *entry) bool { return ks.findAny(ks.config.here(e.KnobID)) == h })
}

func (ks *knobs) own(ctx context.Context, h *managed) error {
	lock, last, place, err := lockKnob(ctx, ks.config.LockDir, h.Knob.Resource(), &h.can, 0)
	switch {
	case errors.Is(err, trimtab.ErrRefused) && last.PID != 0:
		return fmt.Errorf("owned by %v: stop that one, or take the workload out of one of the two configurations", &last)
	case err != nil:
		return fmt.Errorf("cannot be locked: %w", err)
	case lock == nil:
		return nil
	}
	if err := ks.inherit(ctx, h, &last, place); err != nil {
		lock.Close()
		return err
	}
	mark, err := json.Marshal(owner{os.Getpid(), ks.config.Dir, h.KnobID, place, ks.clock.wall()})
	if err == nil {
		err = lock.SetContent(mark)
	}
	if err != nil {
		lock.Close()
		return fmt.Errorf("cannot be marked as owned: %w", err)
	}
	h.lock = lock
	return nil
}

// inherit takes over the baseline of the last owner, which is dead and has not restored it, in
// place of the value that it left behind. If the last owner has restored it, an older entry in this
// actuator's own journal counts only while the knob still has the value written then.
func (ks *knobs) inherit(ctx context.Context, h *managed, last *owner, place string) error {
	if last.Dir == "" || last.Dir == ks.config.Dir {
		return nil
	}
	err := hostfs.JournalReadable(last.Dir)
	s := stored{}
	if err == nil {
		if s, err = readDir(last.Dir); errors.Is(err, os.ErrNotExist) {
			err = nil // there is nothing to take over
		}
	}
	if err != nil {
		return fmt.Errorf("was owned by %v, whose baseline cannot be read: run `trimtab restore --storage.path %s`: %w", last, filepath.Dir(last.Dir), err)
	}
	old := s.at(place, h.Resource, ks.config.Reopen)
	switch {
	case old != nil && old.ID != 0 && h.id != 0 && old.ID != h.id: // of an instance that is gone
	case old != nil && !h.takesOver(old.Undo):
		return fmt.Errorf("was owned by %v, which turned something else there: run `trimtab restore --storage.path %s`", last, filepath.Dir(last.Dir))
	case old != nil:
		ks.recallUndo(h, old.Undo)
		e := &entry{KnobID: h.KnobID, ID: h.id, Undo: h.Knob.Undo(), Baseline: old.Baseline, Wrote: old.Wrote}
		if h.can.Restore != nil && h.can.Recall == nil {
			e.Undo = old.Undo // it describes the original state
		}
		if err := ks.journal.Append(put(e.journalKey(), e)); err != nil {
			return fmt.Errorf("take baseline over from %v: %w", last, err)
		}
		h.entry = e
		ks.logger.Warn("took over the baseline of an owner that died", "workload", h.Workload, "resource", h.Resource, "owner", last.String(), "baseline", e.Baseline.String())
	case h.entry != nil:
		if v, err := h.Knob.Read(ctx); err != nil || h.entry.ours(v) {
			return nil
		}
		if err := ks.journal.Append(hostfs.Entry{Key: h.entry.journalKey()}); err != nil {
			return fmt.Errorf("drop baseline from before %v: %w", last, err)
		}
		h.entry = nil
	}
	return nil
}

// at returns the journal entry for the knob at a location, or nil.
func (s *stored) at(place, resource string, reopen func([]byte) (Knob, error)) *entry {
	for _, e := range s.entries {
		if e.Resource == resource && locationOf(e, reopen) == place {
			return e
		}
	}
	return nil
}

// locationOf returns the location of the knob of a journal entry; "": unknown.
func locationOf(e *entry, reopen func([]byte) (Knob, error)) string {
	k, err := reopen(e.Undo)
	if err != nil {
		return ""
	}
	defer func() { _ = k.Close() }() // it was opened only to read
	can := k.Traits()
	return can.location()
}

// disown releases the lock of a knob that is set only when a person applies a plan.
func (h *managed) disown() {
	if h.Mode != trimtab.Act && h.entry == nil && h.lock != nil {
		h.lock.Close()
		h.lock = nil
	}
}

// letGo releases the locks of all knobs.
func (ks *knobs) letGo() (err error) {
	all := ks.all
	if p := ks.parent; p != nil {
		all = append(slices.Clone(all), p)
	}
	for _, h := range all {
		if h.lock != nil {
			err = errors.Join(err, h.lock.Close())
			h.lock = nil
		}
	}
	return err
}

// lastOwner takes the lock of a knob for a restore from the journal in dir. ours is false if
// another process has taken over the knob and its baseline.
func lastOwner(ctx context.Context, locks, dir, resource string, can *Traits, reopen func([]byte) (Knob, error)) (lock *hostfs.Lock, ours bool, why error) {
	for deadline := hostfs.BootTime() + lockWait; ; {
		lock, last, place, err := lockKnob(ctx, locks, resource, can, 20*time.Millisecond)
		switch {
		case err == nil && lock == nil: // the knob has no lock
			return nil, true, nil
		case err == nil && (last.Dir == dir || last.Dir == ""):
			return lock, true, nil
		case err == nil:
			// The last owner has restored the knob, or left that to its journal.
			if s, err := readDir(last.Dir); err == nil && s.at(place, resource, reopen) != nil {
				lock.Close()
				return nil, false, fmt.Errorf("was taken over by %v, whose journal has its baseline", &last)
			}
			return lock, true, nil
		case !errors.Is(err, trimtab.ErrRefused):
			return nil, true, err
		case last.PID != 0 && last.Dir != dir:
			return nil, false, fmt.Errorf("owned by %v, which has its baseline", &last)
		case hostfs.BootTime() > deadline || ctx.Err() != nil:
			return nil, true, err
		}
		// The owner may not be quite dead, or another process may be about to take over.
	}
}

// Locations returns the locations that have a lock file for one of the resources, and for each whether
// it is in use: by a live process, or by the journal of a dead one that still has a baseline to
// restore. A kind whose knobs leave something behind calls it before it removes what is not in use.
func Locations(ctx context.Context, locks string, resources ...string) (map[string]bool, error) {
	entries, err := os.ReadDir(locks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list locks of knobs: %w", err)
	}
	places := map[string]bool{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list locks of knobs: %w", err)
		}
		path := filepath.Join(locks, e.Name())
		mark := readMark(path)
		if !strings.HasSuffix(e.Name(), ".lock") || !slices.Contains(resources, mark.Resource) || mark.Location == "" {
			continue
		}
		places[mark.Location] = places[mark.Location] || hostfs.Locked(ctx, path) || mark.pending()
	}
	return places, nil
}

// journalsOf returns the journals whose owner, dead or alive, was the last to change a knob that
// still exists.
func journalsOf(locks string) (map[string]bool, error) {
	entries, err := os.ReadDir(locks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list locks of knobs: %w", err)
	}
	journals := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		mark := readMark(filepath.Join(locks, e.Name()))
		if mark.Dir == "" || journals[mark.Dir] {
			continue
		}
		_, err := os.Stat(mark.Location)
		journals[mark.Dir] = !errors.Is(err, os.ErrNotExist)
	}
	return journals, nil
}

// pending reports whether the journal of an owner has a baseline of its knob. A journal that cannot
// be read may have one.
func (o *owner) pending() bool {
	s, err := readDir(o.Dir)
	if err != nil {
		return o.Dir != "" && !errors.Is(err, os.ErrNotExist)
	}
	return !s.whole() || slices.ContainsFunc(s.entries, func(e *entry) bool {
		return e.Resource == o.Resource && e.Workload == o.Workload && e.Instance == o.Instance
	})
}

// maxWritten bounds the result of Turned.
const maxWritten = 100

// Written lists the knobs that the actuator with a journal in dir was the last to change, by the
// lock files. People need it if the journal is lost. A listed knob may have its baseline already.
func Written(locks, dir string) (all []string) {
	entries, err := os.ReadDir(locks)
	if err != nil {
		return nil
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for _, e := range entries {
		if mark := readMark(filepath.Join(locks, e.Name())); mark.Dir == dir && mark.Location != "" && len(all) < maxWritten {
			all = append(all, fmt.Sprintf("%s of %s: %s", mark.Resource, mark.Name(), mark.Location))
		}
	}
	return all
}
