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

// Fast lets a loop of this host move CPU quotas inside the envelopes of plans.
type Fast struct {
	// Parent is the quota of a group above all that are moved, which holds what the pool
	// may give here and is set when that changes, never between: each write to a quota
	// refills what it bounds. nil: there is none, and moves may give a little more than
	// the sum of what is set.
	Parent Knob
}

// fast is the actuator's side of the loop.
type fast struct {
	// parent is the group above; nil: none is declared.
	parent *held
	// groups are those that may be moved, as told last, in order of name; generation
	// counts their changes.
	groups     []FastGroup
	knobs      []*held
	generation uint64
	limits     FastLimits
	// lendable is what plan and arbiter allow beyond the sum of targets, capacity what the
	// pool may give here by the last plan.
	lendable, capacity float64
	// looked is when the loop last looked, on the boot clock.
	looked time.Duration
	// problem is why nothing is moved; "": nothing is in the way.
	problem string
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
	Parent *Counters
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

// openFast takes over the group above.
func (a *Actuator) openFast() {
	a.fast.looked = never
	if f := a.config.Fast; f != nil && f.Parent != nil {
		id := a.config.here(trimtab.KnobID{Workload: "parent of the pool", Resource: trimtab.CPU})
		a.fast.parent = &held{Target: Target{KnobID: id, Knob: f.Parent, Max: math.MaxInt32, Mode: trimtab.Act}, lowered: never}
	}
}

// restorable are all knobs that a restore has to do with: the group above comes first up
// and last down, which restoreAll sees to.
func (a *Actuator) restorable() []*held {
	if p := a.fast.parent; p != nil && p.entry != nil {
		return append(slices.Clone(a.knobs), p)
	}
	return a.knobs
}

// heldOf is find for all that has an entry in the journal.
func (a *Actuator) heldOf(id trimtab.KnobID) *held {
	if p := a.fast.parent; p != nil && p.KnobID == id {
		return p
	}
	return a.find(id)
}

// resting is where a knob rests: the target of its envelope while it is within, else what
// it is set to.
func (h *held) resting() trimtab.Amount {
	if h.moves() && h.entry.free(h.now) {
		return h.Knob.Nearest(trimtab.Units(h.envelope.Target))
	}
	return h.now
}

// moves reports whether the loop may move the knob.
func (h *held) moves() bool { return h.envelope != nil && h.entry != nil }

// movable reports whether it may be moved now.
func (h *held) movable() bool { return h.moves() && h.report() == "" && !h.gone }

// free reports whether v is a value that the loop may have set.
func (e *entry) free(v trimtab.Amount) bool {
	r := e.Free
	return r != nil && !v.Unlimited && v.Value >= r[0]-fastSlack && v.Value <= r[1]+fastSlack
}

// fastSlack is what rounding to a kernel's microseconds may add to an amount.
const fastSlack = 2e-3

// enveloped returns the envelope that an action asks for, within the knob's own bounds;
// nil: it is to stay where it is set.
func (a *Actuator) enveloped(p *trimtab.Plan, m *move) *trimtab.Envelope {
	want := m.action.Envelope
	if a.config.Fast == nil || want == nil || m.held.Resource != trimtab.CPU || m.held.Mode != trimtab.Act || p.Applies != "" || m.goal.Unlimited {
		return nil
	}
	q, ok := m.held.Knob.(Quick)
	if !ok {
		return nil
	}
	if err := q.Ready(want.Burst > 0); err != nil {
		m.held.fastOff = err.Error()
		return nil
	}
	m.held.fastOff = ""
	e := *want
	e.Target = m.goal.Value
	e.Floor = min(max(e.Floor, m.held.least()), e.Target)
	e.Ceiling = max(min(e.Ceiling, m.held.Max), e.Target)
	e.Burst = min(e.Burst, e.Ceiling)
	return &e
}

// alike reports whether an action changes nothing about where a knob may be.
func (m *move) alike() bool {
	e := m.held.envelope
	if m.envelope == nil || e == nil {
		return m.envelope == nil && e == nil
	}
	return *e == *m.envelope
}

// span is what the journal says of a knob that the loop may move: all that it may have
// been set to from now on, the envelope that was in force included.
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

// stays reports whether a knob may stay where the loop has it: inside the envelope that
// is to be in force, while the loop looks after it.
func (a *Actuator) stays(m *move) bool {
	e := m.envelope
	if e == nil || !m.held.moves() || !a.loops() || m.held.now.Unlimited {
		return false
	}
	return m.held.now.Value >= e.Least()-fastSlack && m.held.now.Value <= e.Most()+fastSlack
}

// loops reports whether the loop looked lately.
func (a *Actuator) loops() bool {
	return a.fast.looked != never && a.clock.boot()-a.fast.looked < loopDead
}

// enter puts the envelope of a move in force. Where the target is another, it is since
// now that the knob rests there: that is what counts as a change.
func (a *Actuator) enter(m *move) {
	h := m.held
	if (h.envelope != nil || m.envelope != nil) && !same(m.result.Before, m.goal) {
		h.remember(h.bounded(m.result.Before), a.clock.boot())
		h.since = a.clock.wall()
	}
	if h.envelope = m.envelope; h.envelope == nil {
		h.account = nil
	}
}

// prepareEnvelopes judges the envelopes of knobs that a plan leaves where they rest.
// Nobody waits for what comes of them: the holding says it.
func (a *Actuator) prepareEnvelopes(ctx context.Context, p *trimtab.Plan) (moves []*move) {
	if a.config.Fast == nil {
		return nil
	}
	for i := range p.Envelopes {
		e := &p.Envelopes[i]
		if e.Host != a.config.Host {
			continue
		}
		h := a.find(e.KnobID)
		if h == nil || e.At.Unlimited || e.Envelope == nil && h.envelope == nil {
			continue
		}
		m := &move{
			action: &trimtab.Action{KnobID: e.KnobID, Expect: e.At, Set: e.At, Envelope: e.Envelope, Mode: trimtab.Act},
			result: &trimtab.Result{KnobID: e.KnobID, Asked: e.At},
		}
		if a.judgeAction(ctx, p, m) && h.barred == "" {
			moves = append(moves, m)
		}
	}
	return moves
}

// callIn ends loans: what is above its target goes back to it. It is asked for when a
// plan raises somebody and there is no room.
func (a *Actuator) callIn(but *held) (freed bool) {
	for _, h := range a.knobs {
		if h != but && h.moves() && !h.now.Unlimited && h.now.Value > h.envelope.Target+fastSlack && h.entry.free(h.now) {
			freed = a.shift(h, h.envelope.Target, h.envelope.Burst) == nil || freed
		}
	}
	return freed
}

// rest sets all that the loop moved to its target: loans end first.
func (a *Actuator) rest() {
	a.callIn(nil)
	for _, h := range a.knobs {
		if h.moves() && !h.now.Unlimited && h.now.Value < h.envelope.Target-fastSlack && h.entry.free(h.now) &&
			a.sumWith(h, trimtab.Units(h.envelope.Target)) <= a.fast.capacity+slack {
			_ = a.shift(h, h.envelope.Target, h.envelope.Burst) // the next tick tries again
		}
	}
}

// shift makes one move inside an envelope, and notes what was read back.
func (a *Actuator) shift(h *held, v, burst float64) error {
	q, ok := h.Knob.(Quick)
	if !ok {
		return fmt.Errorf("move %s: %w", h.Knob, trimtab.ErrUnsupported)
	}
	found, err := q.Move(h.Knob.Nearest(trimtab.Units(v)), min(burst, v))
	if err != nil {
		a.metrics.Counter("trimtab_fast_failed_total").Inc()
		if seen, bad := q.Look(); bad == nil {
			h.now = seen.Set
		}
		return err
	}
	h.now = found
	a.metrics.Counter("trimtab_fast_writes_total").Inc()
	return nil
}

// tend looks after what the loop moved, at every heartbeat: it may have died.
func (a *Actuator) tend(ctx context.Context) {
	if a.config.Fast == nil {
		return
	}
	if !a.loops() && !a.closed {
		a.rest()
	}
	if p := a.fast.parent; p != nil && p.entry != nil {
		a.observe(ctx, p)
	}
}

// potential is what the pool may have of CPU time inside all envelopes, beyond what is
// set now: it is claimed of the host as long as plans allow it.
func (a *Actuator) potential() float64 {
	targets, set := 0.0, 0.0
	for _, h := range a.knobs {
		if h.moves() && h.Resource == trimtab.CPU {
			targets += h.envelope.Target
			set += h.atMost(h.now)
		}
	}
	if targets == 0 {
		return 0
	}
	return max(0, targets+a.fast.lendable-set)
}

// lend notes what a plan allows to be lent here, as far as other pools leave it.
func (a *Actuator) lend(ctx context.Context, p *trimtab.Plan) {
	if a.config.Fast == nil {
		return
	}
	a.fast.capacity = min(p.CapacityOf(trimtab.CPU), a.room(trimtab.CPU))
	a.fast.lendable = 0
	rest := 0.0 // what is set where all rest
	for _, h := range a.knobs {
		if h.counts() && h.Resource == trimtab.CPU {
			rest += h.atMost(h.resting())
		}
	}
	want := max(0, min(p.Lendable[a.config.Host], a.fast.capacity-rest))
	if want == 0 || a.host == nil {
		a.fast.lendable = want
		return
	}
	a.host.failed = ""
	a.fast.lendable = min(want, max(0, a.grantFor(ctx, trimtab.CPU, rest+want)-rest))
}

// bind sets the group above to what the pool may give here, when that changed and it may
// be: up before what is below it, down after. raise says which is due.
func (a *Actuator) bind(ctx context.Context, p *trimtab.Plan, raise bool) {
	h := a.fast.parent
	if h == nil || !slices.ContainsFunc(a.knobs, func(k *held) bool { return k.moves() }) && !slices.ContainsFunc(p.Actions, func(x trimtab.Action) bool { return x.Envelope != nil }) {
		return
	}
	goal := h.Knob.Nearest(trimtab.Units(min(p.CapacityOf(trimtab.CPU), a.room(trimtab.CPU))))
	why := a.claim(ctx, h)
	if why == "" && !a.observe(ctx, h) {
		why = h.problem
	}
	if why == "" && h.foreign {
		why = h.problem
	}
	if why == "" && (same(h.now, goal) || h.now.Less(goal) != raise) {
		if same(h.now, goal) {
			a.fastProblem("")
		}
		return
	}
	if why == "" {
		if err := a.bindTo(ctx, h, goal); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		why = "the group above cannot be set: " + why
	}
	a.fastProblem(why)
}

// bindTo writes the group above, journal first.
func (a *Actuator) bindTo(ctx context.Context, h *held, goal trimtab.Amount) error {
	e := &entry{KnobID: h.KnobID, Undo: h.Knob.Undo(), Baseline: h.now, Wrote: []trimtab.Amount{goal}, Above: true}
	if old := h.entry; old != nil {
		e.Baseline, e.Undo, e.Wrote = old.Baseline, old.Undo, []trimtab.Amount{h.now, goal}
	}
	if err := a.journal.Append(put(e.journalKey(), e)); err != nil {
		return err
	}
	h.entry = e
	if err := h.Knob.Write(ctx, goal); err != nil {
		return err
	}
	if !a.observe(ctx, h) || !same(h.now, goal) {
		return fmt.Errorf("wrote %v, read back %v: %w", goal, h.now, trimtab.ErrRefused)
	}
	return nil
}

// fastProblem notes why nothing is moved.
func (a *Actuator) fastProblem(why string) {
	if a.fast.problem != why {
		a.fast.problem = why
		a.logger.Info("fast loop", "problem", why)
		a.notify()
	}
}

// FastLook reads all knobs that the loop may move now. Its slices are valid until the
// next call; it is for one loop.
func (a *Actuator) FastLook(look *FastLook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &a.fast
	f.looked = a.clock.boot()
	a.regroup()
	look.Generation, look.Groups, look.FastLimits, look.At = f.generation, f.groups, f.limits, f.looked
	look.Counters, look.Errs, look.Parent = look.Counters[:0], look.Errs[:0], nil
	for _, h := range f.knobs {
		c, err := a.glance(h)
		look.Counters, look.Errs = append(look.Counters, c), append(look.Errs, err)
	}
	if p := f.parent; p != nil && p.entry != nil && len(f.knobs) > 0 {
		if q, ok := p.Knob.(Quick); ok {
			if c, err := q.Look(); err == nil {
				look.Parent = &c
			}
		}
	}
}

// glance reads one knob, and notes what somebody else set.
func (a *Actuator) glance(h *held) (Counters, error) {
	q, ok := h.Knob.(Quick)
	if !ok {
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
		a.judge(h, before)
	}
	return c, err
}

// regroup finds out which knobs may be moved, and within what limits.
func (a *Actuator) regroup() {
	f := &a.fast
	frozen := !a.paused.IsZero() || a.closed || f.problem != "" || a.lease.left(a.clock.id, a.clock.boot()) == 0
	n, others := 0, 0.0
	changed := false
	for _, h := range a.knobs {
		if h.Resource != trimtab.CPU || !h.counts() {
			continue
		}
		if !h.movable() {
			if h.known && !h.gone {
				others += h.atMost(h.now)
			}
			continue
		}
		e := *h.envelope
		if frozen {
			e.Lend, e.Borrow = false, false
		}
		g := FastGroup{h.KnobID, e}
		if n >= len(f.groups) || f.groups[n] != g || f.knobs[n] != h {
			if !changed {
				// What was told stays as it is for who reads it.
				f.groups, f.knobs, changed = slices.Clone(f.groups[:min(n, len(f.groups))]), slices.Clone(f.knobs[:min(n, len(f.knobs))]), true
			}
		}
		if changed {
			f.groups, f.knobs = append(f.groups, g), append(f.knobs, h)
		}
		n++
	}
	if !changed && n < len(f.groups) {
		f.groups, f.knobs, changed = slices.Clone(f.groups[:n]), slices.Clone(f.knobs[:n]), true
	}
	limits := FastLimits{Until: a.lease.Until, Capacity: max(f.targets(), f.capacity-others), Lendable: f.lendable}
	if a.lease.Boot != a.clock.id {
		limits.Until = 0
	}
	if changed || limits != f.limits {
		f.generation++
	}
	f.limits = limits
}

// FastMove makes moves of the groups of a look, and returns what is set of each group
// afterwards: NaN where that is not known. Nothing is moved when the groups have changed
// since, outside an envelope, or up over what all may have together.
func (a *Actuator) FastMove(generation uint64, moves []FastMove, found []float64) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &a.fast
	found = found[:0]
	if a.regroup(); f.generation != generation || f.limits.Until <= a.clock.boot() {
		return found
	}
	sum := 0.0
	for _, h := range f.knobs {
		if !h.gone {
			sum += h.atMost(h.now)
		}
	}
	most := min(f.limits.Capacity, f.limits.Lendable+f.targets()) + slack
	for _, m := range moves {
		if m.Group < 0 || m.Group >= len(f.knobs) {
			continue
		}
		h, e := f.knobs[m.Group], &f.groups[m.Group].Envelope
		v := min(max(m.Set, e.Least()), e.Most())
		was := h.atMost(h.now)
		if !(v > 0) || h.gone || v > was && sum-was+v > most {
			continue
		}
		_ = a.shift(h, v, m.Burst) // what came of it is read back
		sum += h.atMost(h.now) - was
	}
	for _, h := range f.knobs {
		v := math.NaN()
		if !h.gone && !h.now.Unlimited {
			v = h.now.Value
		}
		found = append(found, v)
	}
	return found
}

