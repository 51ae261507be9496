package actuator

import (
	"context"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// compensateAfter is how long the next step of a plan may take.
const compensateAfter = 5 * time.Second

// unfinished is a plan whose shrinks were made and whose grows are awaited.
type unfinished struct {
	until  time.Duration
	shrunk []*move
}

// await notes the shrinks of a plan that is to go on.
func (x *executor) await(p *trimtab.Plan, moves []*move) {
	x.unfinished = nil
	if p.Last || x.config.Shared {
		return
	}
	u := &unfinished{until: saturate(x.clock.boot(), compensateAfter)}
	for _, m := range moves {
		if (m.result.Status == trimtab.Written || m.result.Status == trimtab.Pending) && m.goal.Less(m.result.Before) {
			u.shrunk = append(u.shrunk, m)
		}
	}
	if len(u.shrunk) > 0 {
		x.unfinished = u
	}
}

// compensate gives back what was taken for a plan that never went on: nobody
// got it, so it still fits.
func (x *executor) compensate(ctx context.Context) {
	u := x.unfinished
	if u == nil || x.clock.boot() < u.until || !x.fence.paused.IsZero() {
		return
	}
	x.unfinished = nil
	var batch []hostfs.Entry
	for _, m := range u.shrunk {
		if e := m.held.entry; e != nil && same(m.held.now, m.goal) {
			back := *e
			back.Wrote = []trimtab.Amount{m.goal, m.result.Before}
			m.held.entry = &back
			batch = append(batch, put(e.journalKey(), &back))
		}
	}
	if err := x.journal.Append(batch...); err != nil {
		x.logger.Error("compensate", "err", err)
		return
	}
	for _, m := range u.shrunk {
		if m.held.entry == nil || !same(m.held.now, m.goal) {
			continue
		}
		room := x.host.room(m.held.Resource)
		if x.config.Fast && m.held.Resource == trimtab.CPU {
			room = min(room, x.lending.capacity) // the loop may have lent it meanwhile
		}
		if x.knobs.sumWith(m.held, m.result.Before) > room+slack {
			continue // somebody else took it meanwhile: the lease puts it right
		}
		if x.host.ask(ctx, m.held, m.result.Before) != "" {
			continue // likewise, another pool
		}
		err := m.held.Knob.Write(ctx, m.result.Before)
		x.knobs.observe(ctx, m.held)
		x.metrics.Counter("trimtab_actuator_compensations_total").Inc()
		x.logger.Warn("plan was not finished: gave back", "workload", m.held.Workload, "to", m.result.Before.String(), "err", err)
	}
}
