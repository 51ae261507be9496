package actuator

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// knobs has the knobs of the host, with their state.
type knobs struct {
	*base
	fence *fence
	// all are the declared knobs and those of instances, ordered by name.
	all []*managed
	// parent is the parent of the pool's groups; nil: none is declared.
	parent *managed
	// orphans are journal entries without a knob that are not restored yet.
	orphans []*entry
	// released are the workloads that a person released from trimtab's control.
	released map[string]bool
}

// insert adds a knob and keeps the list sorted for find.
func (ks *knobs) insert(h *managed) {
	i, _ := ks.index(h.KnobID)
	ks.all = slices.Insert(ks.all, i, h)
}

// index returns the index of the knob with that name, or the index at which it would be inserted.
func (ks *knobs) index(id trimtab.KnobID) (i int, there bool) {
	return slices.BinarySearchFunc(ks.all, id, func(h *managed, id trimtab.KnobID) int { return h.Compare(id) })
}

// find returns the knob with that name, or nil.
func (ks *knobs) find(id trimtab.KnobID) *managed {
	if i, ok := ks.index(id); ok {
		return ks.all[i]
	}
	return nil
}

// findAny is find, including the parent group's knob.
func (ks *knobs) findAny(id trimtab.KnobID) *managed {
	if p := ks.parent; p != nil && p.KnobID == id {
		return p
	}
	return ks.find(id)
}

// restorable returns all knobs that a restore may set, including the parent group's. restoreAll
// raises that one first and lowers it last.
func (ks *knobs) restorable() []*managed {
	if p := ks.parent; p != nil && p.entry != nil {
		return append(slices.Clone(ks.all), p)
	}
	return ks.all
}

// holds reports whether a knob was written and not restored.
func (ks *knobs) holds() bool {
	p := ks.parent
	return p != nil && p.journaled() || slices.ContainsFunc(ks.all, (*managed).journaled)
}

// where returns the knobs for which is returns true.
func (ks *knobs) where(is func(*managed) bool) (all []*managed) {
	for _, h := range ks.all {
		if is(h) {
			all = append(all, h)
		}
	}
	return all
}

// journaled reports whether the knob was written, and not restored since.
func (h *managed) journaled() bool { return h.entry != nil }

// sumWith returns the sum of the targets that share the capacity, with h at v.
func (ks *knobs) sumWith(h *managed, v trimtab.Amount) float64 {
	sum := 0.0
	for _, k := range ks.all {
		switch {
		case k == h:
			sum += k.atMost(v)
		case !k.counts() || k.Resource != h.Resource:
		case !k.known:
			sum += k.Max
		case k.takesLeft():
			sum += k.Min
		default:
			sum += k.atMost(k.now)
		}
	}
	return sum
}

