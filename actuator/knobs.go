package actuator

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// knobs holds the knobs of the host with what is known of them.
type knobs struct {
	*base
	fence *fence
	// all are those declared and those found, in order of name.
	all []*held
	// parent is the group above those of the pool; nil: none is declared.
	parent *held
	// orphans are entries of the journal that have no knob, and whose turn to be restored
	// has not come.
	orphans []*entry
	// released are the workloads that a person let go of.
	released map[string]bool
}

// insert adds a knob and keeps the list sorted for find.
func (ks *knobs) insert(h *held) {
	i, _ := ks.place(h.KnobID)
	ks.all = slices.Insert(ks.all, i, h)
}

// place returns where the knob of that name is, or would be.
func (ks *knobs) place(id trimtab.KnobID) (i int, there bool) {
	return slices.BinarySearchFunc(ks.all, id, func(h *held, id trimtab.KnobID) int { return h.Compare(id) })
}

// find returns the knob of that name, or nil.
func (ks *knobs) find(id trimtab.KnobID) *held {
	if i, ok := ks.place(id); ok {
		return ks.all[i]
	}
	return nil
}

// heldOf is find for all that has an entry in the journal.
func (ks *knobs) heldOf(id trimtab.KnobID) *held {
	if p := ks.parent; p != nil && p.KnobID == id {
		return p
	}
	return ks.find(id)
}

// restorable are all knobs that a restore has to do with: the group above comes first up
// and last down, which restoreAll sees to.
func (ks *knobs) restorable() []*held {
	if p := ks.parent; p != nil && p.entry != nil {
		return append(slices.Clone(ks.all), p)
	}
	return ks.all
}

// holds reports whether any knob was written and not restored.
func (ks *knobs) holds() bool {
	p := ks.parent
	return p != nil && p.turned() || slices.ContainsFunc(ks.all, (*held).turned)
}

// where returns the knobs of which a condition is true.
func (ks *knobs) where(is func(*held) bool) (all []*held) {
	for _, h := range ks.all {
		if is(h) {
			all = append(all, h)
		}
	}
	return all
}

// turned reports whether the knob was written, and not restored since.
func (h *held) turned() bool { return h.entry != nil }

