// Package gaps bounds how often rounds are asked for: once per gap and group of whoever asks. What
// comes in a gap gets its round at the end of it.
//
// The package starts no round and reads no clock.
package gaps

import (
	"maps"
	"time"

	"github.com/trimtab/trimtab"
)

// most bounds how many groups may have a round in one gap.
const most = 1024

// Gaps are those of the groups that had a round. The zero Gaps has none.
type Gaps struct {
	// Least is how long after a round its group may have the next.
	Least time.Duration

	last  map[string]time.Time
	waits *asked // a round for a group whose gap is not over
}

// asked is a round that has to wait for the end of its group's gap.
type asked struct {
	at    time.Time
	group string
	cause trimtab.Cause
}

// Ask reports whether a round for a group may start now. If not, it is noted for the end of the gap.
func (g *Gaps) Ask(now time.Time, group string, cause trimtab.Cause) bool {
	maps.DeleteFunc(g.last, func(_ string, t time.Time) bool { return now.Sub(t) >= g.Least })
	last, waits := g.last[group]
	switch {
	case waits:
	case len(g.last) >= most:
		last = now
	default:
		g.had(group, now)
		return true
	}
	if at := last.Add(g.Least); g.waits == nil || at.Before(g.waits.at) {
		g.waits = &asked{at, group, cause}
	}
	return false
}

// Due returns the cause of the round that waited for the end of a gap that is over.
func (g *Gaps) Due(now time.Time) (cause trimtab.Cause, ok bool) {
	if g.waits == nil || now.Before(g.waits.at) {
		return cause, false
	}
	g.had(g.waits.group, now)
	return g.waits.cause, true
}

// Began forgets what waits: a round sees what all others would.
func (g *Gaps) Began() { g.waits = nil }

func (g *Gaps) had(group string, now time.Time) {
	if g.last == nil {
		g.last = map[string]time.Time{}
	}
	g.last[group] = now
}
