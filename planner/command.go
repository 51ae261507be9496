package planner

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// lateFor reports whether a request is so old that a plan made at the time would have expired: it
// must not act on a state that nobody had seen when it was made.
func lateFor(p *Planner, now, asked time.Time) bool { return now.Sub(asked) > p.cfg.Lease }

// command carries out a person's command. Repeated commands change nothing, and late ones change
// only lasting states: a pause lasts until it is ended.
func (p *Planner) command(now time.Time, c *trimtab.Command) []trimtab.Value {
	if c.Pool != p.cfg.Pool || p.seen.Again(c) {
		p.counts.ignored["command"]++
		return nil
	}
	switch c.Verb {
	case trimtab.Pause, trimtab.Resume:
		heard, changed := p.issue.Pause(now, c.Time, c.Verb == trimtab.Pause)
		switch {
		case !heard:
			p.counts.ignored["command"]++
			return nil
		case c.Verb == trimtab.Pause:
			p.wanted = nil
		default:
			takeBack(p)
		}
		if changed {
			return p.start(now, trimtab.Cause{Kind: codes.CauseKind(c.Verb)})
		}
		return nil
	case trimtab.Round:
		if !c.Time.After(p.asked) || lateFor(p, now, c.Time) {
			break
		}
		p.asked = soonest(c.Time, now)
		return p.start(now, trimtab.Cause{Kind: codes.CauseCommand, By: c.Asker()})
	case trimtab.Apply:
		return p.apply(now, c)
	case trimtab.Release:
		if w := p.byName[c.Workload]; w != nil {
			w.Released = true
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
func takeBack(p *Planner) {
	for _, w := range p.workloads {
		w.Released = false
	}
}

// apply carries out the recommended actions of an earlier plan, as a plan of its
// own, after the one that is under way.
func (p *Planner) apply(now time.Time, c *trimtab.Command) []trimtab.Value {
	if !p.leading {
		return nil
	}
	if p.issue.Waits() {
		p.applies = c
		return nil
	}
	d := p.issue.Apply(now, c)
	if d.Applies == "" {
		p.counts.refused++
	}
	return p.publish(now, d)
}
