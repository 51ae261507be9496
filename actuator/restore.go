package actuator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// restoreWait is how long Restore waits for a watchdog that is just looking.
const restoreWait = time.Second

// Restore puts every baseline of the journal in dir back, with no other
// configuration. It is idempotent. It refuses while an actuator runs on dir.
func Restore(ctx context.Context, dir string, reopen func(undo []byte) (Knob, error)) (Report, error) {
	if _, err := os.Stat(dir); err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	lock, err := hostfs.TakeLock(ctx, dir, restoreWait)
	if err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	defer lock.Close()
	return restoreLocked(ctx, dir, reopen)
}

// restoreLocked restores when the lock is held. The journal is read without
// opening it for writing first: knobs come back even where it cannot be
// written any more.
func restoreLocked(ctx context.Context, dir string, reopen func(undo []byte) (Knob, error)) (Report, error) {
	s, err := readHeld(dir)
	if err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	return restoreStored(ctx, dir, s, reopen, false)
}

// restoreStored restores what was read of the journal in dir. borrowed: only what is above
// its baseline.
func restoreStored(ctx context.Context, dir string, s stored, reopen func(undo []byte) (Knob, error), borrowed bool) (Report, error) {
	all := reopenAll(s.entries, reopen)
	defer closeAll(all)
	if borrowed {
		all = borrowing(ctx, all)
	}
	defer lockAll(ctx, s.locks, dir, all, reopen)()
	r, err := restoreParts(ctx, all, false, func(part Report) error { return forgetIn(dir, part) })
	r.Damaged, r.Damage, r.Lost = s.unreadable, s.damage.Words, s.damage.Lost
	return r, errors.Join(r.Err(), err)
}

// forgetIn drops what is done from the journal.
func forgetIn(dir string, r Report) error {
	done := finished(r)
	if len(done) == 0 {
		return nil
	}
	j, err := hostfs.OpenJournal(dir, 0)
	if err != nil {
		return err
	}
	return errors.Join(j.Append(done...), j.Close())
}

// finished returns the journal entries that drop what needs no other try.
func finished(r Report) []hostfs.Entry {
	var done []hostfs.Entry
	for _, i := range r.Items {
		if i.Status != trimtab.Failed {
			done = append(done, hostfs.Entry{Key: i.entry.journalKey()})
		}
	}
	return done
}

// undoing is one knob with its entry; err says why it could not be opened, taken
// which other process has taken it over, and its baseline with it.
type undoing struct {
	entry *entry
	knob  Knob
	can   Traits
	err   error
	taken error
}

// lockAll takes the locks of knobs that nobody should own any more, until
// unlock.
func lockAll(ctx context.Context, locks, dir string, all []undoing, reopen func([]byte) (Knob, error)) (unlock func()) {
	var held []*hostfs.Lock
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for i := range all {
		u := &all[i]
		if u.err != nil {
			continue
		}
		lock, ours, err := lastOwner(ctx, locks, dir, u.knob.Resource(), &u.can, reopen)
		switch {
		case !ours:
			u.taken = err
		case err != nil:
			u.err = err
		case lock != nil:
			held = append(held, lock)
		}
	}
	return func() {
		for _, l := range held {
			l.Close()
		}
	}
}

func reopenAll(entries []*entry, reopen func([]byte) (Knob, error)) []undoing {
	all := make([]undoing, len(entries))
	for i, e := range entries {
		knob, err := reopen(e.Undo)
		if all[i] = (undoing{entry: e, err: err}); err == nil { // else not one of a kind that is nil
			all[i].knob, all[i].can = knob, knob.Traits()
		}
	}
	return all
}

// closeAll closes what reopenAll opened.
func closeAll(all []undoing) {
	for _, u := range all {
		if u.knob != nil {
			_ = u.knob.Close() // all is said of it
		}
	}
}

// restorePart is how long the writes of one part of a restore take, of knobs whose server
// takes so many a second.
const restorePart = 4 * time.Second

