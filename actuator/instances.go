package actuator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// MaxKnobs is how many knobs one actuator may hold unless Config says otherwise; further
// instances are not taken up. MaxClusterKnobs is the same for an actuator that sets the
// limits of a whole cluster.
const (
	MaxKnobs        = 4000
	MaxClusterKnobs = 12_000
)

// Finder finds the instances of one workload on this host, which come and go.
type Finder struct {
	Workload string
	// Find lists the instances that exist now. While it fails, the list stays as it was. If
	// there are too many, its error is trimtab.ErrRefused, and it is called again a minute
	// later.
	Find func(ctx context.Context) ([]Instance, error)
	// Open opens the knobs of one instance, one target a resource. Pool, host,
	// workload and instance of their names are filled in.
	Open func(name string) ([]Target, error)
	// Pattern is the location with its *. Like are the targets of any instance, without
	// Knob and instance name: while not all instances can be taken up, the holding lists
	// these with the problem.
	Pattern string
	Like    []Target
	// Live: see [Kind].Live.
	Live bool
}

// Instance is one running copy of a workload on this host.
type Instance struct {
	Name string
	// ID differs from that of every earlier instance of the same name.
	ID uint64
}

// finder is a Finder with what it found.
type finder struct {
	Finder
	// there maps the name of each instance whose knobs are open to its ID.
	there map[string]uint64
	// again is the earliest time of the next look, since boot.
	again time.Duration
	// problem is why the last look failed, or not all that it found was opened.
	problem string
}

// lookAgainAfter is the wait after a look that found more instances than the actuator may
// hold: counting a million takes long.
const lookAgainAfter = time.Minute

// seek opens the knobs of new instances, and closes those of instances that are gone. An
// instance with a known name and another ID is a new one.
func (a *Actuator) seek(ctx context.Context) { a.seekIn(ctx, a.finders) }

// seekLive is seek for the kinds that are [Kind].Live.
func (a *Actuator) seekLive(ctx context.Context) {
	a.seekIn(ctx, slices.DeleteFunc(slices.Clone(a.finders), func(f *finder) bool { return !f.Live }))
}

func (a *Actuator) seekIn(ctx context.Context, finders []*finder) {
	for _, f := range finders {
		now := a.clock.boot()
		if now < f.again {
			continue
		}
		found, err := f.Find(ctx)
		if errors.Is(err, trimtab.ErrRefused) {
			f.again = saturate(now, lookAgainAfter)
		}
		if err == nil {
			a.settle(ctx, f, found)
			err = a.takeUp(f, found)
		}
		a.reportFinder(f, err)
	}
}

// settle lets go of the instances that are not among those found.
func (a *Actuator) settle(ctx context.Context, f *finder, found []Instance) {
	gone := make(map[string]bool, len(f.there))
	for name := range f.there {
		gone[name] = true
	}
	replaced := map[string]bool{}
	for _, i := range found {
		if id, ok := f.there[i.Name]; ok && id == i.ID {
			delete(gone, i.Name)
		}
		replaced[i.Name] = true
	}
	if len(gone) == 0 {
		return
	}
	left := a.tidy(ctx, slices.DeleteFunc(slices.Clone(a.knobs), func(h *held) bool {
		return h.finder != f || !gone[h.Instance] || replaced[h.Instance]
	}))
	var batch []hostfs.Entry
	a.knobs = slices.DeleteFunc(a.knobs, func(h *held) bool {
		if h.finder != f || !gone[h.Instance] {
			return false
		}
		if h.entry != nil && !left[h] {
			// Nothing is left to restore, and nobody may give anything back to it.
			batch = append(batch, hostfs.Entry{Key: h.entry.journalKey()})
		}
		h.entry = nil
		if h.touched != nil {
			batch = append(batch, hostfs.Entry{Key: h.touched.journalKey()})
		}
		a.logger.Info("instance is gone", "workload", h.Workload, "instance", h.Instance, "resource", h.Resource)
		if err := h.leave(); err != nil {
			a.logger.Warn("let go of an instance", "knob", h.Name(), "err", err)
		}
		return true
	})
	for name := range gone {
		delete(f.there, name)
	}
	a.drop(batch)
	a.notify()
}

// tidy restores the baselines of instances that are gone but whose limit still exists, such
// as the file with the number of workers of a stopped service. Otherwise the next instance
// there would begin with trimtab's value. It returns those that could not be restored;
// their baselines stay in the journal.
func (a *Actuator) tidy(ctx context.Context, gone []*held) map[*held]bool {
	left := map[*held]bool{}
	gone = slices.DeleteFunc(gone, func(h *held) bool {
		if h.entry == nil {
			return true
		}
		_, err := h.Knob.Read(ctx)
		return errors.Is(err, os.ErrNotExist)
	})
	a.restoreHeld(ctx, gone)
	for _, h := range gone {
		left[h] = h.entry != nil
	}
	return left
}

