package actuator

import (
	"context"

	"github.com/trimtab/trimtab"
)

// borrowed is the part of the lease for which what knobs have above their baselines holds.
func (l lease) borrowed() lease {
	if l.BorrowUntil > 0 {
		l.Until = min(l.Until, l.BorrowUntil)
	}
	return l
}

// giveBackBorrowed restores what is above its baseline, when other hosts lend it no longer.
// Loans of the fast loop end first: one that lends now has its target, which may be above.
func (a *Actuator) giveBackBorrowed(ctx context.Context) {
	if a.lease.borrowed().left(a.clock.id, a.clock.boot()) > 0 {
		return
	}
	if !a.returned {
		a.returned = true
		a.endLoans(ctx)
	}
	var above []*held
	for _, h := range a.knobs {
		if h.entry != nil && h.entry.borrows(h.now) {
			above = append(above, h)
		}
	}
	if len(above) == 0 {
		return
	}
	a.logger.Warn("no plan came: giving back what is above its baseline, which other hosts lend", "plan", trimtab.PlanID(a.position.Epoch, a.position.Sequence), "knobs", len(above))
	a.restoreHeld(ctx, above)
	for _, h := range above {
		a.observe(ctx, h)
	}
}

// borrows reports whether a value is above the baseline, of what hosts share. How many
// instances there are takes nothing from others, and a group above gives nothing itself.
func (e *entry) borrows(v trimtab.Amount) bool {
	return e.Baseline.Less(v) && e.Resource != trimtab.Replicas && !e.Above
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
