package actuator

import (
	"context"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Tick looks for instances, reads all knobs, keeps the lease alive while paused, and restores the
// baselines when it ran out. Run calls it at every heartbeat.
func (a *Actuator) Tick(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.seek(ctx)
	a.measure()
	look := hostfs.Look(ctx)
	for _, h := range a.knobs {
		if a.unchanged(h) {
			continue
		}
		if h.Mode == trimtab.Act || h.lock != nil {
			a.claim(ctx, h)
		}
		if _, remote := h.Knob.(Remote); remote || h.problem != "" && !h.foreign || !h.known {
			a.probe(look, h)
		} else {
			a.observe(look, h)
		}
	}
	a.keep()
	a.compensate(ctx)
	a.abandon(ctx)
	a.expire(ctx)
	a.goOn(ctx)
	a.tend(ctx)
	a.arbitrate(ctx)
	a.gauges()
}

// keep renews the lease of a pause when half of it is gone, and that of what is borrowed
// at once.
func (a *Actuator) keep() {
	if a.paused.IsZero() || !a.holds() {
		return
	}
	length := a.lease.Length.Duration()
	now := a.clock.boot()
	if a.lease.left(a.clock.id, now) > length/2 && a.lease.BorrowUntil == 0 {
		return
	}
	l := a.lease
	l.Boot, l.Until, l.BorrowUntil = a.clock.id, saturate(now, length), 0
	if err := a.journal.Append(put(leaseKey, l)); err != nil {
		a.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		a.logger.Error("renew the lease of a pause", "err", err)
	}
	// In force even when it could not be stored: a pause holds.
	a.lease = l
}

// holds reports whether any knob was written and not restored.
func (a *Actuator) holds() bool {
	for _, h := range a.knobs {
		if h.entry != nil {
			return true
		}
	}
	if p := a.parent; p != nil {
		return p.entry != nil
	}
	return false
}

// expire restores everything when the lease ran out, and what was borrowed when it was to
// go back.
func (a *Actuator) expire(ctx context.Context) {
	if !a.holds() {
		return
	}
	if a.lease.left(a.clock.id, a.clock.boot()) > 0 {
		a.giveBackBorrowed(ctx)
		return
	}
	if !a.expired {
		// Once: what cannot be restored is tried again at every heartbeat.
		a.expired = true
		a.logger.Warn("the lease ran out: restoring the baselines", "plan", trimtab.PlanID(a.position.Epoch, a.position.Sequence))
		a.metrics.Counter("trimtab_actuator_leases_expired_total").Inc()
	}
	a.unrestored = a.restoreHeld(ctx, a.restorable()).Left
	for _, h := range a.knobs {
		a.observe(ctx, h)
	}
}

func (a *Actuator) gauges() {
	held := 0
	for _, h := range a.knobs {
		if h.entry != nil {
			held++
		}
	}
	a.metrics.Gauge("trimtab_actuator_held_knobs").Set(float64(held))
	instances := 0
	for _, f := range a.finders {
		instances += len(f.there)
	}
	a.metrics.Gauge("trimtab_actuator_instances").Set(float64(instances))
	a.metrics.Gauge("trimtab_actuator_lease_seconds").Set(a.lease.left(a.clock.id, a.clock.boot()).Seconds())
	paused := 0.0
	if !a.paused.IsZero() {
		paused = 1
	}
	a.metrics.Gauge("trimtab_actuator_paused").Set(paused)
}

// compensateAfter is how long the next step of a plan may take.
const compensateAfter = 5 * time.Second

// unfinished is a plan whose shrinks were made and whose grows are awaited.
type unfinished struct {
	until  time.Duration
	shrunk []*move
}

// await notes the shrinks of a plan that is to go on.
func (a *Actuator) await(p *trimtab.Plan, moves []*move) {
	a.unfinished = nil
	if p.Last || a.config.Shared {
		return
	}
	u := &unfinished{until: saturate(a.clock.boot(), compensateAfter)}
	for _, m := range moves {
		if (m.result.Status == trimtab.Written || m.result.Status == trimtab.Pending) && m.goal.Less(m.result.Before) {
			u.shrunk = append(u.shrunk, m)
		}
	}
	if len(u.shrunk) > 0 {
		a.unfinished = u
	}
}

// compensate gives back what was taken for a plan that never went on: nobody
// got it, so it still fits.
func (a *Actuator) compensate(ctx context.Context) {
	u := a.unfinished
	if u == nil || a.clock.boot() < u.until || !a.paused.IsZero() {
		return
	}
	a.unfinished = nil
	var batch []hostfs.Entry
	for _, m := range u.shrunk {
		if e := m.held.entry; e != nil && same(m.held.now, m.goal) {
			back := *e
			back.Wrote = []trimtab.Amount{m.goal, m.result.Before}
			m.held.entry = &back
			batch = append(batch, put(e.journalKey(), &back))
		}
	}
	if err := a.journal.Append(batch...); err != nil {
		a.logger.Error("compensate", "err", err)
		return
	}
	for _, m := range u.shrunk {
		if m.held.entry == nil || !same(m.held.now, m.goal) {
			continue
		}
		room := a.room(m.held.Resource)
		if a.config.Fast && m.held.Resource == trimtab.CPU {
			room = min(room, a.fast.capacity) // the loop may have lent it meanwhile
		}
		if a.sumWith(m.held, m.result.Before) > room+slack {
			continue // somebody else took it meanwhile: the lease puts it right
		}
		if a.ask(ctx, m.held, m.result.Before) != "" {
			continue // likewise, another pool
		}
		err := m.held.Knob.Write(ctx, m.result.Before)
		a.observe(ctx, m.held)
		a.metrics.Counter("trimtab_actuator_compensations_total").Inc()
		a.logger.Warn("plan was not finished: gave back", "workload", m.held.Workload, "to", m.result.Before.String(), "err", err)
	}
}
