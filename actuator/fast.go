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

// lending has the envelopes within which the fast loop of this host may move knobs between plans,
// and what it moved.
type lending struct {
	*base
	fence *fence
	knobs *knobs
	// groups are the movable groups as last reported to the loop, ordered by name; generation
	// counts their changes.
	groups     []FastGroup
	movable    []*managed
	generation uint64
	limits     FastLimits
	// lendable is how much plan and arbiter allow beyond the sum of the targets; capacity is the
	// pool's capacity on this host by the last plan; both in cores.
	lendable, capacity float64
	// whole says that the CPUs of the pool are shared by weights that equal the targets.
	whole bool
	// looked is when the loop last read the knobs, on the boot clock.
	looked time.Duration
	// problem is why nothing is moved, and remedy what to do about it; "": there is no problem.
	problem, remedy string
}

// FastGroup is one knob that the loop may move, with its envelope.
type FastGroup struct {
	trimtab.KnobID
	Envelope trimtab.Envelope
}

// FastLimits limit all groups together.
type FastLimits struct {
	// Until is when the lease expires, on the boot clock.
	Until time.Duration
	// Capacity limits the sum of the groups' quotas; Lendable limits by how much the sum may exceed
	// the sum of the targets; both in cores.
	Capacity, Lendable float64
}

// FastLook is what the loop reads in one round.
type FastLook struct {
	// Generation changes whenever Groups change.
	Generation uint64
	Groups     []FastGroup
	FastLimits
	At time.Duration
	// Counters has the counters of each group, in the order of Groups; Errs has the errors of those
	// that could not be read.
	Counters []Counters
	Errs     []error
	// Parent has the counters of the parent group; nil: there is none, or it could not be read.
	// Pressure is the total of [Traits].Pressure of that group; nil: the kernel does not report it.
	Parent   *Counters
	Pressure *float64
}

// FastAccount is the loop's report on one knob, for the holding.
type FastAccount struct {
	trimtab.KnobID
	trimtab.Fast
}

// FastMove sets the quota of one group of a look, in cores.
type FastMove struct {
	Group      int
	Set, Burst float64
}

// loopDead is the time without a look after which moved knobs are set back to their targets.
const loopDead = 2 * time.Second

// resting returns the target of the knob's envelope while the knob is inside it, else its value.
func (h *managed) resting() trimtab.Amount {
	if h.moves() && h.entry.free(h.now) {
		return h.Knob.Nearest(trimtab.Units(h.loan.envelope.Target))
	}
	return h.now
}

// moves reports whether the loop may move the knob.
func (h *managed) moves() bool { return h.loan.envelope != nil && h.entry != nil }

// movable reports whether the loop may move the knob now, or whether it is gone, which frees its
// amount.
func (h *managed) movable() bool { return h.moves() && (h.gone || h.report() == "") }

// free reports whether v is a value that the loop may have set.
func (e *entry) free(v trimtab.Amount) bool {
	r := e.Free
	return r != nil && !v.Unlimited && v.Value >= r[0]-fastSlack && v.Value <= r[1]+fastSlack
}

// fastSlack is the largest error from rounding to the kernel's microseconds, in cores.
const fastSlack = 2e-3

// callIn ends loans, by lowering knobs above their targets to them. It is called when a plan raises
// a knob and there is no capacity left.
func (l *lending) callIn(but *managed) (freed bool) {
	for _, h := range l.knobs.all {
		if h != but && h.moves() && !h.now.Unlimited && h.now.Value > h.loan.envelope.Target+fastSlack && h.entry.free(h.now) {
			freed = l.shift(h, h.loan.envelope.Target, h.loan.envelope.Burst) == nil || freed
		}
	}
	return freed
}

// rest sets all moved knobs to their targets, the loans first.
func (l *lending) rest() {
	l.callIn(nil)
	for _, h := range l.knobs.all {
		if h.moves() && !h.now.Unlimited && h.now.Value < h.loan.envelope.Target-fastSlack && h.entry.free(h.now) &&
			l.knobs.sumWith(h, trimtab.Units(h.loan.envelope.Target)) <= l.capacity+slack {
			_ = l.shift(h, h.loan.envelope.Target, h.loan.envelope.Burst) // the next tick tries again
		}
	}
}

// shift sets one knob inside its envelope, and records the value read back.
func (l *lending) shift(h *managed, v, burst float64) error {
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

// tend checks the moved knobs at every heartbeat, since the loop may have died. It also reads the
// parent group.
func (l *lending) tend(ctx context.Context) {
	if l.config.Fast && !l.loops() && !l.fence.closed {
		l.rest()
	}
	if p := l.knobs.parent; p != nil && p.entry != nil {
		l.knobs.observe(ctx, p)
	}
}

// potential returns how much more CPU time the pool could have within all envelopes than is set
// now, in cores. The pool claims it of the host while plans allow it.
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

// note records why nothing is moved, and what to do about it.
func (l *lending) note(why, remedy string) {
	l.remedy = remedy
	if l.problem != why {
		l.problem = why
		l.reportProblem("quotas between rounds", why, remedy)
	}
}

// FastLook reads all knobs that the loop may move now. Its slices are valid until the next call,
// and for one loop only.
func (a *Actuator) FastLook(look *FastLook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lending.look(look)
}

// look does the work of FastLook.
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

// glance reads one knob, and records if another program set it.
func (l *lending) glance(h *managed) (Counters, error) {
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

// regroup determines which knobs the loop may move, and within what limits.
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
				// A copy, since readers may still have the old slice.
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

// FastMove sets quotas of the groups of a look, and returns each group's quota afterwards; NaN:
// unknown. It changes nothing if the groups have changed since the look, makes no move out of an
// envelope, and no raise above the limit for all groups together.
func (a *Actuator) FastMove(generation uint64, moves []FastMove, found []float64) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lending.move(generation, moves, found)
}

// move does the work of FastMove.
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
		_ = l.shift(h, v, m.Burst) // the value is read back below
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

// targets returns the sum of the groups' targets.
func (l *lending) targets() (sum float64) {
	for i := range l.groups {
		sum += l.groups[i].Envelope.Target
	}
	return sum
}

// dropFast removes the envelope of a knob that was restored.
func (h *managed) dropFast() { h.loan.envelope, h.loan.account = nil, nil }

// FastRecord passes in the loop's reports on its knobs, for the holding.
func (a *Actuator) FastRecord(all []FastAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lending.record(all)
}

// record does the work of FastRecord.
func (l *lending) record(all []FastAccount) {
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

// stateOf returns the loop's state of one knob for the holding; nil: none.
func (l *lending) stateOf(h *managed) *trimtab.Fast {
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
