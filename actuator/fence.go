package actuator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// fence decides which plans are accepted, and until when what they set holds.
type fence struct {
	*base
	position position
	lease    lease
	// returned is set once what was borrowed was to go back, until the next lease.
	returned bool
	// expired is set once the lease ran out, until the next one.
	expired bool
	// paused is when the pause in force was asked for; zero: not paused.
	paused time.Time
	closed bool
	// outcomes answer repeated deliveries of the plan at position, by step.
	outcomes map[int]*answer
}

// answer is what a step was answered, with the step, so that another one of the
// same name is told from a repetition.
type answer struct {
	plan    *trimtab.Plan
	outcome *trimtab.Outcome
}

// left is how long the lease still holds.
func (f *fence) left() time.Duration { return f.lease.left(f.clock.id, f.clock.boot()) }

// leftBorrowed is how long what is above a baseline may still stay there.
func (f *fence) leftBorrowed() time.Duration {
	return f.lease.borrowed().left(f.clock.id, f.clock.boot())
}

// check says why a step must not be carried out, or "", and what the same step was answered
// before; nil: nothing.
func (f *fence) check(p *trimtab.Plan, at position) (kind, why string, again *trimtab.Outcome) {
	if earlier := f.outcomes[at.Step]; earlier != nil && at == (position{f.position.Epoch, f.position.Sequence, at.Step}) {
		if alike(earlier.plan, p) {
			return "repeated", "", earlier.outcome
		}
		return "stale", fmt.Sprintf(trimtab.Overtaken+"another plan %s step %d was accepted: two planners lead in one epoch, or one of the plans was forged", p.ID(), p.Step), nil
	}
	if err := p.Validate(); err != nil {
		return "invalid", err.Error(), nil
	}
	switch {
	case f.closed:
		return "refused", "the actuator is stopping", nil
	case p.Pool != f.config.Pool:
		return "refused", fmt.Sprintf("plan is for pool %s, this host serves %s", p.Pool, f.config.Pool), nil
	case !trimtab.PlausibleEpoch(at.Epoch, f.clock.wall()):
		return "refused", fmt.Sprintf("epoch %d: no pool can have had so many leaders: it was made up, or this host's clock is wrong", at.Epoch), nil
	case !trimtab.PlausibleEpoch(f.position.Epoch, f.clock.wall()):
		// What was accepted was made up, when this clock was ahead: it must not
		// lock out those who lead.
	case at.Epoch < f.position.Epoch:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"epoch %d, a leader of epoch %d was accepted", at.Epoch, f.position.Epoch), nil
	case at.compare(f.position) < 0:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"plan %s step %d, %s step %d was accepted",
			p.ID(), p.Step, trimtab.PlanID(f.position.Epoch, f.position.Sequence), f.position.Step), nil
	}
	lease, skew := f.config.Limits.lease(p).Duration(), f.config.Limits.Skew
	switch age := f.clock.wall().Sub(p.Time); {
	case age >= lease:
		return "expired", fmt.Sprintf("expired: made %v ago with a lease of %v", age.Round(time.Millisecond), lease), nil
	case age < -skew:
		return "refused", fmt.Sprintf("from the future: dated %v, this host's clock may be %v behind: check the clocks", p.Time.UTC().Format(time.RFC3339), skew), nil
	}
	return "", "", nil
}

// alike reports whether two steps say the same.
func alike(p, q *trimtab.Plan) bool {
	a, err := json.Marshal(p)
	b, bad := json.Marshal(q)
	return err == nil && bad == nil && bytes.Equal(a, b) // one with no number in it is invalid
}

// take accepts a step and its lease.
func (f *fence) take(at position, until lease) {
	if at.Epoch != f.position.Epoch || at.Sequence != f.position.Sequence {
		clear(f.outcomes)
	}
	f.position, f.lease, f.expired, f.returned = at, until, false, false
}

// keep renews the lease of a pause when half of it is gone, and that of what is borrowed
// at once.
func (f *fence) keep() {
	if f.paused.IsZero() {
		return
	}
	length := f.lease.Length.Duration()
	now := f.clock.boot()
	if f.left() > length/2 && f.lease.BorrowUntil == 0 {
		return
	}
	l := f.lease
	l.Boot, l.Until, l.BorrowUntil = f.clock.id, saturate(now, length), 0
	_ = f.store("renew the lease of a pause", put(leaseKey, l))
	f.lease = l // in force even when it could not be stored: a pause holds
}
