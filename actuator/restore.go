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

// restoreWait is how long Restore waits for a watchdog that is reading the journal.
const restoreWait = time.Second

// Restore restores every baseline of the journal in dir, without any other configuration.
func Restore(ctx context.Context, dir string, reopen func(undo []byte) (Knob, error)) (Report, error) {
	if _, err := os.Stat(dir); err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	lock, err := hostfs.AcquireLock(ctx, dir, restoreWait)
	if err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	defer lock.Close()
	return restoreLocked(ctx, dir, reopen)
}

// restoreLocked restores while the caller has the lock. It first only reads the journal, so that
// knobs are restored even if it can no longer be written.
func restoreLocked(ctx context.Context, dir string, reopen func(undo []byte) (Knob, error)) (Report, error) {
	s, err := readRestorable(dir)
	if err != nil {
		return Report{}, fmt.Errorf("restore: %w", err)
	}
	return restoreStored(ctx, dir, s, reopen, false)
}

// restoreStored restores the baselines read from the journal in dir; with borrowed, only those of
// knobs that are above them.
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

// forgetIn removes restored baselines from the journal.
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

// finished returns the journal entries that delete the baselines that need no other attempt.
func finished(r Report) []hostfs.Entry {
	var done []hostfs.Entry
	for _, i := range r.Items {
		if i.Status != trimtab.Failed {
			done = append(done, hostfs.Entry{Key: i.entry.journalKey()})
		}
	}
	return done
}

// undoing is a knob with its journal entry. err says why it could not be opened; taken says which
// other process has taken over the knob and its baseline.
type undoing struct {
	entry *entry
	knob  Knob
	can   Traits
	err   error
	taken error
}

// lockAll takes the locks of knobs that should have no live owner, until unlock is called.
func lockAll(ctx context.Context, locks, dir string, all []undoing, reopen func([]byte) (Knob, error)) (unlock func()) {
	var taken []*hostfs.Lock
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
			taken = append(taken, lock)
		}
	}
	return func() {
		for _, l := range taken {
			l.Close()
		}
	}
}

func reopenAll(entries []*entry, reopen func([]byte) (Knob, error)) []undoing {
	all := make([]undoing, len(entries))
	for i, e := range entries {
		knob, err := reopen(e.Undo)
		if all[i] = (undoing{entry: e, err: err}); err == nil { // else a nil pointer in an interface
			all[i].knob, all[i].can = knob, knob.Traits()
		}
	}
	return all
}

// closeAll closes the knobs that reopenAll opened.
func closeAll(all []undoing) {
	for _, u := range all {
		if u.knob != nil {
			_ = u.knob.Close() // the results are known already
		}
	}
}

// restorePart is how long the writes of one part of a restore take, for knobs whose server limits
// the rate of writes.
const restorePart = 4 * time.Second

// restoreParts restores part by part until all is done or ctx ends. It passes the report of each
// part to note, so that an interrupted restore need not begin again.
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

// restoreAll reads all knobs, then writes those that still have the value that trimtab wrote:
// reductions before raises. It tries a failed reduction once more. If patient says that the caller
// tries again soon, raises wait for a reduction that failed twice. If the server of knobs limits
// the rate of writes, restoreAll restores only a part: see turnsBack.
func restoreAll(ctx context.Context, all []undoing, patient bool) Report {
	r := Report{Items: make([]Restored, len(all))}
	for i, u := range all {
		r.Items[i] = inspect(ctx, u)
	}
	all = r.turnsBack(all)
	lost := map[string]float64{} // the capacity that failed reductions still take
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

// shrinks reports whether a restore lowers a limit. A knob that shares by weight never counts: its
// parent's limit rises before its own limit is set again.
func (it *Restored) shrinks(can *Traits) bool {
	return (can.Shared == nil || can.Shared.Reserves()) && it.Baseline.Less(it.Found)
}

// settle resets the settings beside an amount that was restored, or that another program changed: that
// program did not change the settings.
func settle(can *Traits, it *Restored) {
	if can.Settle == nil || it.Status != trimtab.Written && it.Status != trimtab.Equal && !it.theirs {
		return
	}
	if err := can.Settle(); err != nil {
		it.Status, it.Reason = trimtab.Failed, err.Error()
	}
}

// waits makes a raise wait for failed reductions if it needs their capacity: otherwise the sum
// would exceed the capacity until they succeed. The parent group waits for all of them.
func waits(it *Restored, e *entry, lost map[string]float64) bool {
	if lost[it.Resource] <= slack { // NaN means infinitely much, which waits, too
		return false
	}
	if !e.Above {
		lost[it.Resource] -= between(it.Baseline, it.Found)
	}
	it.Status, it.Reason = trimtab.Failed, "waits for the room of a knob that could not be lowered"
	return true
}

// between returns by how much the greater of two amounts exceeds the other.
func between(greater, other trimtab.Amount) float64 {
	if greater.Unlimited {
		return math.Inf(1)
	}
	return greater.Value - other.Value
}

// inOrder returns the order in which knobs are restored: a child's quota must not exceed its
// parent's, so the parent is lowered last and raised first.
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

// inspect decides how to restore one knob; Status "" means that it must be written.
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
		if !u.exactly() { // others have more to restore than an amount
			it.Status = trimtab.Equal
		}
	case !u.entry.ours(it.Found):
		it.Status, it.theirs = trimtab.Refused, true
		it.Reason = fmt.Sprintf("holds %v, which trimtab did not write: left alone", it.Found)
	}
	return it
}

// putBack writes the baseline, or the nearest value that does not go below the amount in use, since
// no later attempt would follow.
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
	if u.can.Status != nil && errors.Is(err, trimtab.ErrRefused) {
		if above := u.can.Status(ctx); !same(above.Cap(goal), goal) {
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

// exactly reports whether the restore sets more than an amount: the knob can, and is not to get
// less than it had.
func (u *undoing) exactly() bool { return u.can.Restore != nil && !u.entry.Rest }

// putBackExactly restores a baseline that is more than an amount. If nothing can restore it, or
// another program changed the knob, it reports this and does not try again.
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

// borrowing returns the knobs that are above their baselines.
func borrowing(ctx context.Context, all []undoing) (above []undoing) {
	for _, u := range all {
		if u.err != nil {
			continue // the restore at the end of the lease reports it
		}
		if v, err := u.knob.Read(ctx); err == nil && u.entry.borrows(v) {
			above = append(above, u)
		}
	}
	return above
}
