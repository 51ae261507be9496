package actuator

import (
	"context"
	"fmt"
	"slices"
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

// refusal returns why the plan with an epoch and a sequence may not apply a recommended plan to this
// host's targets in mode recommend; "": it may.
func (ws *wishes) refusal(recommended string, epoch, sequence uint64) string {
	if ws.config.NoApply {
		return "not applied: the configuration of this host allows no apply (actuator.apply)"
	}
	w, ok := ws.wished[recommended]
	switch {
	case !ok || w.until <= ws.clock.boot():
		return fmt.Sprintf("not applied: this host heard of no command to apply %.60s: ask again with `trimtab apply`", recommended)
	case w.by.epoch != 0 && (w.by.epoch != epoch || w.by.sequence != sequence):
		return fmt.Sprintf("not applied: %.60s was carried out as %s", recommended, trimtab.PlanID(w.by.epoch, w.by.sequence))
	}
	return ""
}

// grant records the plan that carries out a wish.
func (ws *wishes) grant(recommended string, epoch, sequence uint64) {
	if w, ok := ws.wished[recommended]; ok && w.by.epoch == 0 {
		w.by.epoch, w.by.sequence = epoch, sequence
		ws.wished[recommended] = w
	}
}

// applies reports whether the plan applies a recommended one to a target in mode recommend here.
func (ks *knobs) applies(p *trimtab.Plan) bool {
	return p.Applies != "" && slices.ContainsFunc(p.Actions, func(action trimtab.Action) bool {
		if action.Host != ks.config.Host || action.Mode != trimtab.Act {
			return false
		}
		h := ks.find(action.KnobID)
		return h != nil && h.Mode == trimtab.Recommend
	})
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
	wait := a.wishes.missing(p.Applies) && p.Validate() == nil && a.knobs.applies(p) && a.wishes.mayWait()
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
		if wait = a.wishes.missing(p.Applies); !wait {
			a.wishes.waitAgain = 0 // the wait succeeded, so the next plan may wait at once
		}
		a.mu.Unlock()
	}
}

// missing reports whether no command to apply a recommended plan has arrived, and one may.
func (ws *wishes) missing(recommended string) bool {
	_, known := ws.wished[recommended]
	return recommended != "" && !known && !ws.config.NoApply
}

// mayWait reports whether a plan may wait for its wish now, and if so, puts off the next that may.
func (ws *wishes) mayWait() bool {
	now := ws.clock.boot()
	may := now >= ws.waitAgain
	if may {
		ws.waitAgain = now + wishPause
	}
	return may
}
