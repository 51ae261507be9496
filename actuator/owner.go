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

// owner is the mark in a knob's lock file: who has the lock, or had it last. The
// lock says whether it lives; the mark says where its baseline is.
type owner struct {
	PID int `json:"pid"`
	// Dir is its journal.
	Dir string `json:"dir"`
	trimtab.KnobID
	Place string    `json:"place"`
	Since time.Time `json:"since"`
}

func (o *owner) String() string {
	return fmt.Sprintf("process %d (storage %s, pool %s, workload %s) since %s",
		o.PID, filepath.Dir(o.Dir), o.Pool, o.Workload, o.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// readOwner reads a mark; what cannot be read is nobody's.
func readOwner(text []byte) (o owner) {
	if json.Unmarshal(text, &o) != nil {
		return owner{}
	}
	return o
}

// readMark reads the mark in a lock file.
func readMark(path string) owner {
	b, err := hostfs.ReadFile(path, hostfs.MaxRead)
	if err != nil {
		return owner{}
	}
	return readOwner(b)
}

// DefaultLockDir is where the locks of knobs are, unless told otherwise: the
// same for all processes of one user, whatever their storage.
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

// lockPath is the lock file of one resource of one place.
func lockPath(dir, resource, place string) string {
	sum := sha256.Sum256([]byte(resource + "\x00" + place))
	return filepath.Join(dir, filepath.Base(resource)+"-"+hex.EncodeToString(sum[:8])+".lock")
}

// place is where the knob is; "" when that cannot be told.
func (t *Traits) place() string {
	if t.Place == nil {
		return ""
	}
	if place, err := t.Place(); err == nil {
		return place
	}
	return ""
}

// lockKnob takes the lock of a knob. Without a lock directory, of a knob that is
// nowhere, and of one that is gone there is none, and no error.
func lockKnob(ctx context.Context, dir, resource string, can *Traits, wait time.Duration) (lock *hostfs.Lock, last owner, place string, err error) {
	if dir == "" || can.Place == nil {
		return nil, owner{}, "", nil
	}
	if place, err = can.Place(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, owner{}, "", err
	}
	// It may be gone since: /run does not outlive a boot. That the knob is gone
	// is another error.
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, owner{}, "", fmt.Errorf("make directory of locks: %w", err)
	}
	path := lockPath(dir, resource, place)
	lock, err = hostfs.TakeFile(ctx, path, wait)
	return lock, readMark(path), place, err
}

// claim makes sure that this process alone turns the knob, and takes over the
// baseline of an owner that died. It returns why the knob is not ours.
func (ks *knobs) claim(ctx context.Context, h *held) string {
	if h.lock != nil && h.lock.There() {
		return ""
	}
	if h.lock != nil { // somebody removed the file: another may have made it anew
		h.lock.Close()
		h.lock = nil
	}
	why := ""
	if ks.awaits(h) {
		why = "what an earlier configuration set there is put back first"
	} else if err := ks.own(ctx, h); err != nil {
		why = err.Error()
	}
	if why != h.contested {
		h.contested = why
		ks.logger.Info("owner of knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", why)
		ks.notify()
	}
	return why
}

// awaits reports whether what the journal says of a knob is another kind's, and not yet put back.
func (ks *knobs) awaits(h *held) bool {
	return slices.ContainsFunc(ks.orphans, func(e *entry) bool { return ks.heldOf(ks.config.here(e.KnobID)) == h })
}

func (ks *knobs) own(ctx context.Context, h *held) error {
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

// inherit takes over what the last owner, which is dead, wrote and has not
// restored: its baseline is the knob's, not the value that it left behind. Where
// it has restored, what this actuator's own journal says of an earlier time
// counts only while the knob still holds what it wrote then.
func (ks *knobs) inherit(ctx context.Context, h *held, last *owner, place string) error {
	if last.Dir == "" || last.Dir == ks.config.Dir {
		return nil
	}
	err := hostfs.JournalReadable(last.Dir)
	s := stored{}
	if err == nil {
		if s, err = readDir(last.Dir); errors.Is(err, os.ErrNotExist) {
			err = nil // nothing to take over is left
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
			e.Undo = old.Undo // it says what was there
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

// at returns what a journal says of the knob at a place, or nil.
func (s *stored) at(place, resource string, reopen func([]byte) (Knob, error)) *entry {
	for _, e := range s.entries {
		if e.Resource == resource && placeOf(e, reopen) == place {
			return e
		}
	}
	return nil
}

// placeOf returns where the knob of a journal's entry is; "" when that cannot be
// told.
func placeOf(e *entry, reopen func([]byte) (Knob, error)) string {
	k, err := reopen(e.Undo)
	if err != nil {
		return ""
	}
	defer func() { _ = k.Close() }() // it was only asked
	can := k.Traits()
	return can.place()
}

// disown lets go of a knob that is turned only when a person applies a plan.
func (h *held) disown() {
	if h.Mode != trimtab.Act && h.entry == nil && h.lock != nil {
		h.lock.Close()
		h.lock = nil
	}
}

// letGo lets go of all knobs.
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

// lastOwner takes the lock of a knob for a restore from the journal in dir. ours
// is false when another process has taken it over, and the baseline with it.
func lastOwner(ctx context.Context, locks, dir, resource string, can *Traits, reopen func([]byte) (Knob, error)) (lock *hostfs.Lock, ours bool, why error) {
	for deadline := hostfs.BootTime() + lockWait; ; {
		lock, last, place, err := lockKnob(ctx, locks, resource, can, 20*time.Millisecond)
		switch {
		case err == nil && lock == nil: // nothing to lock
			return nil, true, nil
		case err == nil && (last.Dir == dir || last.Dir == ""):
			return lock, true, nil
		case err == nil:
			// Whoever had it last has restored it, or left that to its journal.
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
		// The owner is not quite dead, or another is about to take over.
	}
}

// Places tells, of each place that was locked in a directory of locks for one of some
// resources, whether somebody has it: a process that lives, or the journal of one that
// died, which still has a baseline to restore. A kind whose knobs leave something behind
// asks before it removes what nobody has.
func Places(ctx context.Context, locks string, resources ...string) (map[string]bool, error) {
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
		if !strings.HasSuffix(e.Name(), ".lock") || !slices.Contains(resources, mark.Resource) || mark.Place == "" {
			continue
		}
		places[mark.Place] = places[mark.Place] || hostfs.Taken(ctx, path) || mark.pending()
	}
	return places, nil
}

// journalsOf tells of which journals the owner, dead or alive, turned something last that
// is still there.
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
		_, err := os.Stat(mark.Place)
		journals[mark.Dir] = !errors.Is(err, os.ErrNotExist)
	}
	return journals, nil
}

// pending reports whether the journal of an owner has a baseline of its knob. One that is
// there and cannot be read may have one.
func (o *owner) pending() bool {
	s, err := readDir(o.Dir)
	if err != nil {
		return o.Dir != "" && !errors.Is(err, os.ErrNotExist)
	}
	return !s.whole() || slices.ContainsFunc(s.entries, func(e *entry) bool {
		return e.Resource == o.Resource && e.Workload == o.Workload && e.Instance == o.Instance
	})
}

// maxTurned bounds what Turned lists.
const maxTurned = 100

// Turned lists what the actuator with a journal in dir turned last, by its marks in a
// directory of locks: for people, where the journal is lost. It may be at its baseline.
func Turned(locks, dir string) (all []string) {
	entries, err := os.ReadDir(locks)
	if err != nil {
		return nil
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for _, e := range entries {
		if mark := readMark(filepath.Join(locks, e.Name())); mark.Dir == dir && mark.Place != "" && len(all) < maxTurned {
			all = append(all, fmt.Sprintf("%s of %s: %s", mark.Resource, mark.Name(), mark.Place))
		}
	}
	return all
}
