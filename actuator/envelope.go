package actuator

import (
	"context"
	"math"

	"github.com/trimtab/trimtab"
)

// enveloped returns the envelope that an action asks for, within the knob's own bounds; nil: the
// knob may not move.
func (l *lending) enveloped(p *trimtab.Plan, m *move) *trimtab.Envelope {
	want := m.action.Envelope
	if !l.config.Fast || want == nil || m.held.Resource != trimtab.CPU || m.held.Mode != trimtab.Act || p.Applies != "" || m.goal.Unlimited {
		return nil
	}
	if m.held.can.Quick == nil {
		return nil
	}
	if err := m.held.can.Quick.Ready(want.Burst > 0); err != nil {
		m.held.loan.off = err.Error()
		return nil
	}
	m.held.loan.off = ""
	if m.held.can.ReadyWeight != nil && l.whole {
		if err := m.held.can.ReadyWeight(); err != nil {
			l.logger.Debug("weight by target", "workload", m.held.Workload, "err", err)
		}
	}
	e := *want
	e.Target = m.goal.Value
	// Rounded as the knob rounds: a value outside the rounded envelope would look as if another
	// program had set it.
	e.Floor = min(m.held.Knob.Nearest(trimtab.Units(max(e.Floor, m.held.least()))).Value, e.Target)
	e.Ceiling = max(m.held.Knob.Nearest(trimtab.Units(min(e.Ceiling, m.held.highest()))).Value, e.Target)
	e.Burst = min(e.Burst, e.Ceiling)
	return &e
}

// alike reports whether an action changes neither the target nor the envelope of a knob.
func (m *move) alike() bool {
	e := m.held.loan.envelope
	if m.envelope == nil || e == nil {
		return m.envelope == nil && e == nil
	}
	return *e == *m.envelope
}

// span returns the range of values that the loop may have set from now on, for the journal. It
// includes the envelope that was in force.
func (m *move) span() *[2]float64 {
	if m.envelope == nil {
		return nil
	}
	s := [2]float64{m.envelope.Least(), m.envelope.Most()}
	if e := m.held.entry; e != nil && e.Free != nil && m.held.moves() && e.free(m.held.now) {
		s = [2]float64{min(s[0], e.Free[0]), max(s[1], e.Free[1])}
	}
	return &s
}

// stays reports whether a knob may keep the value that the loop set: the loop runs, and the value
// is inside the new envelope.
func (l *lending) stays(m *move) bool {
	e := m.envelope
	if e == nil || !m.held.moves() || !l.loops() || m.held.now.Unlimited {
		return false
	}
	return m.held.now.Value >= e.Least()-fastSlack && m.held.now.Value <= e.Most()+fastSlack
}

// loops reports whether the loop has read the knobs lately.
func (l *lending) loops() bool {
	return l.looked != never && l.clock.boot()-l.looked < loopDead
}

// enter puts the envelope of a move in force. If its target differs from the old one, this counts
// as a change of the knob.
func (l *lending) enter(m *move) {
	h := m.held
	if (h.loan.envelope != nil || m.envelope != nil) && !same(m.result.Before, m.goal) {
		h.remember(h.bounded(m.result.Before), l.clock.boot())
		h.since = l.clock.wall()
	}
	if h.loan.envelope = m.envelope; h.loan.envelope == nil {
		h.loan.account = nil
		l.unset(h)
		return
	}
	if h.can.Weigh != nil && l.whole {
		if err := h.can.Weigh(h.loan.envelope.Target); err != nil {
			l.logger.Debug("weight by target", "workload", h.Workload, "err", err)
		}
	}
}

// whole reports whether a plan gives the pool whole CPUs in a group of its own. Then the scheduler
// shares them by the weights of the targets, within microseconds.
func (x *executor) whole(p *trimtab.Plan) bool {
	c := min(p.CapacityOf(trimtab.CPU), x.host.room(trimtab.CPU))
	return x.knobs.parent != nil && c >= 1-slack && math.Abs(c-math.Round(c)) <= slack
}

// unset removes the settings, other than the amount, that the loop made on a knob that it no longer
// moves.
func (l *lending) unset(h *held) {
	if h.can.Settle == nil || h.entry == nil {
		return
	}
	if err := h.can.Settle(); err != nil {
		l.logger.Warn("take back burst and weight", "workload", h.Workload, "err", err)
	}
}

// prepareEnvelopes checks the envelopes of knobs whose target a plan does not change. The outcome
// does not report them; the holding does.
func (x *executor) prepareEnvelopes(ctx context.Context, p *trimtab.Plan) (moves []*move) {
	if !x.config.Fast {
		return nil
	}
	for i := range p.Envelopes {
		e := &p.Envelopes[i]
		if e.Host != x.config.Host {
			continue
		}
		h := x.knobs.find(e.KnobID)
		if h == nil || e.At.Unlimited || e.Envelope == nil && h.loan.envelope == nil {
			continue
		}
		m := &move{
			action: &trimtab.Action{KnobID: e.KnobID, Expect: e.At, Set: e.At, Envelope: e.Envelope, Mode: trimtab.Act},
			result: &trimtab.Result{KnobID: e.KnobID, Asked: e.At},
		}
		if x.judgeAction(ctx, p, m) && h.barred == "" {
			moves = append(moves, m)
		}
	}
	return moves
}

// lend records how much CPU time a plan allows to be lent here, as far as other pools leave it.
func (hs *host) lend(ctx context.Context, p *trimtab.Plan) {
	if !hs.config.Fast {
		return
	}
	hs.lending.capacity = min(p.CapacityOf(trimtab.CPU), hs.room(trimtab.CPU))
	hs.lending.lendable = 0
	rest := 0.0 // the sum while every knob is at its target
	for _, h := range hs.knobs.all {
		if h.counts() && h.Resource == trimtab.CPU {
			rest += h.atMost(h.resting())
		}
	}
	want := max(0, min(p.Lendable[hs.config.Host], hs.lending.capacity-rest))
	if want == 0 || hs.arbiter == nil {
		hs.lending.lendable = want
		return
	}
	hs.failed = ""
	hs.lending.lendable = min(want, max(0, hs.grantFor(ctx, trimtab.CPU, rest+want)-rest))
}