// pace returns the lowest write rate among the knobs' servers, in writes a second; 0: no server has
// a limit.
func (ks *knobs) pace() float64 {
	least := 0.0
	for _, h := range ks.all {
		if v := h.can.Pace; v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}

// above returns the value of the parent group's quota.
func (ks *knobs) above() trimtab.Amount {
	if ks.parent == nil {
		return trimtab.Unlimited()
	}
	return ks.parent.now
}

// adopt assigns the journal's entries to their knobs, and returns those without a knob. An instance
// that was made again under the same name has nothing to restore.
func (ks *knobs) adopt(entries []*entry) (orphans []*entry) {
	var gone []hostfs.Entry
	for _, e := range entries {
		h := ks.findAny(ks.config.here(e.KnobID))
		switch {
		case h != nil && h.id != e.ID && e.ID != 0:
			gone = append(gone, hostfs.Entry{Key: e.journalKey()})
		case h != nil && h.Mode == trimtab.Act && h.takesOver(e.Undo):
			h.entry = e.scaled(&h.can)
			ks.recallUndo(h, e.Undo)
		default:
			orphans = append(orphans, e)
		}
	}
	ks.drop(gone)
	return orphans
}

// takesOver reports whether this knob sets the same limit as the knob that undo describes.
func (h *managed) takesOver(undo []byte) bool { return h.can.TakesOver == nil || h.can.TakesOver(undo) }

// recallUndo passes undo to a knob that has Recall.
func (ks *knobs) recallUndo(h *managed, undo []byte) {
	if h.can.Recall == nil {
		return
	}
	if err := h.can.Recall(undo); err != nil {
		ks.logger.Warn("what the journal says of a knob cannot be read", "knob", h.Knob.String(), "err", err)
	}
}

// recall assigns the journal entry to an instance that returned, if its baseline could not be
// restored when it left.
func (ks *knobs) recall(h *managed) {
	ks.recallTouched(h)
	e := entry{KnobID: h.KnobID}
	b, ok := ks.journal.Get(e.journalKey())
	if !ok {
		return
	}
	var s stored
	if err := s.read(e.journalKey(), b); err != nil {
		ks.logger.Warn("read the baseline of an instance that comes again", "err", err)
		return
	}
	ks.adopt(s.entries)
}

// drop removes the journal's entries of instances that are gone. If that fails, the next
// restore removes them.
func (ks *knobs) drop(entries []hostfs.Entry) {
	if len(entries) > 0 {
		_ = ks.store("drop the baselines of instances that are gone", entries...)
	}
}

// managed is one knob with its state.
type managed struct {
	Target
	// can is Knob.Traits(), named is Knob.String(), and unit is the result of can.Unit.
	can         Traits
	named, unit string
	fresh       freshness
	// finder is the one that found the knob, as an instance with the ID id; nil: the knob is
	// declared.
	finder *finder
	id     uint64
	// entry is the knob's journal entry; nil: it was never written, or was restored since.
	entry *entry
	reading
	falls history
	// lock is not nil while this process may set the knob.
	lock *hostfs.Lock
	// written identifies the file that was written last. A group that is made again has another
	// file.
	written os.FileInfo
	loan    loan
	block   block
}

// block has the reasons why a knob may not be set now.
type block struct {
	// contested is why this process may not set the knob, which another one controls.
	contested string
	// problem is why the knob cannot be used now; foreign says that the reason is a change by
	// another program.
	problem string
	foreign bool
	// released says that a person released the workload from trimtab's control.
	released bool
	// touched records the last time that another program changed a remote knob; nil: none did
	// within an hour.
	touched *touched
	// abandoned is why a value of a remote knob was taken back, valid until a time of the boot
	// clock.
	abandoned      string
	abandonedUntil time.Duration
	// readOnly is why a write would be refused, for a knob in mode recommend. It is a problem only
	// when a person wants to apply a plan.
	readOnly string
}

// freshness says when a knob with a [Mark] must be read again.
type freshness struct {
	// mark is the knob's mark at the last read; again is when it is read again even if the mark is
	// unchanged.
	mark  Mark
	again time.Duration
}

// reading has the last values read of a knob.
type reading struct {
	// now is the last value read, and since is when it was first seen; known is false until the
	// first read.
	now   trimtab.Amount
	since time.Time
	known bool
	// gone says that the limit did not exist at the last attempt to read it.
	gone bool
	// effective is the value in force if it differs from the value set, which is now; nil: they are
	// the same.
	effective *trimtab.Amount
	// floor is the amount in use, below which the knob cannot be set; 0 for most.
	floor float64
	// knobStatus is where the knob's instance is in a cluster, and what limits it from above.
	knobStatus *trimtab.KnobStatus
}

// loan is the fast loop's state of a knob.
type loan struct {
	// envelope is the range within which the fast loop may move the knob; nil: it may not. account
	// is the loop's report; off is why an envelope was refused.
	envelope *trimtab.Envelope
	account  *trimtab.Fast
	off      string
}

// newManaged returns a knob that was not read yet.
func newManaged(t Target) *managed {
	h := &managed{Target: t, can: t.Knob.Traits(), named: t.Knob.String(), falls: history{last: never}}
	if h.can.Unit != nil {
		h.unit = h.can.Unit()
	}
	return h
}

// observeFloor reads the amount in use. If it cannot be read, all of the present amount counts as
// in use.
func (h *managed) observeFloor(ctx context.Context) {
	if h.can.Floor == nil {
		return
	}
	h.floor = h.amount()
	if v, err := h.can.Floor(ctx); err == nil && v.Validate() == nil && !v.Unlimited {
		h.floor = min(v.Value, h.floor)
	}
}

// amount returns the knob's value; an unlimited one counts as its Max.
func (h *managed) amount() float64 { return h.bounded(h.now) }

func (h *managed) bounded(v trimtab.Amount) float64 {
	if v = h.knobStatus.Cap(v); v.Unlimited {
		return h.Max
	}
	return v.Value
}

// highest returns the upper bound of what may be set now: the knob's Max, or less if a limit above
// it allows only less.
func (h *managed) highest() float64 {
	most := h.knobStatus.Cap(trimtab.Units(h.Max)).Value
	if most == h.Max {
		return most
	}
	v := h.Knob.Nearest(trimtab.Units(most)).Value
	for gap := v - most; v > most && gap < most; gap *= 2 { // while rounding leads above the bound
		v = h.Knob.Nearest(trimtab.Units(most - gap)).Value
	}
	return v
}

// atMost returns the largest amount that the knob may give after it is set to v: the value in force
// stays until v takes effect.
func (h *managed) atMost(v trimtab.Amount) float64 {
	if h.effective != nil {
		return max(h.bounded(v), h.bounded(*h.effective))
	}
	return h.bounded(v)
}

// least returns the lower bound of what may be set now.
func (h *managed) least() float64 { return max(h.Min, min(h.floor, h.Max)) }

// baseline returns the value that a restore will set for a knob that was not written before, and
// whether that is less than the value found.
func (h *managed) baseline() (v trimtab.Amount, rest bool) {
	if h.Rest != nil && h.Rest.Less(h.now) {
		return h.Knob.Nearest(*h.Rest), true
	}
	return h.now, false
}

// version returns the version of the value read last; "": the knob has none.
func (h *managed) version() string {
	if h.can.Version == nil {
		return ""
	}
	return h.can.Version()
}

// lostRace reports whether a server refused a write because another client wrote first.
func (h *managed) lostRace(err error) bool {
	return h.can.remote() && (errors.Is(err, trimtab.ErrStale) || errors.Is(err, os.ErrNotExist))
}

// status returns done, or Pending while the value set is not in force.
func (h *managed) status(done trimtab.Status) trimtab.Status {
	if h.effective != nil {
		return trimtab.Pending
	}
	return done
}

// counts reports whether the knob shares the capacity: it is in mode act, or trimtab has written
// it.
func (h *managed) counts() bool { return h.Mode == trimtab.Act || h.entry != nil }

// takesLeft reports whether the knob has no limit and takes part in sharing by weight: it may use
// what others leave idle. In sums it counts with its least amount.
func (h *managed) takesLeft() bool {
	return h.Resource == trimtab.CPU && h.known && h.now.Unlimited && h.effective == nil
}

// writesWith reports whether h and another knob are of one instance and can be written in one operation.
func (h *managed) writesWith(other *managed) bool {
	return h.can.WriteWith != nil && other.can.WriteWith != nil && h.Workload == other.Workload && h.Instance == other.Instance
}
