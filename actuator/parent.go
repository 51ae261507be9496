package actuator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// groupAbove controls the parent of the pool's groups, and the quotas of groups that share by
// weight.
type groupAbove struct {
	*base
	knobs     *knobs
	baselines *baselines
	lending   *lending
	host      *host
	// why is why the parent group does not limit the pool's groups, and remedy what to do about it;
	// "": it does.
	why, remedy string
}

// open takes over the parent group, and finds out, before a plan needs it, whether it may be set.
func (g *groupAbove) open(ctx context.Context) {
	if g.config.Parent == nil {
		return
	}
	id := g.config.here(trimtab.KnobID{Workload: "parent of the pool", Resource: trimtab.CPU})
	g.knobs.parent = newManaged(Target{KnobID: id, Knob: g.config.Parent, Max: math.MaxInt32, Mode: trimtab.Act})
	if err := g.config.Parent.MayWrite(ctx); err != nil {
		g.note(noParent+err.Error(), g.advice(err))
	}
}

// advice says what to do if the parent group cannot be set.
func (g *groupAbove) advice(err error) string {
	if g.config.Fast {
		return ParentRemedy(err)
	}
	return "see what is said above, and mend that; or write knob: {cpu: {cap: always}}, and each workload has a quota of its own"
}

// shares reports whether the knob's amount is set as a share by weight.
func (h *managed) shares() bool {
	return h.can.Shared != nil && h.Mode == trimtab.Act && !h.block.released && h.report() == ""
}

// capped reports whether its share is a limit, too.
func (h *managed) capped() bool {
	return h.can.Shared != nil && h.can.Shared.Capped()
}

// recaps reports whether an action changes whether a share is also a limit.
func (h *managed) recaps(capped bool) bool { return h.can.Shared != nil && h.capped() != capped }

// contended reports whether the knob is a share of a quota that is used up.
func (h *managed) contended() bool { return h.can.Shared != nil && h.can.Shared.Contended() }

// write writes the value of a knob. For a share it also sets the share's own limit.
func (g *groupAbove) write(ctx context.Context, h *managed, goal trimtab.Amount, capped bool) error {
	k := h.can.Shared
	if same(h.now, goal) && !h.recaps(capped) {
		return nil // only the envelope changes
	}
	if k != nil {
		k.Cap(capped)
	}
	if err := h.Knob.Write(ctx, goal); err != nil || k == nil || h.entry == nil {
		return err
	}
	return k.Adopt(ctx, g.knobs.above())
}

// goal returns the parent group's quota: the pool's capacity on this host, or, if the pool has
// other hosts and shares by weight, the sum of the shares, so that all hosts together do not exceed
// the pool's capacity.
func (g *groupAbove) goal(most float64) trimtab.Amount {
	if g.config.Shared && slices.ContainsFunc(g.knobs.all, (*managed).shares) {
		if now, _ := g.host.sums(nil); now[trimtab.CPU] > 0 {
			most = min(most, now[trimtab.CPU])
		}
	}
	return g.knobs.parent.Knob.Nearest(trimtab.Units(most))
}

// fit lowers the own quotas of groups that share by weight to the next quota of their parent.
func (g *groupAbove) fit(ctx context.Context, capacity float64) {
	if g.knobs.parent != nil && g.reach(ctx, g.knobs.parent) == nil && g.goal(capacity).Less(g.knobs.parent.now) {
		g.lighten(ctx, g.goal(capacity), Shared.Fit)
	}
}

// lift removes the own quotas of groups that share by weight once the parent group has a quota,
// which is the limit from then on.
func (g *groupAbove) lift(ctx context.Context) {
	g.lighten(ctx, g.knobs.above(), Shared.Adopt)
}

// lighten runs one step of changing from quotas to shares, after journaling it.
func (g *groupAbove) lighten(ctx context.Context, above trimtab.Amount, step func(Shared, context.Context, trimtab.Amount) error) {
	if !slices.ContainsFunc(g.knobs.all, (*managed).shares) || g.knobs.parent != nil && (g.why != "" || g.reach(ctx, g.knobs.parent) != nil) {
		return // bind reports the reason, and tries again
	}
	for _, h := range g.knobs.all {
		if !h.shares() || g.knobs.claim(ctx, h) != "" {
			continue
		}
		k := h.can.Shared
		done, err := k.Adopted(ctx, above)
		if err == nil && !done {
			err = g.lightenOne(ctx, h, above, step)
		}
		if err != nil {
			g.logger.Warn("lift own limit", "workload", h.Workload, "knob", h.Knob.String(), "err", err)
		}
	}
}

