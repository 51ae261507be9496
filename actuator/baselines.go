package actuator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// expire restores everything when the lease ran out, and what was borrowed when it was to
// go back.
func (b *baselines) expire(ctx context.Context) {
	if !b.knobs.holds() {
		return
	}
	if b.fence.left() > 0 {
		b.giveBackBorrowed(ctx)
		return
	}
	if !b.fence.expired {
		// Once: what cannot be restored is tried again at every heartbeat.
		b.fence.expired = true
		b.logger.Warn("the lease ran out: restoring the baselines", "plan", trimtab.PlanID(b.fence.position.Epoch, b.fence.position.Sequence))
		b.metrics.Counter("trimtab_actuator_leases_expired_total").Inc()
	}
	b.unrestored = b.restore(ctx, b.knobs.restorable()).Left
	for _, h := range b.knobs.all {
		b.knobs.observe(ctx, h)
	}
}

// giveBackBorrowed restores what is above its baseline, when other hosts lend it no longer.
// Loans of the fast loop end first: one that lends now has its target, which may be above.
func (b *baselines) giveBackBorrowed(ctx context.Context) {
	if b.fence.leftBorrowed() > 0 {
		return
	}
	if !b.fence.returned {
		b.fence.returned = true
		b.endLoans(ctx)
	}
	above := b.knobs.where(func(h *held) bool { return h.entry != nil && h.entry.borrows(h.now) })
	if len(above) == 0 {
		return
	}
	b.logger.Warn("no plan came: giving back what is above its baseline, which other hosts lend", "plan", trimtab.PlanID(b.fence.position.Epoch, b.fence.position.Sequence), "knobs", len(above))
	b.restore(ctx, above)
	for _, h := range above {
		b.knobs.observe(ctx, h)
	}
}

// leaveAlone is how long a knob is left alone whose value did not come into force.
const leaveAlone = time.Minute

// abandon puts back what is in force where what was asked for will not come: a pending
// grow blocks others and delivers nothing.
func (b *baselines) abandon(ctx context.Context) {
	for _, h := range b.knobs.all {
		if !h.can.remote() || h.entry == nil || h.effective == nil || h.foreign || b.fence.left() == 0 {
			continue
		}
		why := h.can.Hopeless(ctx)
		if why == "" {
			continue
		}
		if err := b.giveBack(ctx, h, *h.effective, why); err != nil {
			b.logger.Warn("put back what did not come into force", "knob", h.Name(), "err", err)
		}
	}
}

// giveBack sets a value, journal first, and leaves the knob alone for a while.
func (b *baselines) giveBack(ctx context.Context, h *held, v trimtab.Amount, why string) error {
	back := *h.entry
	back.Wrote = []trimtab.Amount{h.now, v}
	if err := b.journal.Append(put(back.journalKey(), &back)); err != nil {
		return err
	}
	asked := h.now
	h.entry = &back
	h.hopeless, h.hopelessUntil = fmt.Sprintf("asked for %v, put back to %v: %s", asked, v, why), saturate(b.clock.boot(), leaveAlone)
	err := h.Knob.Write(ctx, v)
	b.knobs.observe(ctx, h)
	b.knobs.setProblem(h, h.hopeless)
	b.metrics.Counter("trimtab_actuator_abandoned_total").Inc()
	return err
}

// goOn goes on with what was released or has no knob any more and was not yet put back.
func (b *baselines) goOn(ctx context.Context) {
	b.restore(ctx, b.knobs.where(func(h *held) bool { return h.released && h.entry != nil }))
	b.restoreOrphans(ctx)
}

// endLoans ends the loans of a loop of an earlier life, which nobody looks after any more.
func (b *baselines) endLoans(ctx context.Context) {
	for _, up := range []bool{false, true} {
		for _, h := range b.knobs.all {
			if h.entry == nil || h.entry.Free == nil || !h.known || h.report() != "" || !h.entry.free(h.now) {
				continue
			}
			goal := h.entry.last()
			if same(h.now, goal) || h.now.Less(goal) != up {
				continue
			}
			if err := h.Knob.Write(ctx, goal); err != nil {
				b.logger.Warn("end the loan of an earlier life", "workload", h.Workload, "err", err)
			}
			b.knobs.observe(ctx, h)
		}
	}
}

