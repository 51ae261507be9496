package actuator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// fence decides which plans are accepted, and how long their allocation lasts.
type fence struct {
	*base
	position position
	lease    lease
	// returned says that borrowed amounts were given back since the last lease began.
	returned bool
	// expired says that the lease has expired, until the next one begins.
	expired bool
	// paused is the time of the command that paused the actuator; zero: it is not paused.
	paused time.Time
	closed bool
	// outcomes has the outcomes of the steps of the plan at position, to answer repeated
	// deliveries.
	outcomes map[int]*answer
}

// answer is the outcome of a step, with the step itself, to distinguish a repetition from another
// step with the same name.
type answer struct {
	plan    *trimtab.Plan
	outcome *trimtab.Outcome
}

// left returns the time until the lease expires.
func (f *fence) left() time.Duration { return f.lease.left(f.clock.id, f.clock.boot()) }

// leftBorrowed returns how long knobs may still stay above their baselines.
func (f *fence) leftBorrowed() time.Duration {
	return f.lease.borrowed().left(f.clock.id, f.clock.boot())
}

// check returns why a step must not be carried out, or "", and the outcome of the same step if it
// was carried out before, else nil.
func (f *fence) check(p *trimtab.Plan) (kind, why string, again *trimtab.Outcome) {
	at := position{p.Epoch, p.Sequence, p.Step}
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
		// That time was accepted while this host's clock was ahead; it must not block the current
		// leader.
	case at.Epoch < f.position.Epoch:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"epoch %d, a leader of epoch %d was accepted", at.Epoch, f.position.Epoch), nil
	case at.compare(f.position) < 0:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"plan %s step %d, %s step %d was accepted",
			p.ID(), p.Step, trimtab.PlanID(f.position.Epoch, f.position.Sequence), f.position.Step), nil
	}
	lease, skew := f.config.Limits.lease(p.Lease).Duration(), f.config.Limits.Skew
	switch age := f.clock.wall().Sub(p.Time); {
	case age >= lease:
		return "expired", fmt.Sprintf("expired: made %v ago with a lease of %v", age.Round(time.Millisecond), lease), nil
	case age < -skew:
		return "refused", fmt.Sprintf("from the future: dated %v, this host's clock may be %v behind: check the clocks", p.Time.UTC().Format(time.RFC3339), skew), nil
	}
	return "", "", nil
}

// alike reports whether two values have equal contents, as messages.
func alike(x, y any) bool {
	a, err := json.Marshal(x)
	b, bad := json.Marshal(y)
	return err == nil && bad == nil && bytes.Equal(a, b) // a value that cannot be encoded is invalid
}

// adopt accepts a step, and starts its lease.
func (f *fence) adopt(at position, until lease) {
	if at.Epoch != f.position.Epoch || at.Sequence != f.position.Sequence {
		clear(f.outcomes)
	}
	f.position, f.lease, f.expired, f.returned = at, until, false, false
}

// keep renews the lease during a pause when half of it is over, and the lease of borrowed amounts
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
	f.lease = l // the pause takes effect even if it cannot be stored
}
