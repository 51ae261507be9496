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
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Placed is a knob that other processes on this host may find, too: one of them
// at a time turns it.
type Placed interface {
	Knob
	// Place is the absolute path of what is turned, without links in it: the
	// same for all that turn it.
	Place() (string, error)
}

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

// lockKnob takes the lock of a knob. Without a lock directory, of a knob that is
// nowhere, and of one that is gone there is none, and no error.
func lockKnob(ctx context.Context, dir string, k Knob, wait time.Duration) (lock *hostfs.Lock, last owner, place string, err error) {
	p, ok := k.(Placed)
	if dir == "" || !ok {
		return nil, owner{}, "", nil
	}
	if place, err = p.Place(); err != nil {
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
	path := lockPath(dir, k.Resource(), place)
	lock, err = hostfs.TakeFile(ctx, path, wait)
	return lock, readMark(path), place, err
}

// claim makes sure that this process alone turns the knob, and takes over the
// baseline of an owner that died. It returns why the knob is not ours.
func (a *Actuator) claim(ctx context.Context, h *held) string {
	if h.lock != nil && h.lock.There() {
		return ""
	}
	if h.lock != nil { // somebody removed the file: another may have made it anew
		h.lock.Close()
		h.lock = nil
	}
	why := ""
	if a.awaits(h) {
		why = "what an earlier configuration set there is put back first"
	} else if err := a.own(ctx, h); err != nil {
		why = err.Error()
	}
	if why != h.contested {
		h.contested = why
		a.logger.Info("owner of knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", why)
		a.notify()
	}
	return why
}

// awaits reports whether what the journal says of a knob is another kind's, and not yet put back.
func (a *Actuator) awaits(h *held) bool {
	return slices.ContainsFunc(a.orphans, func(e *entry) bool { return a.heldOf(a.config.here(e.KnobID)) == h })
}

func (a *Actuator) own(ctx context.Context, h *held) error {
	lock, last, place, err := lockKnob(ctx, a.config.LockDir, h.Knob, 0)
	switch {
	case errors.Is(err, trimtab.ErrRefused) && last.PID != 0:
		return fmt.Errorf("owned by %v: stop that one, or take the workload out of one of the two configurations", &last)
	case err != nil:
		return fmt.Errorf("cannot be locked: %w", err)
	case lock == nil:
		return nil
	}
	if err := a.inherit(ctx, h, &last, place); err != nil {
		lock.Close()
		return err
	}
	mark, err := json.Marshal(owner{os.Getpid(), a.config.Dir, h.KnobID, place, a.clock.wall()})
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
func (a *Actuator) inherit(ctx context.Context, h *held, last *owner, place string) error {
	if last.Dir == "" || last.Dir == a.config.Dir {
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
	old := s.at(place, h.Resource, a.config.Reopen)
	switch {
	case old != nil && old.ID != 0 && h.id != 0 && old.ID != h.id: // of an instance that is gone
	case old != nil && !takesOver(h.Knob, old.Undo):
		return fmt.Errorf("was owned by %v, which turned something else there: run `trimtab restore --storage.path %s`", last, filepath.Dir(last.Dir))
	case old != nil:
		a.recallUndo(h, old.Undo)
		e := &entry{KnobID: h.KnobID, ID: h.id, Undo: h.Knob.Undo(), Baseline: old.Baseline, Wrote: old.Wrote}
		if _, more := h.Knob.(Restorer); more && !recalls(h.Knob) {
			e.Undo = old.Undo // it says what was there
		}
		if err := a.journal.Append(put(e.journalKey(), e)); err != nil {
			return fmt.Errorf("take baseline over from %v: %w", last, err)
		}
		h.entry = e
		a.logger.Warn("took over the baseline of an owner that died", "workload", h.Workload, "resource", h.Resource, "owner", last.String(), "baseline", e.Baseline.String())
	case h.entry != nil:
		if v, err := h.Knob.Read(ctx); err != nil || h.entry.ours(v) {
			return nil
		}
		if err := a.journal.Append(hostfs.Entry{Key: h.entry.journalKey()}); err != nil {
			return fmt.Errorf("drop baseline from before %v: %w", last, err)
		}
		h.entry = nil
	}
	return nil
}

func recalls(k Knob) bool { _, ok := k.(Recaller); return ok }

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
	p, ok := k.(Placed)
	if !ok {
		return ""
	}
	place, err := p.Place()
	if err != nil {
		return ""
	}
	return place
}

// disown lets go of a knob that is turned only when a person applies a plan.
func (h *held) disown() {
	if h.Mode != trimtab.Act && h.entry == nil && h.lock != nil {
		h.lock.Close()
		h.lock = nil
	}
}

// letGo lets go of all knobs.
func (a *Actuator) letGo() (err error) {
	all := a.knobs
	if p := a.parent; p != nil {
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
func lastOwner(ctx context.Context, locks, dir string, k Knob, reopen func([]byte) (Knob, error)) (lock *hostfs.Lock, ours bool, why error) {
	for deadline := hostfs.BootTime() + lockWait; ; {
		lock, last, place, err := lockKnob(ctx, locks, k, 20*time.Millisecond)
		switch {
		case err == nil && lock == nil: // nothing to lock
			return nil, true, nil
		case err == nil && (last.Dir == dir || last.Dir == ""):
			return lock, true, nil
		case err == nil:
			// Whoever had it last has restored it, or left that to its journal.
			if s, err := readDir(last.Dir); err == nil && s.at(place, k.Resource(), reopen) != nil {
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
