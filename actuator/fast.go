package actuator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// lending is what moves between plans: the envelopes within which a loop of this host may move
// knobs, and what it moved.
type lending struct {
	*base
	fence *fence
	knobs *knobs
	// groups are those that may be moved, as told last, in order of name; generation
	// counts their changes.
	groups     []FastGroup
	movable    []*held
	generation uint64
	limits     FastLimits
	// lendable is what plan and arbiter allow beyond the sum of targets, capacity what the
	// pool may give here by the last plan.
	lendable, capacity float64
	// whole: weights by target share the CPUs of the pool.
	whole bool
	// looked is when the loop last looked, on the boot clock.
	looked time.Duration
	// problem is why nothing is moved, remedy what to do about it; "": nothing is in the
	// way.
	problem, remedy string
}

// FastGroup is one knob that may be moved, and within what.
type FastGroup struct {
	trimtab.KnobID
	Envelope trimtab.Envelope
}

// FastLimits bound all groups together.
type FastLimits struct {
	// Until is when the lease ends, on the boot clock.
	Until time.Duration
	// Capacity is what the groups may have together at most, Lendable by how much they may
	// exceed their targets, in cores.
	Capacity, Lendable float64
}

// FastLook is what a look of the loop finds.
type FastLook struct {
	// Generation changes when Groups do.
	Generation uint64
	Groups     []FastGroup
	FastLimits
	At time.Duration
	// Counters are in the order of Groups; Errs says of which nothing was read, and why.
	Counters []Counters
	Errs     []error
	// Parent are the counters of the group above; nil: there is none, or it was not read.
	// Pressure is the total of [Traits].Pressure of that group; nil: nothing tells.
	Parent   *Counters
	Pressure *float64
}

// FastAccount is what the loop has to tell of one knob, for the holding.
type FastAccount struct {
	trimtab.KnobID
	trimtab.Fast
}

// FastMove moves one group of a look, in cores.
type FastMove struct {
	Group      int
	Set, Burst float64
}

// loopDead is after how long without a look what was moved goes back to its target.
const loopDead = 2 * time.Second

// resting is where a knob rests: the target of its envelope while it is within, else what
// it is set to.
func (h *held) resting() trimtab.Amount {
	if h.moves() && h.entry.free(h.now) {
		return h.Knob.Nearest(trimtab.Units(h.loan.envelope.Target))
	}
	return h.now
}

// moves reports whether the loop may move the knob.
func (h *held) moves() bool { return h.loan.envelope != nil && h.entry != nil }

// movable reports whether it may be moved now. One that is gone frees what it had.
func (h *held) movable() bool { return h.moves() && (h.gone || h.report() == "") }

// free reports whether v is a value that the loop may have set.
func (e *entry) free(v trimtab.Amount) bool {
	r := e.Free
	return r != nil && !v.Unlimited && v.Value >= r[0]-fastSlack && v.Value <= r[1]+fastSlack
}

// fastSlack is what rounding to a kernel's microseconds may add to an amount.
const fastSlack = 2e-3

// callIn ends loans: what is above its target goes back to it. It is asked for when a
// plan raises somebody and there is no room.
func (l *lending) callIn(but *held) (freed bool) {
	for _, h := range l.knobs.all {
		if h != but && h.moves() && !h.now.Unlimited && h.now.Value > h.loan.envelope.Target+fastSlack && h.entry.free(h.now) {
			freed = l.shift(h, h.loan.envelope.Target, h.loan.envelope.Burst) == nil || freed
		}
	}
	return freed
}

// rest sets all that the loop moved to its target: loans end first.
func (l *lending) rest() {
	l.callIn(nil)
	for _, h := range l.knobs.all {
		if h.moves() && !h.now.Unlimited && h.now.Value < h.loan.envelope.Target-fastSlack && h.entry.free(h.now) &&
			l.knobs.sumWith(h, trimtab.Units(h.loan.envelope.Target)) <= l.capacity+slack {
			_ = l.shift(h, h.loan.envelope.Target, h.loan.envelope.Burst) // the next tick tries again
		}
	}
}