// baselines puts back what the knobs of an actuator were set to when they were found.
type baselines struct {
	*base
	fence *fence
	knobs *knobs
	// unrestored counts the baselines whose turn had not come when the lease ran out.
	unrestored int
	// unlowered: the last restore failed, as all since unloweredAt did.
	unlowered   bool
	unloweredAt time.Duration
}

// restoreOrphans restores a part of what the journal has of knobs that are not declared.
// What fails waits for the next start, or, where a knob waits for it, for the next look.
func (b *baselines) restoreOrphans(ctx context.Context) {
	if len(b.knobs.orphans) == 0 {
		return
	}
	all := reopenAll(b.knobs.orphans, b.config.Reopen)
	defer closeAll(all)
	defer lockAll(ctx, b.config.LockDir, b.config.Dir, all, b.config.Reopen)()
	r := restoreAll(ctx, all, false)
	told := make(map[*entry]bool, len(r.Items))
	for i := range r.Items {
		it := &r.Items[i]
		told[it.entry] = it.Status != trimtab.Failed || b.knobs.heldOf(b.config.here(it.KnobID)) == nil
	}
	b.knobs.orphans = slices.DeleteFunc(b.knobs.orphans, func(e *entry) bool { return told[e] })
	b.forget(r)
}

// undo returns what there is to restore of the given knobs.
func (b *baselines) undo(ctx context.Context, knobs []*held) (all []undoing) {
	for _, h := range knobs {
		if h.entry != nil && b.knobs.claim(ctx, h) == "" && h.entry != nil {
			all = append(all, undoing{entry: h.entry, knob: h.Knob, can: h.can})
		}
	}
	return all
}

// restore restores the given declared knobs and drops their entries. Of knobs whose
// server takes so many writes a second it restores a part.
func (b *baselines) restore(ctx context.Context, knobs []*held) Report {
	all := b.undo(ctx, knobs)
	if len(all) == 0 {
		return Report{}
	}
	r := restoreAll(ctx, all, !b.fence.closed && (!b.unlowered || b.clock.boot()-b.unloweredAt < waitsForShrinks))
	left := r.Left
	r.Left = 0 // it is tried again soon
	if failed := r.Err() != nil; failed != b.unlowered {
		b.unlowered, b.unloweredAt = failed, b.clock.boot()
	}
	b.forget(r)
	r.Left = left
	return r
}

// restoreToTheEnd restores knobs, part by part, as far as ctx gives it time.
func (b *baselines) restoreToTheEnd(ctx context.Context, knobs []*held) error {
	all := b.undo(ctx, knobs)
	if n := len(all); n > 0 && all[0].can.Pace > 0 {
		b.logger.Info("putting the baselines back", "knobs", n, "takes about", time.Duration(float64(n)/all[0].can.Pace*float64(time.Second)).Round(time.Second).String())
	}
	r, err := restoreParts(ctx, all, false, func(part Report) error { b.forget(part); return nil })
	if len(knobs) > 0 {
		r.Left += len(b.knobs.orphans)
	}
	return errors.Join(err, r.Err())
}

// waitsForShrinks is how long baselines wait for the room of a knob that cannot be lowered:
// after that they come back without it.
const waitsForShrinks = 10 * time.Second

// forget logs, counts and drops what was restored.
func (b *baselines) forget(r Report) {
	for _, i := range r.Items {
		b.metrics.Counter("trimtab_actuator_restores_total", string(i.Status)).Inc()
		b.logger.Info("restore", "workload", i.Workload, "resource", i.Resource, "status", string(i.Status),
			"found", i.Found.String(), "baseline", i.Baseline.String(), "reason", i.Reason)
		if h := b.knobs.heldOf(b.config.here(i.KnobID)); h != nil && i.Status != trimtab.Failed {
			h.entry = nil
			h.dropFast()
			if h.foreign { // it was told, and is over
				h.foreign = false
				b.knobs.setProblem(h, "")
			}
			h.disown()
		}
	}
	_ = b.store("journal after restore", finished(r)...)
	b.notify()
}
