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
	// Name is that of the alert that began it, Firing the fingerprints of
	// those that are not over.
	Name   string          `json:"name"`
	Firing map[string]bool `json:"firing,omitempty"`
	// Base is what the workload had of the first resource before, in its unit;
	// negative: not seen yet. Further resources are not lent.
	Base float64 `json:"base"`
	// Over is when the last alert resolved; zero: not yet.
	Over time.Time `json:"over,omitzero"`
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
	news := w != nil && !p.recent.again(a) && w.note(now, a)
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

// note enters an alert and reports whether it asks for a round.
func (w *workload) note(now time.Time, a *trimtab.Alert) bool {
	l := w.loan
	if a.Firing {
		if l == nil {
			l = &loan{Name: a.Name, Firing: map[string]bool{}, Base: -1}
			w.loan = l
		}
		if len(l.Firing) < maxFiring {
			l.Firing[a.Fingerprint] = true
		}
		l.Over = time.Time{}
		return true
	}
	if l == nil || !l.Firing[a.Fingerprint] {
		return false
	}
	delete(l.Firing, a.Fingerprint)
	if len(l.Firing) > 0 {
		return false
	}
	l.Over = now
	return true
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
