package actuator

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// wish is a person's command to apply a recommended plan, as this host received it. A plan that
// claims to carry out such a command may act on targets in mode recommend only if the host has the
// wish.
type wish struct {
	// asked is the time in the command; a repeated command has the same.
	asked time.Time
	// until is when the wish expires, on the boot clock.
	until time.Duration
	// by is the first plan that carried out the wish. No other plan may.
	by struct{ epoch, sequence uint64 }
}

// wishes has the commands to apply a plan that have not expired.
type wishes struct {
	*base
	knobs  *knobs
	wished map[string]wish
	// heard receives an element when a wish arrives; it has a buffer of one.
	heard chan struct{}
	// waitAgain is the earliest time at which another plan may wait for its wish.
	waitAgain time.Duration
}

// wishFor is how long a wish is valid if there is no Limits.MaxLease.
const wishFor = 2 * time.Minute

// maxWishes bounds the wishes that are kept; people do not send more within wishFor.
const maxWishes = 100

// hear records an Apply command, unless it is stale or dated in the future: the bus keeps commands
// for an hour, and a new subscriber receives all of them.
func (ws *wishes) hear(c *trimtab.Command) {
	fresh := ws.config.Limits.MaxLease
	if fresh == 0 {
		fresh = wishFor
	}
	now, age := ws.clock.boot(), ws.clock.wall().Sub(c.Time)
	for plan, w := range ws.wished {
		if w.until <= now {
			delete(ws.wished, plan)
		}
	}
	old, known := ws.wished[c.Plan]
	if age > fresh || age < -ws.config.Limits.Skew || known && !c.Time.After(old.asked) || len(ws.wished) >= maxWishes {
		return
	}
	ws.wished[c.Plan] = wish{asked: c.Time, until: now + fresh - max(0, age)}
	select {
	case ws.heard <- struct{}{}:
	default:
	}
}

// unwished returns why the plan may not act on this host's targets in mode recommend; "": it may.
func (ws *wishes) unwished(p *trimtab.Plan) string {
	if p.Applies == "" || !ws.appliesTo(p) {
		return ""
	}
	if ws.config.NoApply {
		return "not applied: the configuration of this host allows no apply (actuator.apply)"
	}
	w, ok := ws.wished[p.Applies]
	switch {
	case !ok || w.until <= ws.clock.boot():
		return fmt.Sprintf("not applied: this host heard of no command to apply %.60s: ask again with `trimtab apply`", p.Applies)
	case w.by.epoch != 0 && (w.by.epoch != p.Epoch || w.by.sequence != p.Sequence):
		return fmt.Sprintf("not applied: %.60s was carried out as %s", p.Applies, trimtab.PlanID(w.by.epoch, w.by.sequence))
	}
	return ""
}

// appliesTo reports whether the plan would act on a target in mode recommend here.
func (ws *wishes) appliesTo(p *trimtab.Plan) bool {
	for i := range p.Actions {
		action := &p.Actions[i]
		if action.Host != ws.config.Host || action.Mode != trimtab.Act {
			continue
		}
		if h := ws.knobs.find(action.KnobID); h != nil && h.Mode == trimtab.Recommend {
			return true
		}
	}
	return false
}

// grant records that the plan carries out its wish.
func (ws *wishes) grant(p *trimtab.Plan) {
	if w, ok := ws.wished[p.Applies]; ok && w.by.epoch == 0 && ws.appliesTo(p) {
		w.by.epoch, w.by.sequence = p.Epoch, p.Sequence
		ws.wished[p.Applies] = w
	}
}

// A command and the plan that carries it out arrive on two subjects, and the plan may arrive first.
// It then waits for the command, with a time limit, and not again soon, so that forged plans cannot
// block the actuator.
const (
	wishWait  = 2 * time.Second
	wishPause = 10 * time.Second
)

// awaitWish waits for the command that a plan needs to be accepted.
func (a *Actuator) awaitWish(ctx context.Context, p *trimtab.Plan) {
	a.mu.Lock()
	wait := a.wishes.awaits(p)
	a.mu.Unlock()
	for limit := time.After(wishWait); wait; {
		select {
		case <-ctx.Done():
			return
		case <-limit:
			return
		case <-a.wishes.heard:
		}
		a.mu.Lock()
		wait = !a.wishes.came(p)
		a.mu.Unlock()
	}
}

// awaits reports whether a plan must wait for its wish.
func (ws *wishes) awaits(p *trimtab.Plan) bool {
	now := ws.clock.boot()
	_, known := ws.wished[p.Applies]
	wait := p.Applies != "" && !known && !ws.config.NoApply && p.Validate() == nil && ws.appliesTo(p) && now >= ws.waitAgain
	if wait {
		ws.waitAgain = now + wishPause
	}
	return wait
}

// came reports whether the wish for which a plan waits has arrived.
func (ws *wishes) came(p *trimtab.Plan) bool {
	_, known := ws.wished[p.Applies]
	if known {
		ws.waitAgain = 0 // the wait succeeded, so the next plan may wait at once
	}
	return known
}
