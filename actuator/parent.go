package actuator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// openParent takes over the group above, and finds out whether it may be set before a plan
// wants it.
func (a *Actuator) openParent(ctx context.Context) {
	if a.config.Parent == nil {
		return
	}
	id := a.config.here(trimtab.KnobID{Workload: "parent of the pool", Resource: trimtab.CPU})
	a.parent = newHeld(Target{KnobID: id, Knob: a.config.Parent, Max: math.MaxInt32, Mode: trimtab.Act})
	if err := a.config.Parent.MayWrite(ctx); err != nil {
		a.parentProblem(noParent+err.Error(), a.parentRemedy(err))
	}
}

// parentRemedy says what to do where the group above cannot be set.
func (a *Actuator) parentRemedy(err error) string {
	if a.config.Fast {
		return ParentRemedy(err)
	}
	return "see what is said above, and mend that; or write knob: {cpu: {cap: always}}, and each workload has a quota of its own"
}

// shares reports whether the amount of a knob is set as a share by weight, and is set.
func (h *held) shares() bool {
	_, ok := h.Knob.(Shared)
	return ok && h.Mode == trimtab.Act && !h.released && h.report() == ""
}

// sharing is what the holding says of it.
func (h *held) sharing() bool { _, ok := h.Knob.(Shared); return ok }

// capped reports whether its share is a limit, too.
func (h *held) capped() bool {
	k, ok := h.Knob.(Shared)
	return ok && k.Capped()
}

// reserves reports whether its share is room on a machine, too.
func (h *held) reserves() bool {
	k, ok := h.Knob.(Shared)
	return ok && k.Reserves()
}

// recaps reports whether an action makes a share a limit that was none, or the other way round.
func (m *move) recaps() bool { return m.held.sharing() && m.held.capped() != m.action.Capped }

// set writes what a move is for, and what a share has as its own limit besides.
func (a *Actuator) set(ctx context.Context, m *move) error {
	h := m.held
	k, shared := h.Knob.(Shared)
	if same(h.now, m.goal) && !m.recaps() {
		return nil // only the envelope is new
	}
	if shared {
		k.Cap(m.action.Capped)
	}
	if err := h.Knob.Write(ctx, m.goal); err != nil || !shared || h.entry == nil {
		return err
	}
	return k.Adopt(ctx, a.above())
}

// above is what the group above has.
func (a *Actuator) above() trimtab.Amount {
	if a.parent == nil {
		return trimtab.Unlimited()
	}
	return a.parent.now
}

// goal is what the group above is to have by a plan: what the pool may give here, and, where it
// has other hosts and shares by weight, the sum of the shares, so that all hosts together give no
// more than the pool has.
func (a *Actuator) goal(p *trimtab.Plan) trimtab.Amount {
	most := min(p.CapacityOf(trimtab.CPU), a.room(trimtab.CPU))
	if a.config.Shared && slices.ContainsFunc(a.knobs, (*held).shares) {
		if now, _ := a.sums(nil); now[trimtab.CPU] > 0 {
			most = min(most, now[trimtab.CPU])
		}
	}
	return a.parent.Knob.Nearest(trimtab.Units(most))
}

// fit has what shares by weight have no more of its own than the group above is about to have.
func (a *Actuator) fit(ctx context.Context, p *trimtab.Plan) {
	if a.parent != nil && a.reachParent(ctx, a.parent) == nil && a.goal(p).Less(a.parent.now) {
		a.lighten(ctx, a.goal(p), Shared.Fit)
	}
}

// lift lifts the own limits of what shares by weight, once the group above is bound: what that
// has is the limit from then on.
func (a *Actuator) lift(ctx context.Context) {
	a.lighten(ctx, a.above(), Shared.Adopt)
}