// shift makes one move inside an envelope, and notes what was read back.
func (l *lending) shift(h *held, v, burst float64) error {
	q := h.can.Quick
	if q == nil {
		return fmt.Errorf("move %s: %w", h.Knob, trimtab.ErrUnsupported)
	}
	found, err := q.Move(h.Knob.Nearest(trimtab.Units(v)), min(burst, v))
	if err != nil {
		l.metrics.Counter("trimtab_fast_failed_total").Inc()
		if seen, bad := q.Look(); bad == nil {
			h.now = seen.Set
		}
		return err
	}
	h.now = found
	l.metrics.Counter("trimtab_fast_writes_total").Inc()
	return nil
}

// tend looks after what the loop moved, at every heartbeat: it may have died. It looks at
// the group above, too.
func (l *lending) tend(ctx context.Context) {
	if l.config.Fast && !l.loops() && !l.fence.closed {
		l.rest()
	}
	if p := l.knobs.parent; p != nil && p.entry != nil {
		l.knobs.observe(ctx, p)
	}
}

// potential is what the pool may have of CPU time inside all envelopes, beyond what is
// set now: it is claimed of the host as long as plans allow it.
func (l *lending) potential() float64 {
	targets, set := 0.0, 0.0
	for _, h := range l.knobs.all {
		if h.moves() && h.Resource == trimtab.CPU {
			targets += h.loan.envelope.Target
			set += h.atMost(h.now)
		}
	}
	if targets == 0 {
		return 0
	}
	return max(0, targets+l.lendable-set)
}

// note notes why nothing is moved, and what to do about it.
func (l *lending) note(why, remedy string) {
	l.remedy = remedy
	if l.problem != why {
		l.problem = why
		l.tellProblem("quotas between rounds", why, remedy)
	}
}

// FastLook reads all knobs that the loop may move now. Its slices are valid until the
// next call; it is for one loop.
func (a *Actuator) FastLook(look *FastLook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lending.look(look)
}

// look is FastLook.
func (l *lending) look(look *FastLook) {
	l.looked = l.clock.boot()
	l.regroup()
	look.Generation, look.Groups, look.FastLimits, look.At = l.generation, l.groups, l.limits, l.looked
	look.Counters, look.Errs, look.Parent = look.Counters[:0], look.Errs[:0], nil
	look.Pressure = nil
	for _, h := range l.movable {
		c, err := l.glance(h)
		look.Counters, look.Errs = append(look.Counters, c), append(look.Errs, err)
	}
	if p := l.knobs.parent; p != nil && p.entry != nil && len(l.movable) > 0 {
		if q := p.can.Quick; q != nil {
			if c, err := q.Look(); err == nil {
				look.Parent = &c
			}
		}
		if look.Parent != nil && p.can.Pressure != nil {
			if total, ok := p.can.Pressure(); ok {
				look.Pressure = &total
			}
		}
	}
}

// glance reads one knob, and notes what somebody else set.
func (l *lending) glance(h *held) (Counters, error) {
	q := h.can.Quick
	if q == nil {
		return Counters{}, trimtab.ErrUnsupported
	}
	c, err := q.Look()
	h.gone = errors.Is(err, os.ErrNotExist)
	if err == nil {
		err = c.Set.Validate()
	}
	if err == nil && !same(c.Set, h.now) {
		before := h.now
		h.now = c.Set
		l.knobs.judge(h, before)
	}
	return c, err
}

// regroup finds out which knobs may be moved, and within what limits.
func (l *lending) regroup() {
	frozen := !l.fence.paused.IsZero() || l.fence.closed || l.problem != "" || l.fence.leftBorrowed() == 0
	n, others := 0, 0.0
	changed := false
	for _, h := range l.knobs.all {
		if h.Resource != trimtab.CPU || !h.counts() {
			continue
		}
		if !h.movable() {
			if h.known && !h.gone {
				others += h.atMost(h.now)
			}
			continue
		}
		e := *h.loan.envelope
		if frozen {
			e.Lend, e.Borrow = false, false
		}
		g := FastGroup{h.KnobID, e}
		if n >= len(l.groups) || l.groups[n] != g || l.movable[n] != h {
			if !changed {
				// What was told stays as it is for who reads it.
				l.groups, l.movable, changed = slices.Clone(l.groups[:min(n, len(l.groups))]), slices.Clone(l.movable[:min(n, len(l.movable))]), true
			}
		}
		if changed {
			l.groups, l.movable = append(l.groups, g), append(l.movable, h)
		}
		n++
	}
	if !changed && n < len(l.groups) {
		l.groups, l.movable, changed = slices.Clone(l.groups[:n]), slices.Clone(l.movable[:n]), true
	}
	limits := FastLimits{Until: l.fence.lease.borrowed().Until, Capacity: max(l.targets(), l.capacity-others), Lendable: l.lendable}
	if l.fence.lease.Boot != l.clock.id {
		limits.Until = 0
	}
	if changed || limits != l.limits {
		l.generation++
	}
	l.limits = limits
}

