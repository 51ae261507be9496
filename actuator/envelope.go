package actuator

import (
	"context"
	"math"

	"github.com/trimtab/trimtab"
)

// enveloped returns the envelope that an action asks for, within the knob's own bounds, if the knob
// is set to goal; nil: the knob may not move.
func (l *lending) enveloped(h *managed, goal trimtab.Amount, want *trimtab.Envelope) *trimtab.Envelope {
	if !l.config.Fast || want == nil || h.Resource != trimtab.CPU || h.Mode != trimtab.Act || goal.Unlimited || h.can.Quick == nil {
		return nil
	}
	if err := h.can.Quick.Ready(want.Burst > 0); err != nil {
		h.loan.off = err.Error()
		return nil
	}
	h.loan.off = ""
	if h.can.Weight.Ready != nil && l.whole {
		if err := h.can.Weight.Ready(); err != nil {
			l.logger.Debug("weight by target", "workload", h.Workload, "err", err)
		}
	}
	e := *want
	e.Target = goal.Value
	// Rounded as the knob rounds: a value outside the rounded envelope would look as if another
	// program had set it.
	e.Floor = min(h.Knob.Nearest(trimtab.Units(max(e.Floor, h.least()))).Value, e.Target)
	e.Ceiling = max(h.Knob.Nearest(trimtab.Units(min(e.Ceiling, h.highest()))).Value, e.Target)
	e.Burst = min(e.Burst, e.Ceiling)
	return &e
}

// sameEnvelope reports whether two envelopes, which may be nil, are equal.
func sameEnvelope(a, b *trimtab.Envelope) bool { return a == b || a != nil && b != nil && *a == *b }

// span returns the range of values that the loop may have set from now on, for the journal, if the
// knob gets an envelope. It includes the envelope that was in force.
func (h *managed) span(next *trimtab.Envelope) *[2]float64 {
	if next == nil {
		return nil
	}
	s := [2]float64{next.Least(), next.Most()}
	if e := h.entry; e != nil && e.Free != nil && h.moves() && e.free(h.now) {
		s = [2]float64{min(s[0], e.Free[0]), max(s[1], e.Free[1])}
	}
	return &s
}

// stays reports whether a knob may keep the value that the loop set: the loop runs, and the value
// is inside the next envelope.
func (l *lending) stays(h *managed, next *trimtab.Envelope) bool {
	return next != nil && h.moves() && l.loops() && !h.now.Unlimited &&
		h.now.Value >= next.Least()-fastSlack && h.now.Value <= next.Most()+fastSlack
}

// loops reports whether the loop has read the knobs lately.
func (l *lending) loops() bool {
	return l.looked != never && l.clock.boot()-l.looked < loopDead
}

// enter puts the envelope of a move in force. If its target differs from the old one, this counts
// as a change of the knob.
func (l *lending) enter(m *move) {
	h := m.knob
	if (h.loan.envelope != nil || m.envelope != nil) && !same(m.result.Before, m.goal) {
		h.falls.remember(h.bounded(m.result.Before), l.clock.boot())
		h.since = l.clock.wall()
	}
	if h.loan.envelope = m.envelope; h.loan.envelope == nil {
		h.loan.account = nil
		l.unset(h)
		return
	}
	if h.can.Weight.Set != nil && l.whole {
		if err := h.can.Weight.Set(h.loan.envelope.Target); err != nil {
			l.logger.Debug("weight by target", "workload", h.Workload, "err", err)
		}
	}
}

// wholeCPUs reports whether a capacity is a number of whole CPUs. In a group of their own the
// scheduler shares them by the weights of the targets, within microseconds.
func wholeCPUs(c float64) bool { return c >= 1-slack && math.Abs(c-math.Round(c)) <= slack }

// unset removes the settings, other than the amount, that the loop made on a knob that it no longer
// moves.
func (l *lending) unset(h *managed) {
	if h.can.Quick == nil || h.can.Settle == nil || h.entry == nil {
		return // no loop moves it: what it sets beside the amount belongs to that amount
	}
	if err := h.can.Settle(); err != nil {
		l.logger.Warn("take back burst and weight", "workload", h.Workload, "err", err)
	}
}

// lend records how much CPU time may be lent here, as far as other pools leave it: at most lendable,
// and no more than fits into the pool's capacity.
func (hs *host) lend(ctx context.Context, capacity, lendable float64) {
	if !hs.config.Fast {
		return
	}
	hs.lending.capacity = capacity
	hs.lending.lendable = 0
	rest := 0.0 // the sum while every knob is at its target
	for _, h := range hs.knobs.all {
		if h.counts() && h.Resource == trimtab.CPU {
			rest += h.atMost(h.resting())
		}
	}
	want := max(0, min(lendable, capacity-rest))
	if want == 0 || hs.arbiter == nil {
		hs.lending.lendable = want
		return
	}
	hs.failed = ""
	hs.lending.lendable = min(want, max(0, hs.grantFor(ctx, trimtab.CPU, rest+want)-rest))
}
