package planner

import (
	"fmt"
	"maps"
	"time"

	"github.com/trimtab/trimtab"
)

// loan is what a workload got since alerts on it began to fire. When the last
// of them is over, the part above Base may be given back at once: the guard's
// reversal window does not hold it, all other bounds do. Nothing in an alert
// says how much: what is lent and given back is what the policy plans.
type loan struct {
	// Name is that of the alert that began it, at Since; Firing has the fingerprints of those
	// that are not over, with when each is taken to be unless it is heard of again.
	Name   string           `json:"name"`
	Since  time.Time        `json:"since,omitzero"`
	Firing map[string]until `json:"firing,omitempty"`
	// Base is what the workload had of the first resource before, in its unit;
	// negative: not seen yet. Further resources are not lent.
	Base float64 `json:"base"`
	// Latest is the latest start of an alert: one that starts later is another.
	Latest time.Time `json:"latest,omitzero"`
	// Over is when the last alert resolved; zero: not yet.
	Over time.Time `json:"over,omitzero"`
}

// until is an end; zero: it is to be set.
type until struct{ time.Time }

// UnmarshalJSON reads a time, and what builds wrote that knew of no end.
func (u *until) UnmarshalJSON(b []byte) error {
	if string(b) == "true" {
		return nil
	}
	return u.Time.UnmarshalJSON(b)
}

const (
	// maxFiring bounds the alerts on one workload whose end is waited for.
	maxFiring = 64
	// maxGroups bounds how many groups of alerts may start rounds in one gap.
	maxGroups = 1024
)

// asked is a round that has to wait for the end of its group's gap.
type asked struct {
	at    time.Time
	group string
	cause trimtab.Cause
}

// alert keeps account of what fires, and starts a round when an alert fires or
// when the last one on a workload is over: once per gap and group. What comes
// in a gap gets its round at the end of it. One that is delivered again is none:
// after the end of the alert it would begin a loan that nobody ends.
func (p *Planner) alert(now time.Time, a *trimtab.Alert) []trimtab.Value {
	w := p.byName[a.Workload]
	news := w != nil && !p.recent.again(a) && w.note(now, a, p.cfg.AlertHold)
	if !news || !p.counts.leading || p.late(now, a.Time) {
		p.counts.ignored["alert"]++
		return nil
	}
	cause := trimtab.Cause{Kind: trimtab.CauseAlert, Ref: a.Name, Workload: a.Workload, Text: fmt.Sprintf("group %s, fingerprint %s", a.Group, a.Fingerprint)}
	if !a.Firing {
		cause.Kind = trimtab.CauseAlertOver
	}
	return p.ask(now, a.Group, cause)
}

// note enters an alert, which holds for so long at most, and reports whether it asks for a
// round: one that is repeated, with the start that it had, only holds for longer.
func (w *workload) note(now time.Time, a *trimtab.Alert, hold time.Duration) bool {
	l := w.loan
	if a.Firing {
		if l == nil {
			l = &loan{Name: a.Name, Since: a.Time, Firing: map[string]until{}, Base: -1}
			if !a.Started.IsZero() && a.Started.Before(now) {
				l.Since = a.Started
			}
			w.loan = l
		}
		_, known := l.Firing[a.Fingerprint]
		if end := now.Add(hold); known || len(l.Firing) < maxFiring {
			if !a.Until.IsZero() && a.Until.Before(end) {
				end = a.Until
			}
			l.Firing[a.Fingerprint] = until{end}
		}
		l.Over = time.Time{}
		again := a.Started.After(l.Latest)
		if again {
			l.Latest = a.Started
		}
		return !known || again
	}
	if l == nil {
		return false
	}
	if _, known := l.Firing[a.Fingerprint]; !known {
		return false
	}
	delete(l.Firing, a.Fingerprint)
	if len(l.Firing) > 0 {
		return false
	}
	l.Over = now
	return true
}