// restoreParts restores part by part until all is done or there is no more time, and has
// each part noted, so that a restore that ends too early is not begun anew.
func restoreParts(ctx context.Context, all []undoing, patient bool, note func(Report) error) (r Report, err error) {
	for {
		part := restoreAll(ctx, all, patient)
		err = errors.Join(err, note(part))
		r.add(part)
		if part.Left == 0 || ctx.Err() != nil {
			return r, err
		}
		told := make(map[*entry]bool, len(part.Items))
		for i := range part.Items {
			told[part.Items[i].entry] = true
		}
		all = slices.DeleteFunc(slices.Clone(all), func(u undoing) bool { return told[u.entry] })
	}
}

// restoreAll reads all knobs, then writes those that still hold what trimtab
// wrote: shrinks before grows. A shrink that fails is tried twice. Where patient says
// that all is tried again soon, grows wait for one that failed even then. Of knobs whose
// server takes so many writes a second it is a part: see turnsBack.
func restoreAll(ctx context.Context, all []undoing, patient bool) Report {
	r := Report{Items: make([]Restored, len(all))}
	for i, u := range all {
		r.Items[i] = inspect(ctx, u)
	}
	all = r.turnsBack(all)
	lost := map[string]float64{} // what failed shrinks still have beyond their baselines
	for _, shrinks := range []bool{true, false} {
		for _, i := range inOrder(all, shrinks) {
			it, u := &r.Items[i], &all[i]
			if it.Status != "" || it.shrinks(&u.can) != shrinks || !shrinks && waits(it, u.entry, lost) {
				continue
			}
			if ctx.Err() != nil && u.can.Pace > 0 {
				continue
			}
			if putBack(ctx, u, it); shrinks && it.Status == trimtab.Failed {
				it.Status, it.Reason = "", ""
				if putBack(ctx, u, it); it.Status == trimtab.Failed && patient {
					lost[it.Resource] += between(it.Found, it.Baseline)
				}
			}
		}
	}
	for i := range r.Items {
		settle(&all[i].can, &r.Items[i])
	}
	r.ranOut()
	return r
}

// shrinks reports whether a restore lowers a limit. What shares has its limits above, which
// rise before its own come back.
func (it *Restored) shrinks(can *Traits) bool {
	return (can.Shared == nil || can.Shared.Reserves()) && it.Baseline.Less(it.Found)
}

// settle takes back what was set beside an amount that is as before.
func settle(can *Traits, it *Restored) {
	if can.Settle == nil || it.Status != trimtab.Written && it.Status != trimtab.Equal {
		return
	}
	if err := can.Settle(); err != nil {
		it.Status, it.Reason = trimtab.Failed, err.Error()
	}
}

// waits has a grow wait for shrinks that failed, as far as their room is what it would
// take: else the sum were over the capacity until they succeed. A group above waits for
// all of them.
func waits(it *Restored, e *entry, lost map[string]float64) bool {
	if lost[it.Resource] <= slack { // not where it is NaN: infinitely much waits for as much
		return false
	}
	if !e.Above {
		lost[it.Resource] -= between(it.Baseline, it.Found)
	}
	it.Status, it.Reason = trimtab.Failed, "waits for the room of a knob that could not be lowered"
	return true
}

// between is how much the greater of two amounts is above the other.
func between(greater, other trimtab.Amount) float64 {
	if greater.Unlimited {
		return math.Inf(1)
	}
	return greater.Value - other.Value
}

// inOrder returns in which order knobs go back: no quota may be over that of a group above,
// so that one falls last and rises first.
func inOrder(all []undoing, shrinks bool) (order []int) {
	for _, above := range []bool{!shrinks, shrinks} {
		for i, u := range all {
			if u.entry.Above == above {
				order = append(order, i)
			}
		}
	}
	return order
}

