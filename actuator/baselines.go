package actuator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// expire restores everything if the lease has expired, and what exceeds the baselines if the lease
// of loans has.
func (b *baselines) expire(ctx context.Context) {
	if !b.knobs.holds() {
		return
	}
	if b.fence.left() > 0 {
		b.giveBackBorrowed(ctx)
		return
	}
	if !b.fence.expired {
		// Only once: failed restores are tried again at every heartbeat.
		b.fence.expired = true
		b.logger.Warn("the lease ran out: restoring the baselines", "plan", trimtab.PlanID(b.fence.position.Epoch, b.fence.position.Sequence))
		b.metrics.Counter("trimtab_actuator_leases_expired_total").Inc()
	}
	b.unrestored = b.restore(ctx, b.knobs.restorable()).Left
	for _, h := range b.knobs.all {
		b.knobs.observe(ctx, h)
	}
}

// giveBackBorrowed lowers knobs that are above their baselines to them, when other hosts no longer
// lend the difference. It ends loans of the fast loop first: a knob that lends is set below its
// target, which may be above the baseline.
func (b *baselines) giveBackBorrowed(ctx context.Context) {
	if b.fence.leftBorrowed() > 0 {
		return
	}
	if !b.fence.returned {
		b.fence.returned = true
		b.endLoans(ctx)
	}
	above := b.knobs.where(func(h *managed) bool { return h.entry != nil && h.entry.borrows(h.now) })
	if len(above) == 0 {
		return
	}
	b.logger.Warn("no plan came: giving back what is above its baseline, which other hosts lend", "plan", trimtab.PlanID(b.fence.position.Epoch, b.fence.position.Sequence), "knobs", len(above))
	b.restore(ctx, above)
	for _, h := range above {
		b.knobs.observe(ctx, h)
	}
}

// leaveAlone is how long the actuator does not write a knob whose last value did not take effect.
const leaveAlone = time.Minute

// abandon sets a knob back to the value in force if the value last written will not take effect: a
// pending raise takes room from others and has no use.
func (b *baselines) abandon(ctx context.Context) {
	for _, h := range b.knobs.all {
		if !h.can.remote() || h.entry == nil || h.effective == nil || h.block.foreign || b.fence.left() == 0 {
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

// giveBack sets a value, after journaling it, and then leaves the knob alone for a while.
func (b *baselines) giveBack(ctx context.Context, h *managed, v trimtab.Amount, why string) error {
	back := *h.entry
	back.Wrote = []trimtab.Amount{h.now, v}
	if err := b.journal.Append(put(back.journalKey(), &back)); err != nil {
		return err
	}
	asked := h.now
	h.entry = &back
	h.block.abandoned, h.block.abandonedUntil = fmt.Sprintf("asked for %v, put back to %v: %s", asked, v, why), saturate(b.clock.boot(), leaveAlone)
	err := h.Knob.Write(ctx, v)
	b.knobs.observe(ctx, h)
	b.knobs.setProblem(h, h.block.abandoned)
	b.metrics.Counter("trimtab_actuator_abandoned_total").Inc()
	return err
}

// goOn continues the restore of released workloads, and of knobs that are no longer declared.
func (b *baselines) goOn(ctx context.Context) {
	b.restore(ctx, b.knobs.where(func(h *managed) bool { return h.block.released && h.entry != nil }))
	b.restoreOrphans(ctx)
}

// endLoans ends the loans that a fast loop of an earlier process left. It raises a knob only as far
// as other pools leave room: the raise may have been refused after it was journaled.
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
			if up && b.ask(ctx, h, goal) != "" {
				continue
			}
			if err := h.Knob.Write(ctx, goal); err != nil {
				b.logger.Warn("end the loan of an earlier life", "workload", h.Workload, "err", err)
			}
			b.knobs.observe(ctx, h)
		}
	}
}

// baselines restores the knobs of an actuator to the values that it found.
type baselines struct {
	*base
	fence *fence
	knobs *knobs
	// ask claims the allocation with a knob raised to an amount; see host.
	ask func(ctx context.Context, h *managed, v trimtab.Amount) (why string)
	// unrestored counts the baselines that the rate limit left for later when the lease expired.
	unrestored int
	// unlowered says that the last restore of borrowed amounts failed, as did all since
	// unloweredAt.
	unlowered   bool
	unloweredAt time.Duration
}

// restoreOrphans restores some of the journaled knobs that are not declared. It tries failed ones
// again at the next start, or, if a declared knob waits for one, at the next look.
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
		told[it.entry] = it.Status != trimtab.Failed || b.knobs.findAny(b.config.here(it.KnobID)) == nil
	}
	b.knobs.orphans = slices.DeleteFunc(b.knobs.orphans, func(e *entry) bool { return told[e] })
	b.forget(r)
}

// undo returns the given knobs that have a baseline to restore.
func (b *baselines) undo(ctx context.Context, knobs []*managed) (all []undoing) {
	for _, h := range knobs {
		if h.entry != nil && b.knobs.claim(ctx, h) == "" && h.entry != nil {
			all = append(all, undoing{entry: h.entry, knob: h.Knob, can: h.can})
		}
	}
	return all
}

// restore restores the given declared knobs and drops their entries. If the server of the knobs
// limits the rate of writes, one call restores only some.
func (b *baselines) restore(ctx context.Context, knobs []*managed) Report {
	all := b.undo(ctx, knobs)
	if len(all) == 0 {
		return Report{}
	}
	r := restoreAll(ctx, all, !b.fence.closed && (!b.unlowered || b.clock.boot()-b.unloweredAt < waitsForShrinks))
	left := r.Left
	r.Left = 0 // the next tick tries again
	if failed := r.Err() != nil; failed != b.unlowered {
		b.unlowered, b.unloweredAt = failed, b.clock.boot()
	}
	b.forget(r)
	r.Left = left
	return r
}

// restoreToTheEnd restores knobs, part by part, until ctx ends.
func (b *baselines) restoreToTheEnd(ctx context.Context, knobs []*managed) error {
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

// waitsForShrinks is how long baselines wait for the capacity of a knob that cannot be lowered.
// After that they are restored anyway.
const waitsForShrinks = 10 * time.Second

// forget logs and counts the restored baselines and removes them from the journal.
func (b *baselines) forget(r Report) {
	for _, i := range r.Items {
		b.metrics.Counter("trimtab_actuator_restores_total", string(i.Status)).Inc()
		b.logger.Info("restore", "workload", i.Workload, "resource", i.Resource, "status", string(i.Status),
			"found", i.Found.String(), "baseline", i.Baseline.String(), "reason", i.Reason)
		if h := b.knobs.findAny(b.config.here(i.KnobID)); h != nil && i.Status != trimtab.Failed {
			h.entry = nil
			h.dropFast()
			if h.block.foreign { // the conflict was reported, and is over
				h.block.foreign = false
				b.knobs.setProblem(h, "")
			}
			h.disown()
		}
	}
	_ = b.store("journal after restore", finished(r)...)
	b.notify()
}