// lapse ends the alerts that nobody spoke of in time, and reports whether none is left.
func (l *loan) lapse(now time.Time, hold time.Duration) bool {
	if l == nil || !l.Over.IsZero() {
		return false
	}
	if l.Since.IsZero() { // of a build that did not note it
		l.Since = now
	}
	for fingerprint, end := range l.Firing {
		switch {
		case end.IsZero() || end.Sub(now) > hold: // of a clock that was ahead, or of another configuration
			l.Firing[fingerprint] = until{now.Add(hold)}
		case !end.After(now):
			delete(l.Firing, fingerprint)
		}
	}
	if len(l.Firing) > 0 {
		return false
	}
	l.Over = now
	return true
}

// lapses ends alerts of all workloads, and asks for a round for each that has none left.
func (p *Planner) lapses(now time.Time) (out []trimtab.Value) {
	for _, w := range p.workloads {
		if w.loan.lapse(now, p.cfg.AlertHold) && p.counts.leading {
			cause := trimtab.Cause{Kind: trimtab.CauseAlertOver, Ref: w.loan.Name, Workload: w.Name, Text: "it was not heard of in time"}
			out = append(out, p.ask(now, "alerts that were not heard of", cause)...)
		}
	}
	return out
}

// alarms are the alerts that fire, by workload; nil: none does.
func (p *Planner) alarms() map[string]trimtab.Alarm {
	var all map[string]trimtab.Alarm
	for _, w := range p.workloads {
		l := w.loan
		if l == nil || !l.Over.IsZero() || len(l.Firing) == 0 {
			continue
		}
		a := trimtab.Alarm{Name: l.Name, More: len(l.Firing) - 1, Since: l.Since}
		for _, end := range l.Firing {
			if end.After(a.Until) {
				a.Until = end.Time
			}
		}
		if all == nil {
			all = map[string]trimtab.Alarm{}
		}
		all[w.Name] = a
	}
	return all
}

// ask starts a round for a group of alerts, now or when its gap is over.
func (p *Planner) ask(now time.Time, group string, cause trimtab.Cause) []trimtab.Value {
	maps.DeleteFunc(p.groups, func(_ string, t time.Time) bool { return now.Sub(t) >= p.cfg.AlertGap })
	last, waits := p.groups[group]
	switch {
	case waits:
	case len(p.groups) >= maxGroups:
		last = now
	default:
		p.groups[group] = now
		return p.start(now, cause)
	}
	p.counts.ignored["alert"]++
	if at := last.Add(p.cfg.AlertGap); p.asks == nil || at.Before(p.asks.at) {
		p.asks = &asked{at, group, cause}
	}
	return nil
}

// asksNow returns the cause of the round that waited for the end of a gap.
func (p *Planner) asksNow(now time.Time) (cause trimtab.Cause, ok bool) {
	if p.asks == nil || now.Before(p.asks.at) {
		return cause, false
	}
	p.groups[p.asks.group] = now
	return p.asks.cause, true
}

// lent returns the part of what the workload has of a resource that may be given back
// because the alerts it was lent for are over.
func (w *workload) lent(resource int, has float64) float64 {
	if l := w.loan; resource == 0 && l != nil && !l.Over.IsZero() && l.Base >= 0 {
		return max(0, has-l.Base)
	}
	return 0
}

// moved enters a move that is written. The first one after the end of the
// alerts settles the loan: a fall gives back, a rise is needed without them.
func (w *workload) moved(resource, direction int, now time.Time) {
	d := w.dials[resource]
	d.move = d.move.Then(direction, now)
	if w.estimate != nil {
		d.load = w.estimate.Load
	}
	if l := w.loan; resource == 0 && l != nil && !l.Over.IsZero() {
		if direction < 0 {
			w.returned = now
		}
		w.loan = nil
	}
}

// because says which alerts have to do with a move; empty without any.
func (w *workload) because(lowered bool) string {
	switch l := w.loan; {
	case l == nil:
		return ""
	case l.Over.IsZero():
		return fmt.Sprintf("; alert %s fires", l.Name)
	case lowered:
		return fmt.Sprintf("; it was lent for alert %s, which is over", l.Name)
	}
	return ""
}
