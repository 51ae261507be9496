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

// wishFor is how long a wish is fresh when there is no Limits.MaxLease.
const wishFor = 2 * time.Minute

// maxWishes bounds what is kept of wishes: nobody asks for more in that time.
const maxWishes = 100

// wishes notes an Apply command, unless it is stale or from the future: the
// bus keeps commands for an hour, and who starts anew hears them all.
func (a *Actuator) wishes(c *trimtab.Command) {
	fresh := a.config.Limits.MaxLease
	if fresh == 0 {
		fresh = wishFor
	}
	now, age := a.clock.boot(), a.clock.wall().Sub(c.Time)
	for plan, w := range a.wished {
		if w.until <= now {
			delete(a.wished, plan)
		}
	}
	old, known := a.wished[c.Plan]
	if age > fresh || age < -a.config.Limits.Skew || known && !c.Time.After(old.asked) || len(a.wished) >= maxWishes {
		return
	}
	a.wished[c.Plan] = wish{asked: c.Time, until: now + fresh - max(0, age)}
	select {
	case a.heard <- struct{}{}:
	default:
	}
}

// unwished says why the plan may not act on the recommending targets of this
// host that it means to act on, or "".
func (a *Actuator) unwished(p *trimtab.Plan) string {
	if p.Applies == "" || !a.appliesTo(p) {
		return ""
	}
	if a.config.NoApply {
		return "not applied: the configuration of this host allows no apply (actuator.apply)"
	}
	w, ok := a.wished[p.Applies]
	switch {
	case !ok || w.until <= a.clock.boot():
		return fmt.Sprintf("not applied: this host heard of no command to apply %.60s: ask again with `trimtab apply`", p.Applies)
	case w.by.epoch != 0 && (w.by.epoch != p.Epoch || w.by.sequence != p.Sequence):
		return fmt.Sprintf("not applied: %.60s was carried out as %s", p.Applies, trimtab.PlanID(w.by.epoch, w.by.sequence))
	}
	return ""
}

// appliesTo reports whether the plan would act on a recommending target here.
func (a *Actuator) appliesTo(p *trimtab.Plan) bool {
	for i := range p.Actions {
		action := &p.Actions[i]
		if action.Host != a.config.Host || action.Mode != trimtab.Act {
			continue
		}
		if h := a.find(action.KnobID); h != nil && h.Mode == trimtab.Recommend {
			return true
		}
	}
	return false
}

// grant binds the wish to the plan that is about to carry it out.
func (a *Actuator) grant(p *trimtab.Plan) {
	if w, ok := a.wished[p.Applies]; ok && w.by.epoch == 0 && a.appliesTo(p) {
		w.by.epoch, w.by.sequence = p.Epoch, p.Sequence
		a.wished[p.Applies] = w
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
	now := a.clock.boot()
	_, known := a.wished[p.Applies]
	wait := p.Applies != "" && !known && !a.config.NoApply && p.Validate() == nil && a.appliesTo(p) && now >= a.waitAgain
	if wait {
		a.waitAgain = now + wishPause
	}
	a.mu.Unlock()
	if !wait {
		return
	}
	limit := time.After(wishWait)
	for {
		select {
		case <-ctx.Done():
			return
		case <-limit:
			return
		case <-a.heard:
		}
		a.mu.Lock()
		_, known := a.wished[p.Applies]
		if known {
			a.waitAgain = 0 // it was worth it
		}
		a.mu.Unlock()
		if known {
			return
		}
	}
}
