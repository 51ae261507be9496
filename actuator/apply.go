package actuator

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// wish is a person's command to apply a recommended plan, as this host heard
// it: a plan that claims to apply one acts on recommending targets only if
// there is such a wish.
type wish struct {
	// asked is the command's own time, which tells a repetition from another.
	asked time.Time
	// until is when it is history, on the boot clock.
	until time.Duration
	// by is the plan that carries it out, once there is one: no other may.
	by struct{ epoch, sequence uint64 }
}

// wishes are the plans that a person asked to apply.
type wishes struct {
	*base
	knobs  *knobs
	wished map[string]wish
	// heard has room for one: the news that there is another.
	heard chan struct{}
	// waitAgain is when a plan may wait for its wish again.
	waitAgain time.Duration
}

// wishFor is how long a wish is fresh when there is no Limits.MaxLease.
const wishFor = 2 * time.Minute

// maxWishes bounds what is kept of wishes: nobody asks for more in that time.
const maxWishes = 100

// hear notes an Apply command, unless it is stale or from the future: the
// bus keeps commands for an hour, and who starts anew hears them all.
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

// unwished says why the plan may not act on the recommending targets of this
// host that it means to act on, or "".
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

// appliesTo reports whether the plan would act on a recommending target here.
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

// grant binds the wish to the plan that is about to carry it out.
func (ws *wishes) grant(p *trimtab.Plan) {
	if w, ok := ws.wished[p.Applies]; ok && w.by.epoch == 0 && ws.appliesTo(p) {
		w.by.epoch, w.by.sequence = p.Epoch, p.Sequence
		ws.wished[p.Applies] = w
	}
}

// The command and the plan that it leads to come on two subjects, and the plan
// may be here first: it then waits for the command, but at most so long, and
// not for one forged plan after the other.
const (
	wishWait  = 2 * time.Second
	wishPause = 10 * time.Second
)

// awaitWish waits for the command of a plan that would otherwise be refused
// for want of it.
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

// awaits reports whether a plan is to wait for its wish.
func (ws *wishes) awaits(p *trimtab.Plan) bool {
	now := ws.clock.boot()
	_, known := ws.wished[p.Applies]
	wait := p.Applies != "" && !known && !ws.config.NoApply && p.Validate() == nil && ws.appliesTo(p) && now >= ws.waitAgain
	if wait {
		ws.waitAgain = now + wishPause
	}
	return wait
}

// came reports whether the wish that a plan waits for is there.
func (ws *wishes) came(p *trimtab.Plan) bool {
	_, known := ws.wished[p.Applies]
	if known {
		ws.waitAgain = 0 // it was worth it
	}
	return known
}
