package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// late tells that something was asked for so long ago that a plan of then
// would have run out: it must not act on a state that nobody had before them.
func (p *Planner) late(now, asked time.Time) bool { return now.Sub(asked) > p.cfg.Lease }

// command does what a person asks. Repeated commands change nothing, and late
// ones change only what lasts: a pause holds until it is ended.
func (p *Planner) command(now time.Time, c *trimtab.Command) []trimtab.Value {
	if c.Pool != p.cfg.Pool {
		p.counts.ignored["command"]++
		return nil
	}
	switch c.Verb {
	case trimtab.Pause, trimtab.Resume:
		if c.Time.Before(p.told) && p.told.Sub(now) <= p.cfg.Lease {
			break
		}
		changed := p.isPaused() != (c.Verb == trimtab.Pause)
		// A clock that was ahead must not keep the next one from being heard.
		p.told, p.paused = soonest(c.Time, now), c.Verb == trimtab.Pause
		if p.paused {
			p.pending, p.wanted = nil, nil
		} else {
			p.takeBack()
		}
		if changed {
			return p.start(now, trimtab.Cause{Kind: trimtab.CauseKind(c.Verb)})
		}
		return nil
	case trimtab.Round:
		if !c.Time.After(p.asked) || p.late(now, c.Time) {
			break
		}
		p.asked = soonest(c.Time, now)
		return p.start(now, trimtab.Cause{Kind: trimtab.CauseCommand, By: by(c)})
	case trimtab.Apply:
		return p.apply(now, c)
	case trimtab.Release:
		if w := p.byName[c.Workload]; w != nil {
			w.released = true
			return nil
		}
	}
	p.counts.ignored["command"]++
	return nil
}

func soonest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// takeBack ends every release, as a resume does in the actuators.
func (p *Planner) takeBack() {
	for _, w := range p.workloads {
		w.released = false
	}
}

func by(c *trimtab.Command) string {
	if c.By == "" {
		return "somebody"
	}
	return c.By
}

// apply carries out the recommended actions of an earlier plan, once, as a
// plan of its own: shrinks first, grows as they are confirmed. When the plan
// is not known, or anything is not as it was, the new plan is empty, its Cause
// says so and Held says what differs.
func (p *Planner) apply(now time.Time, c *trimtab.Command) []trimtab.Value {
	if !p.counts.leading {
		return nil
	}
	if p.pending != nil {
		p.applies = c // after the plan under way
		return nil
	}
	r := &decision{planner: p, now: now, cause: trimtab.Cause{Kind: trimtab.CauseApply, Ref: c.Plan, By: by(c)}, heldBack: map[string]trimtab.Held{}}
	refuse := func(why string) []trimtab.Value {
		r.cause.Kind, r.cause.Text = trimtab.CauseRefused, why
		r.shrinks, r.grows = nil, nil
		p.counts.refused++
		return p.publish(r)
	}
	if p.late(now, c.Time) {
		return refuse(fmt.Sprintf("asked for %v ago", now.Sub(c.Time).Round(time.Second)))
	}
	i := slices.IndexFunc(p.recommended, func(q *trimtab.Plan) bool { return q.ID() == c.Plan })
	switch {
	case i < 0:
		return refuse("no recommendation of that name waits")
	case p.isPaused():
		return refuse("paused")
	}
	why := "the state has changed"
	for _, a := range p.recommended[i].Actions {
		if a.Mode != trimtab.Recommend {
			continue
		}
		a.Mode = trimtab.Act
		e, i := p.ledger.Knob(a.KnobID), p.index(a.Resource)
		switch {
		case e == nil || e.Gone() || i < 0 || p.byName[a.Workload] == nil || p.byName[a.Workload].released:
			r.heldBack[a.Workload] = trimtab.Held{Code: trimtab.HeldNoKnob, Text: "its knob is gone"}
		case e.Held.Problem != "":
			r.heldBack[a.Workload] = trimtab.Held{Code: trimtab.HeldKnob, Text: "knob: " + e.Held.Problem}
		case e.Held.Barred != "":
			r.heldBack[a.Workload] = trimtab.Held{Code: trimtab.HeldKnob, Text: "knob: " + e.Held.Barred}
			why = "a knob may not be written"
		case !e.Held.Now.Equal(a.Expect, grain*p.resources[i].Unit):
			r.heldBack[a.Workload] = trimtab.Held{Code: trimtab.HeldChanged, Text: fmt.Sprintf("found %s, the plan expected %s", e.Held.Now, a.Expect)}
		case a.Set.Less(a.Expect):
			r.shrinks = append(r.shrinks, a)
		default:
			r.grows = append(r.grows, a)
		}
	}
	if len(r.heldBack) > 0 {
		return refuse(why)
	}
	r.applies = c.Plan
	p.recommended = slices.Delete(p.recommended, i, i+1)
	return p.publish(r)
}
