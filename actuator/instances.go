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

// MaxKnobs is the largest number of knobs of one actuator unless Config says otherwise; the
// actuator ignores further instances. MaxClusterKnobs is the same for an actuator that sets the
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
	// Open opens the knobs of one instance, one target for each resource. The actuator fills in
	// pool, host, workload and instance of their names.
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

// finder is a Finder with its last results.
type finder struct {
	Finder
	// there maps the name of each instance whose knobs are open to its ID.
	there map[string]uint64
	// again is the earliest time of the next look, on the boot clock.
	again time.Duration
	// problem is why the last look failed, or why it could not open all instances.
	problem string
}

// instances has the finders and opens and closes the knobs of instances.
type instances struct {
	*base
	knobs     *knobs
	baselines *baselines
	finders   []*finder
}

// lookAgainAfter is the wait after a look that found more instances than the actuator may
// hold: counting a million takes long.
const lookAgainAfter = time.Minute

// seek opens the knobs of new instances, and closes those of instances that are gone. An instance
// with a known name and another ID is a new one. With live it does so only for kinds that are
// [Kind].Live.
func (in *instances) seek(ctx context.Context, live bool) {
	for _, f := range in.finders {
		now := in.clock.boot()
		if now < f.again || live && !f.Live {
			continue
		}
		found, err := f.Find(ctx)
		if errors.Is(err, trimtab.ErrRefused) {
			f.again = saturate(now, lookAgainAfter)
		}
		if err == nil {
			in.settle(ctx, f, found)
			err = in.adopt(f, found)
		}
		in.reportFinder(f, err)
	}
}

// settle removes the instances that were not found.
func (in *instances) settle(ctx context.Context, f *finder, found []Instance) {
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
	left := in.tidy(ctx, slices.DeleteFunc(slices.Clone(in.knobs.all), func(h *managed) bool {
		return h.finder != f || !gone[h.Instance] || replaced[h.Instance]
	}))
	var batch []hostfs.Entry
	in.knobs.all = slices.DeleteFunc(in.knobs.all, func(h *managed) bool {
		if h.finder != f || !gone[h.Instance] {
			return false
		}
		if h.entry != nil && !left[h] {
			// There is nothing left to restore.
			batch = append(batch, hostfs.Entry{Key: h.entry.journalKey()})
		}
		h.entry = nil
		if h.block.touched != nil {
			batch = append(batch, hostfs.Entry{Key: h.block.touched.journalKey()})
		}
		in.logger.Info("instance is gone", "workload", h.Workload, "instance", h.Instance, "resource", h.Resource)
		if err := h.leave(); err != nil {
			in.logger.Warn("let go of an instance", "knob", h.Name(), "err", err)
		}
		return true
	})
	for name := range gone {
		delete(f.there, name)
	}
	in.knobs.drop(batch)
	in.notify()
}

// tidy restores the baselines of instances that are gone but whose limit still exists, such
// as the file with the number of workers of a stopped service. Otherwise the next instance
// there would begin with trimtab's value. It returns those that could not be restored;
// their baselines stay in the journal.
func (in *instances) tidy(ctx context.Context, gone []*managed) map[*managed]bool {
	left := map[*managed]bool{}
	gone = slices.DeleteFunc(gone, func(h *managed) bool {
		if h.entry == nil {
			return true
		}
		_, err := h.Knob.Read(ctx)
		return errors.Is(err, os.ErrNotExist)
	})
	in.baselines.restore(ctx, gone)
	for _, h := range gone {
		left[h] = h.entry != nil
	}
	return left
}

// leave closes the knob of an instance that is gone, and removes its lock file, which would
// otherwise stay for ever if the name never returns.
func (h *managed) leave() error {
	var err error
	if h.lock != nil {
		err = h.lock.Remove()
		h.lock = nil
	}
	return errors.Join(err, h.Knob.Close())
}

// adopt opens the knobs of new instances. If that fails, the next look tries again.
func (in *instances) adopt(f *finder, found []Instance) error {
	var errs []error
	for _, i := range found {
		if _, ok := f.there[i.Name]; ok {
			continue
		}
		targets, err := f.Open(i.Name)
		if err == nil {
			err = in.adoptOne(f, i, targets)
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

// adoptOne adds the knobs of an instance, all of them or none.
func (in *instances) adoptOne(f *finder, i Instance, targets []Target) error {
	var err error
	if n := len(in.knobs.all) + len(targets); n > in.config.MaxKnobs {
		err = fmt.Errorf("with it this host has %d knobs, at most %d are turned: %w", n, in.config.MaxKnobs, trimtab.ErrRefused)
	}
	added := make([]*managed, len(targets))
	for n, t := range targets {
		t.Workload, t.Instance = f.Workload, i.Name
		t.KnobID = in.config.here(t.KnobID)
		added[n] = newManaged(t)
		added[n].finder, added[n].id, added[n].block.released = f, i.ID, in.knobs.released[t.Workload]
		err = errors.Join(err, t.validate())
		if in.knobs.find(t.KnobID) != nil || slices.ContainsFunc(added[:n], func(h *managed) bool { return h.KnobID == t.KnobID }) {
			err = errors.Join(err, trimtab.Invalidf("%s is there twice", t.Name()))
		}
	}
	err = errors.Join(err, in.knobs.fits(added))
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
		in.knobs.insert(h)
		in.knobs.recall(h)
		in.logger.Info("instance came", "workload", h.Workload, "instance", h.Instance, "resource", h.Resource, "knob", h.Knob.String())
	}
	in.notify()
	return nil
}

// reportFinder logs and counts changes of a finder's problem.
func (in *instances) reportFinder(f *finder, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
		in.metrics.Counter("trimtab_actuator_find_errors_total").Inc()
	}
	if problem != f.problem {
		f.problem = problem
		in.notify()
		in.logger.Warn("instances", "workload", f.Workload, "there", len(f.there), "problem", problem)
	}
}

// troubles lists the problems of finders, as states of knobs without an instance.
func (in *instances) troubles() (all []trimtab.KnobState) {
	for _, f := range in.finders {
		if f.problem == "" {
			continue
		}
		for _, t := range f.Like {
			t.Workload = f.Workload
			all = append(all, trimtab.KnobState{KnobID: in.config.here(t.KnobID), Knob: f.Pattern, Min: t.Min, Max: t.Max, Problem: f.problem})
		}
	}
	return all
}