// targets is what the groups have where all rest.
func (f *fast) targets() (sum float64) {
	for i := range f.groups {
		sum += f.groups[i].Envelope.Target
	}
	return sum
}

// FastTell takes in what the holding is to say of the knobs that are moved.
func (a *Actuator) FastTell(all []FastAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asks := false
	for i := range all {
		h := a.find(all[i].KnobID)
		if h == nil {
			continue
		}
		old := h.account
		account := all[i].Fast
		account.From = maps.Clone(account.From)
		h.account = &account
		asks = asks || account.Ask != nil && (old == nil || old.Ask == nil || old.Ask.Number != account.Ask.Number)
	}
	if asks {
		a.notify()
	}
}

// fastOf is what the holding says of one knob; nil: nothing.
func (a *Actuator) fastOf(h *held) *trimtab.Fast {
	if !h.moves() {
		if h.fastOff != "" && a.config.Fast != nil {
			v := trimtab.Units(h.amount())
			return &trimtab.Fast{Off: h.fastOff, Set: v.Value, Low: v.Value, High: v.Value, Envelope: trimtab.Envelope{Floor: v.Value, Target: v.Value, Ceiling: v.Value}}
		}
		return nil
	}
	out := trimtab.Fast{}
	if h.account != nil {
		out = *h.account
	}
	out.Envelope, out.Set, out.Off = *h.envelope, h.amount(), ""
	if h.account == nil {
		out.Low, out.High = out.Set, out.Set
	}
	switch {
	case a.fast.problem != "":
		out.Off = a.fast.problem
	case !a.paused.IsZero():
		out.Off = "paused"
	case !a.loops():
		out.Off = "the loop does not run"
	}
	return &out
}

// endLoans ends the loans of a loop of an earlier life, which nobody looks after any more.
func (a *Actuator) endLoans(ctx context.Context) {
	for _, up := range []bool{false, true} {
		for _, h := range a.knobs {
			if h.entry == nil || h.entry.Free == nil || !h.known || h.report() != "" || !h.entry.free(h.now) {
				continue
			}
			goal := h.entry.last()
			if same(h.now, goal) || h.now.Less(goal) != up {
				continue
			}
			if err := h.Knob.Write(ctx, goal); err != nil {
				a.logger.Warn("end the loan of an earlier life", "workload", h.Workload, "err", err)
			}
			a.observe(ctx, h)
		}
	}
}

// dropFast forgets what the loop may do with a knob that was restored.
func (h *held) dropFast() { h.envelope, h.account = nil, nil }