// recall takes over what the journal has of an instance that comes again, where it
// could not be put back when it went.
func (a *Actuator) recall(h *held) {
	a.recallTouched(h)
	e := entry{KnobID: h.KnobID}
	b, ok := a.journal.Get(e.journalKey())
	if !ok {
		return
	}
	var s stored
	if err := s.read(e.journalKey(), b); err != nil {
		a.logger.Warn("read the baseline of an instance that comes again", "err", err)
		return
	}
	a.adopt(s.entries)
}

// drop removes the journal's entries of instances that are gone. If that fails, the next
// restore removes them.
func (a *Actuator) drop(entries []hostfs.Entry) {
	if len(entries) == 0 {
		return
	}
	if err := a.journal.Append(entries...); err != nil {
		a.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		a.logger.Error("drop the baselines of instances that are gone", "err", err)
	}
}

// leave closes the knob of an instance that is gone, and removes its lock file, which would
// otherwise stay for ever if the name never returns.
func (h *held) leave() error {
	var err error
	if h.lock != nil {
		err = h.lock.Remove()
		h.lock = nil
	}
	return errors.Join(err, h.Knob.Close())
}

// takeUp opens the knobs of the instances that are new. What cannot be opened is
// tried again at the next look.
func (a *Actuator) takeUp(f *finder, found []Instance) error {
	var errs []error
	for _, i := range found {
		if _, ok := f.there[i.Name]; ok {
			continue
		}
		targets, err := f.Open(i.Name)
		if err == nil {
			err = a.takeOne(f, i, targets)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("instance %s: %w", i.Name, err))
		}
	}
	if len(errs) > 1 {
		return fmt.Errorf("%w, and %d more", errs[0], len(errs)-1)
	}
	return errors.Join(errs...)
}

// takeOne adds the knobs of an instance, all or none of them.
func (a *Actuator) takeOne(f *finder, i Instance, targets []Target) error {
	var err error
	if n := len(a.knobs) + len(targets); n > a.config.MaxKnobs {
		err = fmt.Errorf("with it this host has %d knobs, at most %d are turned: %w", n, a.config.MaxKnobs, trimtab.ErrRefused)
	}
	added := make([]*held, len(targets))
	for n, t := range targets {
		t.Workload, t.Instance = f.Workload, i.Name
		t.KnobID = a.config.here(t.KnobID)
		added[n] = newHeld(t)
		added[n].finder, added[n].id, added[n].released = f, i.ID, a.released[t.Workload]
		err = errors.Join(err, t.validate())
		if a.find(t.KnobID) != nil || slices.ContainsFunc(added[:n], func(h *held) bool { return h.KnobID == t.KnobID }) {
			err = errors.Join(err, trimtab.Invalidf("%s is there twice", t.Name()))
		}
	}
	err = errors.Join(err, a.fits(added))
	if err != nil {
		for _, t := range targets {
			if t.Knob != nil {
				err = errors.Join(err, t.Knob.Close())
			}
		}
		return err
	}
	f.there[i.Name] = i.ID
	for _, h := range added {
		a.insert(h)
		a.recall(h)
		a.logger.Info("instance came", "workload", h.Workload, "instance", h.Instance, "resource", h.Resource, "knob", h.Knob.String())
	}
	a.notify()
	return nil
}

// reportFinder logs when what stops a finder changes, and counts.
func (a *Actuator) reportFinder(f *finder, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
		a.metrics.Counter("trimtab_actuator_find_errors_total").Inc()
	}
	if problem != f.problem {
		f.problem = problem
		a.notify()
		a.logger.Warn("instances", "workload", f.Workload, "there", len(f.there), "problem", problem)
	}
}

// troubles lists what stops finders, as knobs of no instance that were never read.
func (a *Actuator) troubles() (all []trimtab.KnobState) {
	for _, f := range a.finders {
		if f.problem == "" {
			continue
		}
		for _, t := range f.Like {
			t.Workload = f.Workload
			all = append(all, trimtab.KnobState{KnobID: a.config.here(t.KnobID), Knob: f.Pattern, Min: t.Min, Max: t.Max, Problem: f.problem})
		}
	}
	return all
}

// newHeld returns a knob of which nothing is known yet.
func newHeld(t Target) *held {
	h := &held{Target: t, named: t.Knob.String(), lowered: never}
	if u, ok := t.Knob.(Unified); ok {
		h.unit = u.SystemdUnit()
	}
	return h
}

// insert adds a knob and keeps the list sorted for find.
func (a *Actuator) insert(h *held) {
	i, _ := a.place(h.KnobID)
	a.knobs = slices.Insert(a.knobs, i, h)
}

// place returns where the knob of that name is, or would be.
func (a *Actuator) place(id trimtab.KnobID) (i int, there bool) {
	return slices.BinarySearchFunc(a.knobs, id, func(h *held, id trimtab.KnobID) int { return h.Compare(id) })
}

// find returns the knob of that name, or nil.
func (a *Actuator) find(id trimtab.KnobID) *held {
	if i, ok := a.place(id); ok {
		return a.knobs[i]
	}
	return nil
}