func (g *groupAbove) lightenOne(ctx context.Context, h *managed, above trimtab.Amount, step func(Shared, context.Context, trimtab.Amount) error) error {
	if h.entry == nil {
		e := &entry{KnobID: h.KnobID, ID: h.id, Undo: h.Knob.Undo(), Baseline: h.now, Wrote: []trimtab.Amount{h.now}}
		if err := g.journal.Append(put(e.journalKey(), e)); err != nil {
			return err
		}
		h.entry = e
	}
	return step(h.can.Shared, ctx, above)
}

// unlift restores the own quotas of groups that share by weight if the parent group cannot carry
// the limit.
func (g *groupAbove) unlift(ctx context.Context) {
	g.baselines.restore(ctx, g.knobs.where(func(h *managed) bool { return h.entry != nil && h.shares() }))
}

// note records why the parent group does not limit the groups below it, and what to do about it;
// "": it does.
func (g *groupAbove) note(why, remedy string) {
	if g.config.Fast {
		g.lending.note(why, remedy)
	}
	if g.why != why {
		g.why, g.remedy = why, remedy
		g.reportProblem("the group above the pool's", why, remedy)
	}
}

// bind sets the parent group's quota to the pool's capacity on this host, if that changed. It
// raises the quota before those below it rise, and lowers it after they fell; if groups share by
// weight, it lowers the quota at once. raise says which of the two is due; move says that a knob of
// the present plan gets an envelope.
func (g *groupAbove) bind(ctx context.Context, capacity float64, move, raise bool) {
	h := g.knobs.parent
	shared := slices.ContainsFunc(g.knobs.all, (*managed).shares)
	if h == nil || !shared && !slices.ContainsFunc(g.knobs.all, func(k *managed) bool { return k.moves() }) && !move {
		return
	}
	goal := g.goal(capacity)
	err := g.reach(ctx, h)
	if err == nil && shared && h.entry == nil && h.now.Less(goal) {
		return // the operator's own limit is lower
	}
	if err == nil && (same(h.now, goal) || !shared && h.now.Less(goal) != raise) {
		if same(h.now, goal) {
			g.note("", "")
		}
		return
	}
	if err == nil && shared && goal.Less(h.now) {
		g.lighten(ctx, goal, Shared.Fit) // the kernel refuses a quota below that of a child
	}
	if err == nil {
		err = g.bindTo(ctx, h, goal)
	}
	if err != nil {
		g.note(noParent+err.Error(), g.advice(err))
		g.unlift(ctx)
		return
	}
	g.note("", "")
}

// reach returns why the parent group cannot be used now; nil: it can.
func (g *groupAbove) reach(ctx context.Context, h *managed) error {
	if why := g.knobs.claim(ctx, h); why != "" {
		return errors.New(why)
	}
	if !g.knobs.observe(ctx, h) {
		if _, err := h.Knob.Read(ctx); err != nil {
			return err
		}
		return errors.New(h.block.problem) // the next plan reads it again
	}
	if h.block.foreign {
		return errors.New(h.block.problem)
	}
	return nil
}

// bindTo sets the parent group's quota, after journaling it.
func (g *groupAbove) bindTo(ctx context.Context, h *managed, goal trimtab.Amount) error {
	e := &entry{KnobID: h.KnobID, Undo: h.Knob.Undo(), Baseline: h.now, Wrote: []trimtab.Amount{goal}, Above: true}
	if old := h.entry; old != nil {
		e.Baseline, e.Undo, e.Wrote = old.Baseline, old.Undo, []trimtab.Amount{h.now, goal}
	}
	if err := g.journal.Append(put(e.journalKey(), e)); err != nil {
		return err
	}
	h.entry = e
	if err := h.Knob.Write(ctx, goal); err != nil {
		return err
	}
	if !g.knobs.observe(ctx, h) || !same(h.now, goal) {
		return fmt.Errorf("wrote %v, read back %v: %w", goal, h.now, trimtab.ErrRefused)
	}
	return nil
}
