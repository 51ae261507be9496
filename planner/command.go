package planner

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// lateFor reports whether a request is older than a lease. A plan made when it was asked would have
// expired, so the request must not act on a state that has changed since.
func lateFor(p *Planner, now, asked time.Time) bool { return now.Sub(asked) > p.cfg.Lease }

// command carries out a person's command. A repeated command changes nothing. A late command is
// ignored, except that a pause, resume or release still takes effect: these states last until they
// are ended.
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

// takeBack ends every release: after a resume, trimtab plans for all workloads again. The actuators
// do the same.
func takeBack(p *Planner) {
	for _, w := range p.workloads {
		w.Released = false
	}
}

// apply publishes the recommended actions of an earlier plan as a plan of its own. If a plan is
// being carried out, it waits until that one is finished.
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