// sumWith returns the sum over the targets that count, with h at v.
func (ks *knobs) sumWith(h *held, v trimtab.Amount) float64 {
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

// pace is how many changes a second the slowest of the knobs takes; 0: none is bound.
func (ks *knobs) pace() float64 {
	least := 0.0
	for _, h := range ks.all {
		if v := h.can.Pace; v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}

// above is what the group above has.
func (ks *knobs) above() trimtab.Amount {
	if ks.parent == nil {
		return trimtab.Unlimited()
	}
	return ks.parent.now
}

// adopt gives the journal's entries to their knobs, and returns those that have
// none. An instance that came again under its name has nothing to restore.
func (ks *knobs) adopt(entries []*entry) (orphans []*entry) {
	var gone []hostfs.Entry
	for _, e := range entries {
		h := ks.heldOf(ks.config.here(e.KnobID))
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

// takesOver reports whether what was written by the knob that undo describes is what this one
// writes.
func (h *held) takesOver(undo []byte) bool { return h.can.TakesOver == nil || h.can.TakesOver(undo) }

// recallUndo tells a knob what the journal says of it, where it wants to know.
func (ks *knobs) recallUndo(h *held, undo []byte) {
	if h.can.Recall == nil {
		return
	}
	if err := h.can.Recall(undo); err != nil {
		ks.logger.Warn("what the journal says of a knob cannot be read", "knob", h.Knob.String(), "err", err)
	}
}

// recall takes over what the journal has of an instance that comes again, where it
// could not be put back when it went.
func (ks *knobs) recall(h *held) {
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

// held is one knob with what is known of it.
type held struct {
	Target
	// can is Knob.Traits(), named Knob.String(), and unit what can.Unit returned.
	can         Traits
	named, unit string
	// mark is the knob's when it was looked at last, lookAgain when it is looked at again all
	// the same.
	mark      Mark
	lookAgain time.Duration
	// finder found it, as an instance with that ID; nil: it is declared.
	finder *finder
	id     uint64
	// entry is the journal's; nil: never written, or restored since.
	entry *entry
	reading
	// peaks are recent values above every later one, the oldest and highest first.
	peaks []peak
	// lowered is when a plan last lowered it, on the boot clock, or never.
	lowered time.Duration
	// lock is not nil while this process may set the knob; contested is the reason why it
	// may not.
	lock      *hostfs.Lock
	contested string
	// written is the file that was written last. A group that is made again has another
	// file.
	written os.FileInfo
	loan    loan
	// problem is why the knob cannot be used now; foreign marks the problem
	// that somebody else changed it.
	problem  string
	foreign  bool
	released bool
	// touched is what is kept of the last time that somebody else turned a remote knob;
	// nil: nobody did, for an hour.
	touched *touched
	// hopeless is why a remote knob was put back, until a time of the boot clock.
	hopeless      string
	hopelessUntil time.Duration
	// barred is why a write would be refused, of a knob that only recommends:
	// no problem before somebody wants to apply.
	barred string
}

// reading is what was read of a knob.
type reading struct {
	// now was read last, at first seen as it is since; known is false while
	// it was never read.
	now   trimtab.Amount
	since time.Time
	known bool
	// gone: the limit did not exist at the last attempt to read it.
	gone bool
	// effective is the value in force where that is not the value set, now; nil: they are
	// the same.
	effective *trimtab.Amount
	// floor is what the knob must keep since it is in use, 0 for most.
	floor float64
	// standing is what the knob knows of its instance, and of what is above it.
	standing *trimtab.Standing
}

// loan is what the fast loop may do with a knob.
type loan struct {
	// envelope is what the fast loop may move the knob within; nil: it stays. account is
	// what the loop told of it, off why an envelope was not taken.
	envelope *trimtab.Envelope
	account  *trimtab.Fast
	off      string
}

// newHeld returns a knob of which nothing is known yet.
func newHeld(t Target) *held {
	h := &held{Target: t, can: t.Knob.Traits(), named: t.Knob.String(), lowered: never}
	if h.can.Unit != nil {
		h.unit = h.can.Unit()
	}
	return h
}

// observeFloor reads what must be kept. What cannot be read is all of it.
func (h *held) observeFloor(ctx context.Context) {
	if h.can.Floor == nil {
		return
	}
	h.floor = h.amount()
	if v, err := h.can.Floor(ctx); err == nil && v.Validate() == nil && !v.Unlimited {
		h.floor = min(v.Value, h.floor)
	}
}

// amount returns what the knob is set to, unlimited as its Max.
func (h *held) amount() float64 { return h.bounded(h.now) }

func (h *held) bounded(v trimtab.Amount) float64 {
	if v = h.standing.Cap(v); v.Unlimited {
		return h.Max
	}
	return v.Value
}

// highest returns the upper bound of what may be set now: a knob is not set to more than what
// is above it lets through.
func (h *held) highest() float64 {
	most := h.standing.Cap(trimtab.Units(h.Max)).Value
	if most == h.Max {
		return most
	}
	v := h.Knob.Nearest(trimtab.Units(most)).Value
	for gap := v - most; v > most && gap < most; gap *= 2 { // rounded up it would not be let through
		v = h.Knob.Nearest(trimtab.Units(most - gap)).Value
	}
	return v
}

// atMost returns the most that the knob may give when it is set to v: what is in
// force lasts until v takes effect.
func (h *held) atMost(v trimtab.Amount) float64 {
	if h.effective != nil {
		return max(h.bounded(v), h.bounded(*h.effective))
	}
	return h.bounded(v)
}

// least returns the lower bound of what may be set now.
func (h *held) least() float64 { return max(h.Min, min(h.floor, h.Max)) }