// FastMove makes moves of the groups of a look, and returns what is set of each group
// afterwards: NaN where that is not known. Nothing is moved when the groups have changed
// since, outside an envelope, or up over what all may have together.
func (a *Actuator) FastMove(generation uint64, moves []FastMove, found []float64) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lending.move(generation, moves, found)
}

// move is FastMove.
func (l *lending) move(generation uint64, moves []FastMove, found []float64) []float64 {
	found = found[:0]
	if l.regroup(); l.generation != generation || l.limits.Until <= l.clock.boot() {
		return found
	}
	sum := 0.0
	for _, h := range l.movable {
		if !h.gone {
			sum += h.atMost(h.now)
		}
	}
	most := min(l.limits.Capacity, l.limits.Lendable+l.targets()) + slack
	for _, m := range moves {
		if m.Group < 0 || m.Group >= len(l.movable) {
			continue
		}
		h, e := l.movable[m.Group], &l.groups[m.Group].Envelope
		v := min(max(m.Set, e.Least()), e.Most())
		was := h.atMost(h.now)
		if !(v > 0) || h.gone || v > was && sum-was+v > most {
			continue
		}
		_ = l.shift(h, v, m.Burst) // what came of it is read back
		sum += h.atMost(h.now) - was
	}
	for _, h := range l.movable {
		v := math.NaN()
		if !h.gone && !h.now.Unlimited {
			v = h.now.Value
		}
		found = append(found, v)
	}
	return found
}

// targets is what the groups have where all rest.
func (l *lending) targets() (sum float64) {
	for i := range l.groups {
		sum += l.groups[i].Envelope.Target
	}
	return sum
}

// dropFast forgets what the loop may do with a knob that was restored.
func (h *held) dropFast() { h.loan.envelope, h.loan.account = nil, nil }

// FastTell takes in what the holding is to say of the knobs that are moved.
func (a *Actuator) FastTell(all []FastAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lending.tell(all)
}

// tell is FastTell.
func (l *lending) tell(all []FastAccount) {
	asks := false
	for i := range all {
		h := l.knobs.find(all[i].KnobID)
		if h == nil {
			continue
		}
		old := h.loan.account
		account := all[i].Fast
		account.From = maps.Clone(account.From)
		h.loan.account = &account
		asks = asks || account.Ask != nil && (old == nil || old.Ask == nil || old.Ask.Number != account.Ask.Number)
	}
	if asks {
		l.notify()
	}
}

// stateOf is what the holding says of one knob; nil: nothing.
func (l *lending) stateOf(h *held) *trimtab.Fast {
	if !h.moves() {
		if h.loan.off != "" && l.config.Fast {
			v := trimtab.Units(h.amount())
			return &trimtab.Fast{Off: h.loan.off, Set: v.Value, Low: v.Value, High: v.Value, Envelope: trimtab.Envelope{Floor: v.Value, Target: v.Value, Ceiling: v.Value}}
		}
		return nil
	}
	out := trimtab.Fast{}
	if h.loan.account != nil {
		out = *h.loan.account
	}
	out.Envelope, out.Set, out.Off = *h.loan.envelope, h.amount(), ""
	if h.loan.account == nil {
		out.Low, out.High = out.Set, out.Set
	}
	switch {
	case l.problem != "":
		out.Off = l.problem
	case !l.fence.paused.IsZero():
		out.Off = "paused"
	case !l.loops():
		out.Off = "the loop does not run"
	}
	return &out
}
