package hosttest

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/trimtab/trimtab"
)

// skew is how far in the future a plan's time may be.
const skew = 30 * time.Second

// answered is an outcome with the plan that it answers.
type answered struct {
	plan    *trimtab.Plan
	outcome *trimtab.Outcome
}

// move is one action to carry out.
type move struct {
	knob   *state
	goal   trimtab.Amount
	result *trimtab.Result
}

// Handle carries out one step of a plan and returns its outcome.
func (h *Host) Handle(now time.Time, p *trimtab.Plan) *trimtab.Outcome {
	o := &trimtab.Outcome{Pool: p.Pool, Host: h.Name, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: now}
	at := position{p.Epoch, p.Sequence, p.Step}
	h.settle(now)
	if a := h.answers[p.Step]; a != nil && at.epoch == h.at.epoch && at.sequence == h.at.sequence {
		if reflect.DeepEqual(a.plan, p) {
			return a.outcome
		}
		o.Refused = trimtab.Overtaken + "another plan of this name was accepted"
		return o
	}
	if o.Refused = h.refuse(p, at, now); o.Refused != "" {
		return o
	}
	if at.epoch != h.at.epoch || at.sequence != h.at.sequence {
		clear(h.answers)
	}
	h.at, h.lease = at, now.Add(p.Lease.Duration())
	moves := h.prepare(p, o)
	for _, m := range moves {
		m.knob.note(m.goal)
	}
	for _, shrinks := range []bool{true, false} {
		for _, m := range moves {
			if m.goal.Less(m.result.Before) == shrinks {
				h.move(p, m, now)
			}
		}
	}
	h.answers[p.Step] = &answered{p, o}
	return o
}

// refuse says why a plan as a whole must not be carried out, or "".
func (h *Host) refuse(p *trimtab.Plan, at position, now time.Time) string {
	if err := p.Validate(); err != nil {
		return err.Error()
	}
	switch age := now.Sub(p.Time); {
	case p.Pool != h.Pool:
		return "plan is for pool " + p.Pool
	case !trimtab.PlausibleEpoch(at.epoch, now):
		return "an epoch that was made up"
	case at.before(h.at):
		return fmt.Sprintf(trimtab.Overtaken+"%s was accepted", trimtab.PlanID(h.at.epoch, h.at.sequence))
	case age >= p.Lease.Duration():
		return "expired: older than its lease"
	case age < -skew:
		return "from the future"
	}
	return ""
}

// prepare checks the actions of this host, and returns those to carry out.
func (h *Host) prepare(p *trimtab.Plan, o *trimtab.Outcome) (moves []*move) {
	o.Results = make([]trimtab.Result, 0, len(p.Actions))
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Host != h.Name {
			continue
		}
		o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Asked: a.Set})
		m := &move{result: &o.Results[len(o.Results)-1]}
		if h.judge(a, m) {
			moves = append(moves, m)
		}
	}
	return moves
}

// judge fills the result of an action that needs no write, and reports whether it
// needs one.
func (h *Host) judge(a *trimtab.Action, m *move) bool {
	r, k := m.result, h.find(a.KnobID)
	if k == nil {
		r.Status, r.Reason = trimtab.Refused, "unknown target"
		return false
	}
	m.knob = k
	r.Before, r.Found, r.Effective, r.Known = k.Now, k.Now, k.old, true
	goal := trimtab.Units(min(max(a.Set.Value, k.Min), k.Max))
	if a.Set.Unlimited {
		goal = trimtab.Units(k.Max)
	}
	if goal != a.Set {
		r.Reason = "clamped to the bounds"
	}
	m.goal = k.nearest(goal)
	switch {
	case k.Mode == trimtab.Off:
		r.Status, r.Reason = trimtab.Refused, "mode off"
	case k.foreign():
		r.Status, r.Reason = trimtab.Refused, "changed by somebody else"
	case same(k.Now, m.goal):
		r.Status = k.status(trimtab.Equal)
	case !same(k.Now, k.nearest(a.Expect)) && !same(k.Now, a.Expect):
		r.Status, r.Reason = trimtab.Refused, fmt.Sprintf("stale: found %v, the plan expects %v", k.Now, a.Expect)
	case a.Mode != trimtab.Act || k.Mode != trimtab.Act:
		r.Status = trimtab.Recommended
	default:
		return true
	}
	return false
}

func (k *state) status(done trimtab.Status) trimtab.Status {
	if k.old != nil {
		return trimtab.Pending
	}
	return done
}

// note records the value that is about to be written, as the journal does.
func (k *state) note(goal trimtab.Amount) {
	if k.wrote == nil {
		k.baseline, k.wrote = k.Now, []trimtab.Amount{goal}
		return
	}
	k.wrote = []trimtab.Amount{k.Now, goal}
}

// move makes the one write and reads back.
func (h *Host) move(p *trimtab.Plan, m *move, now time.Time) {
	k, r := m.knob, m.result
	if r.Before.Less(m.goal) {
		room := math.Inf(1)
		if c, ok := h.Capacity[k.Resource]; ok {
			room = c
		}
		if sum := h.sumWith(k, m.goal); sum > min(p.CapacityOf(k.Resource), room)+slack {
			r.Status, r.Reason = trimtab.Refused, fmt.Sprintf("the sum would be %.4g", sum)
			return
		}
	}
	wrote := k.write(now, m.goal)
	r.Found, r.Effective = k.Now, k.old
	if r.Status = k.status(trimtab.Written); !wrote {
		r.Status, r.Reason = trimtab.Failed, "the write failed"
	}
}

// sumWith returns the sum over the knobs that count, with one at v.
func (h *Host) sumWith(k *state, v trimtab.Amount) (sum float64) {
	for _, o := range h.knobs {
		switch {
		case o == k:
			sum += o.atMost(v)
		case o.Resource != k.Resource || o.Mode != trimtab.Act && o.wrote == nil:
		case o.Resource == trimtab.CPU && o.Now.Unlimited && o.old == nil: // an unlimited knob may use what others leave idle
			sum += o.Min
		default:
			sum += o.atMost(o.Now)
		}
	}
	return sum
}
