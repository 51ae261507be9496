package actuator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// approval is a person's command to apply a recommended plan, as this host received it. A plan that
// claims to carry out such a command may act on targets in mode recommend only if the host has the
// approval.
type approval struct {
	// asked is the time in the command; a repeated command has the same.
	asked time.Time
	// until is when the approval expires, on the boot clock.
	until time.Duration
	// by is the first plan that carried out the approval. No other plan may.
	by struct{ epoch, sequence uint64 }
}

// approvals has the commands to apply a plan that have not expired.
type approvals struct {
	*base
	byPlan map[string]approval
	// arrived receives an element when an approval arrives; it has a buffer of one.
	arrived chan struct{}
	// waitAgain is the earliest time at which another plan may wait for its approval.
	waitAgain time.Duration
}

// approvalValid is how long an approval is valid if there is no Limits.MaxLease.
const approvalValid = 2 * time.Minute

// maxApprovals bounds the approvals that are kept; people do not send more within approvalValid.
const maxApprovals = 100

// observe records an Apply command, unless it is stale or dated in the future: the bus keeps commands
// for an hour, and a new subscriber receives all of them.
func (ws *approvals) observe(c *trimtab.Command) {
	fresh := ws.config.Limits.MaxLease
	if fresh == 0 {
		fresh = approvalValid
	}
	now, age := ws.clock.boot(), ws.clock.wall().Sub(c.Time)
	for plan, w := range ws.byPlan {
		if w.until <= now {
			delete(ws.byPlan, plan)
		}
	}
	old, known := ws.byPlan[c.Plan]
	if age > fresh || age < -ws.config.Limits.Skew || known && !c.Time.After(old.asked) || len(ws.byPlan) >= maxApprovals {
		return
	}
	ws.byPlan[c.Plan] = approval{asked: c.Time, until: now + fresh - max(0, age)}
	select {
	case ws.arrived <- struct{}{}:
	default:
	}
}

// refusal returns why the plan with an epoch and a sequence may not apply a recommended plan to this
// host's targets in mode recommend; "": it may.
func (ws *approvals) refusal(recommended string, epoch, sequence uint64) string {
	if ws.config.NoApply {
		return "not applied: the configuration of this host allows no apply (actuator.apply)"
	}
	w, ok := ws.byPlan[recommended]
	switch {
	case !ok || w.until <= ws.clock.boot():
		return fmt.Sprintf("not applied: this host heard of no command to apply %.60s: ask again with `trimtab apply`", recommended)
	case w.by.epoch != 0 && (w.by.epoch != epoch || w.by.sequence != sequence):
		return fmt.Sprintf("not applied: %.60s was carried out as %s", recommended, trimtab.PlanID(w.by.epoch, w.by.sequence))
	}
	return ""
}

// grant records the plan that carries out an approval.
func (ws *approvals) grant(recommended string, epoch, sequence uint64) {
	if w, ok := ws.byPlan[recommended]; ok && w.by.epoch == 0 {
		w.by.epoch, w.by.sequence = epoch, sequence
		ws.byPlan[recommended] = w
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
	approvalWait  = 2 * time.Second
	approvalPause = 10 * time.Second
)

// awaitApproval waits for the command that a plan needs to be accepted.
func (a *Actuator) awaitApproval(ctx context.Context, p *trimtab.Plan) {
	a.mu.Lock()
	wait := a.approvals.missing(p.Applies) && p.Validate() == nil && a.knobs.applies(p) && a.approvals.mayWait()
	a.mu.Unlock()
	for limit := time.After(approvalWait); wait; {
		select {
		case <-ctx.Done():
			return
		case <-limit:
			return
		case <-a.approvals.arrived:
		}
		a.mu.Lock()
		if wait = a.approvals.missing(p.Applies); !wait {
			a.approvals.waitAgain = 0 // the wait succeeded, so the next plan may wait at once
		}
		a.mu.Unlock()
	}
}

// missing reports whether no command to apply a recommended plan has arrived, and one may.
func (ws *approvals) missing(recommended string) bool {
	_, known := ws.byPlan[recommended]
	return recommended != "" && !known && !ws.config.NoApply
}

// mayWait reports whether a plan may wait for its approval now, and if so, puts off the next that may.
func (ws *approvals) mayWait() bool {
	now := ws.clock.boot()
	may := now >= ws.waitAgain
	if may {
		ws.waitAgain = now + approvalPause
	}
	return may
}