// inspect decides what is to be done with one knob; Status "" means restore.
func inspect(ctx context.Context, u undoing) Restored {
	it := Restored{KnobID: u.entry.KnobID, Baseline: u.entry.Baseline, entry: u.entry}
	err := u.err
	if err == nil {
		it.Knob = u.knob.String()
		it.Found, err = u.knob.Read(ctx)
	}
	switch {
	case u.taken != nil:
		it.Status, it.Reason = trimtab.Refused, u.taken.Error()
	case errors.Is(err, os.ErrNotExist):
		it.Status, it.Reason = trimtab.Refused, "gone: "+err.Error()
	case err != nil:
		it.Status, it.Reason = trimtab.Failed, err.Error()
	case same(it.Found, it.Baseline):
		if !u.exactly() { // one has more to put back than an amount
			it.Status = trimtab.Equal
		}
	case !u.entry.ours(it.Found):
		it.Status = trimtab.Refused
		it.Reason = fmt.Sprintf("holds %v, which trimtab did not write: left alone", it.Found)
	}
	return it
}

// putBack writes the baseline, or as near to it as what is in use allows: that
// is never taken away, and nobody would come back to do it later.
func putBack(ctx context.Context, u *undoing, it *Restored) {
	if u.exactly() {
		putBackExactly(ctx, u, it)
		return
	}
	knob, goal := u.knob, it.Baseline
	if u.can.Floor != nil && goal.Less(it.Found) {
		floor, err := u.can.Floor(ctx)
		if err != nil {
			it.Status, it.Reason = trimtab.Failed, err.Error()
			return
		}
		if goal.Less(floor) {
			goal = floor
			it.Reason = fmt.Sprintf("baseline %v, but with a margin %v are in use", it.Baseline, floor)
		}
		if !goal.Less(it.Found) {
			it.Status = trimtab.Refused
			return
		}
	}
	err := knob.Write(ctx, goal)
	if u.can.Standing != nil && errors.Is(err, trimtab.ErrRefused) {
		if above := u.can.Standing(ctx); !same(above.Cap(goal), goal) {
			goal = knob.Nearest(above.Cap(goal))
			it.Reason = fmt.Sprintf("baseline %v, but %s gives %v", it.Baseline, above.By, goal)
			err = knob.Write(ctx, goal)
		}
	}
	if err == nil {
		var back trimtab.Amount
		if back, err = knob.Read(ctx); err == nil && !same(back, goal) {
			err = fmt.Errorf("wrote %v, read back %v", goal, back)
		}
	}
	it.Status = trimtab.Written
	if err != nil {
		it.Status, it.Reason = trimtab.Failed, err.Error()
	}
}

// exactly reports whether more than an amount is put back: the knob can, and is not to be left
// with less than it had.
func (u *undoing) exactly() bool { return u.can.Restore != nil && !u.entry.Rest }

// putBackExactly puts back what is more than an amount. Where nothing can, or somebody
// else turned it, that is said, and not tried again.
func putBackExactly(ctx context.Context, u *undoing, it *Restored) {
	err := u.can.Restore(ctx, it.entry.Undo)
	switch {
	case errors.Is(err, trimtab.ErrUnsupported), errors.Is(err, trimtab.ErrRefused), errors.Is(err, os.ErrNotExist):
		it.Status, it.Reason = trimtab.Refused, err.Error()
	case err != nil:
		it.Status, it.Reason = trimtab.Failed, err.Error()
	case same(it.Found, it.Baseline):
		it.Status = trimtab.Equal
	default:
		it.Status = trimtab.Written
	}
}

// borrowing returns those that are above their baselines.
func borrowing(ctx context.Context, all []undoing) (above []undoing) {
	for _, u := range all {
		if u.err != nil {
			continue // it is told at the end of the lease
		}
		if v, err := u.knob.Read(ctx); err == nil && u.entry.borrows(v) {
			above = append(above, u)
		}
	}
	return above
}
