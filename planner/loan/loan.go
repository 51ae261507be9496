// Package loan keeps what a workload got since alerts on it began to fire. When the last of
// them is over, the part above Base may be given back at once. Nothing in an alert says how
// much: what is lent and given back is what the policy plans.
//
// An alert that is no longer sent ends at the end that its sender gave, or after a
// bound. The package reads no clock and plans nothing.
package loan

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// maxFiring bounds the firing alerts on one workload.
const maxFiring = 64

// Loan is what one workload was lent for alerts; nil: no alert fires, and nothing must be given
// back.
type Loan struct {
	// Name is that of the alert that began it, at Since; Firing has the fingerprints of the
	// firing alerts, with when each counts as over unless it is repeated.
	Name   string         `json:"name"`
	Since  time.Time      `json:"since,omitzero"`
	Firing map[string]End `json:"firing,omitempty"`
	// Base is how much of the first resource the workload had before, in its unit; negative: not
	// known yet. Further resources are not lent.
	Base float64 `json:"base"`
	// Latest is the latest start of an alert: one that starts later is another.
	Latest time.Time `json:"latest,omitzero"`
	// Over is when the last alert resolved; zero: not yet.
	Over time.Time `json:"over,omitzero"`
}

// End is when an alert ends; zero: not set yet.
type End struct{ time.Time }

// UnmarshalJSON reads a time, and what builds wrote that knew of no end.
func (e *End) UnmarshalJSON(b []byte) error {
	if string(b) == "true" {
		return nil
	}
	return e.Time.UnmarshalJSON(b)
}

// Note returns the loan after an alert, which lasts for at most hold, and whether that asks for a
// round: a repetition, with the same start, only extends the time.
func (l *Loan) Note(now time.Time, a *trimtab.Alert, hold time.Duration) (after *Loan, news bool) {
	if !a.Firing {
		return l, l.resolve(now, a.Fingerprint)
	}
	if l == nil {
		l = &Loan{Name: a.Name, Since: a.Time, Firing: map[string]End{}, Base: -1}
		if !a.Started.IsZero() && a.Started.Before(now) {
			l.Since = a.Started
		}
	}
	_, known := l.Firing[a.Fingerprint]
	if end := now.Add(hold); known || len(l.Firing) < maxFiring {
		if !a.Until.IsZero() && a.Until.Before(end) {
			end = a.Until
		}
		if l.Firing == nil { // of a snapshot
			l.Firing = map[string]End{}
		}
		l.Firing[a.Fingerprint] = End{end}
	}
	l.Over = time.Time{}
	again := a.Started.After(l.Latest)
	if again {
		l.Latest = a.Started
	}
	return l, !known || again
}

// resolve ends an alert, and reports whether it was the last one.
func (l *Loan) resolve(now time.Time, fingerprint string) bool {
	if l == nil {
		return false
	}
	if _, known := l.Firing[fingerprint]; !known {
		return false
	}
	delete(l.Firing, fingerprint)
	if len(l.Firing) > 0 {
		return false
	}
	l.Over = now
	return true
}

// Lapse ends the alerts that were not repeated in time, and reports whether none is left.
func (l *Loan) Lapse(now time.Time, hold time.Duration) bool {
	if !l.Fires() {
		return false
	}
	if l.Since.IsZero() { // of a build that did not note it
		l.Since = now
	}
	for fingerprint, end := range l.Firing {
		switch {
		case end.IsZero() || end.Sub(now) > hold: // of a clock that was ahead, or of another configuration
			l.Firing[fingerprint] = End{now.Add(hold)}
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

// Fires reports whether an alert fires.
func (l *Loan) Fires() bool { return l != nil && l.Over.IsZero() }

// IsOver reports whether the last alert is over, so that what was lent must be given back.
func (l *Loan) IsOver() bool { return l != nil && !l.Over.IsZero() }

// Begins notes what the workload had before, the first time.
func (l *Loan) Begins(has float64) {
	if l != nil && l.Base < 0 {
		l.Base = has
	}
}

// Lent returns the part of what the workload has that may be taken back because the alerts it was
// lent for are over.
func (l *Loan) Lent(has float64) float64 {
	if l.IsOver() && l.Base >= 0 {
		return math.Max(0, has-l.Base)
	}
	return 0
}

// Alarm describes the firing alerts, for people; false: none fires.
func (l *Loan) Alarm() (a trimtab.Alarm, fires bool) {
	if !l.Fires() || len(l.Firing) == 0 {
		return a, false
	}
	a = trimtab.Alarm{Name: l.Name, More: len(l.Firing) - 1, Since: l.Since}
	for _, end := range l.Firing {
		if end.After(a.Until) {
			a.Until = end.Time
		}
	}
	return a, true
}

// Because says which alerts have to do with a move; empty without any.
func (l *Loan) Because(lowered bool) string {
	switch {
	case l.Fires():
		return fmt.Sprintf("; alert %s fires", l.Name)
	case l != nil && lowered:
		return fmt.Sprintf("; it was lent for alert %s, which is over", l.Name)
	}
	return ""
}

// Valid reports whether the loan, which may be nil, can result from alerts.
func (l *Loan) Valid() bool {
	return l == nil || len(l.Firing) <= maxFiring && (len(l.Firing) > 0 || !l.Over.IsZero())
}