// lighten takes a step towards shares of what the group above has, journal first.
func (a *Actuator) lighten(ctx context.Context, above trimtab.Amount, step func(Shared, context.Context, trimtab.Amount) error) {
	if !slices.ContainsFunc(a.knobs, (*held).shares) || a.parent != nil && (a.parentWhy != "" || a.reachParent(ctx, a.parent) != nil) {
		return // bind says why, and tries it
	}
	for _, h := range a.knobs {
		if !h.shares() || a.claim(ctx, h) != "" {
			continue
		}
		k := h.Knob.(Shared)
		done, err := k.Adopted(ctx, above)
		if err == nil && !done {
			err = a.lightenOne(ctx, h, above, step)
		}
		if err != nil {
			a.logger.Warn("lift own limit", "workload", h.Workload, "knob", k.String(), "err", err)
		}
	}
}

func (a *Actuator) lightenOne(ctx context.Context, h *held, above trimtab.Amount, step func(Shared, context.Context, trimtab.Amount) error) error {
	k := h.Knob.(Shared)
	if h.entry == nil {
		e := &entry{KnobID: h.KnobID, ID: h.id, Undo: k.Undo(), Baseline: h.now, Wrote: []trimtab.Amount{h.now}}
		if err := a.journal.Append(put(e.journalKey(), e)); err != nil {
			return err
		}
		h.entry = e
	}
	return step(k, ctx, above)
}

// unlift gives back what shares by weight where the group above cannot carry the limit.
func (a *Actuator) unlift(ctx context.Context) {
	var all []*held
	for _, h := range a.knobs {
		if h.entry != nil && h.shares() {
			all = append(all, h)
		}
	}
	a.restoreHeld(ctx, all)
}

// parentProblem notes why the group above does not bound what is below it, and what to do
// about it; "": it does.
func (a *Actuator) parentProblem(why, remedy string) {
	if a.config.Fast {
		a.fastProblem(why, remedy)
	}
	if a.parentWhy == why {
		return
	}
	a.parentWhy, a.parentDo = why, remedy
	level := slog.LevelWarn
	if why == "" {
		level = slog.LevelInfo
	}
	a.logger.Log(context.Background(), level, "the group above the pool's", "problem", why, "do", remedy)
	a.notify()
}

// bind sets the group above to what the pool may give here, when that changed and it may
// be: up before what is below it, down after, but at once where that shares by weight. raise
// says which is due.
func (a *Actuator) bind(ctx context.Context, p *trimtab.Plan, moves []*move, raise bool) {
	h := a.parent
	shared := slices.ContainsFunc(a.knobs, (*held).shares)
	if h == nil || !shared && !slices.ContainsFunc(a.knobs, func(k *held) bool { return k.moves() }) && !slices.ContainsFunc(moves, func(m *move) bool { return m.envelope != nil }) {
		return
	}
	goal := a.goal(p)
	err := a.reachParent(ctx, h)
	if err == nil && shared && h.entry == nil && h.now.Less(goal) {
		return // the site's own limit is the tighter one
	}
	if err == nil && (same(h.now, goal) || !shared && h.now.Less(goal) != raise) {
		if same(h.now, goal) {
			a.parentProblem("", "")
		}
		return
	}
	if err == nil && shared && goal.Less(h.now) {
		a.lighten(ctx, goal, Shared.Fit) // the kernel refuses less than what one below has
	}
	if err == nil {
		err = a.bindTo(ctx, h, goal)
	}
	if err != nil {
		a.parentProblem(noParent+err.Error(), a.parentRemedy(err))
		a.unlift(ctx)
		return
	}
	a.parentProblem("", "")
}

// reachParent reports why the group above cannot be used now; nil: it can.
func (a *Actuator) reachParent(ctx context.Context, h *held) error {
	if why := a.claim(ctx, h); why != "" {
		return errors.New(why)
	}
	if !a.observe(ctx, h) {
		if _, err := h.Knob.Read(ctx); err != nil {
			return err
		}
		return errors.New(h.problem) // it can be read again by the next plan
	}
	if h.foreign {
		return errors.New(h.problem)
	}
	return nil
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
