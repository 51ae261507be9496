package actuator

import (
	"context"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// compensateAfter is how long the actuator waits for the next step of a plan.
const compensateAfter = 5 * time.Second

// unfinished is a plan whose reductions were made here, and whose step with the raises has not
// come.
type unfinished struct {
	until  time.Duration
	shrunk []*move
}

// await records the reductions of a plan that has another step.
func (x *executor) await(s *step) {
	x.unfinished = nil
	if s.Last || x.config.Shared {
		return
	}
	u := &unfinished{until: saturate(x.clock.boot(), compensateAfter)}
	for _, m := range s.moves {
		if (m.result.Status == trimtab.Written || m.result.Status == trimtab.Pending) && m.goal.Less(m.result.Before) {
			u.shrunk = append(u.shrunk, m)
		}
	}
	if len(u.shrunk) > 0 {
		x.unfinished = u
	}
}

// compensate raises the knobs again that were lowered for a plan whose next step never came.
// Nothing else was raised meanwhile, so the capacity is still free.
func (x *executor) compensate(ctx context.Context) {
	u := x.unfinished
	if u == nil || x.clock.boot() < u.until || !x.fence.paused.IsZero() {
		return
	}
	x.unfinished = nil
	var batch []hostfs.Entry
	for _, m := range u.shrunk {
		if e := m.knob.entry; e != nil && same(m.knob.now, m.goal) {
			back := *e
			back.Wrote = []trimtab.Amount{m.goal, m.result.Before}
			m.knob.entry = &back
			batch = append(batch, put(e.journalKey(), &back))
		}
	}
	if err := x.journal.Append(batch...); err != nil {
		x.logger.Error("compensate", "err", err)
		return
	}
	for _, m := range u.shrunk {
		if m.knob.entry == nil || !same(m.knob.now, m.goal) {
			continue
		}
		most := x.host.limit(m.knob.Resource)
		if x.config.Fast && m.knob.Resource == trimtab.CPU {
			most = min(most, x.lending.capacity) // the fast loop may have lent it
		}
		if x.knobs.sumWith(m.knob, m.result.Before) > most+slack {
			continue // the capacity is in use now; the knob is restored when the lease expires
		}
		if x.host.ask(ctx, m.knob, m.result.Before) != "" {
			continue // likewise: another pool uses it
		}
		err := m.knob.Knob.Write(ctx, m.result.Before)
		x.knobs.observe(ctx, m.knob)
		x.metrics.Counter("trimtab_actuator_compensations_total").Inc()
		x.logger.Warn("plan was not finished: gave back", "workload", m.knob.Workload, "to", m.result.Before.String(), "err", err)
	}
}
