package newest

import (
	"slices"
	"time"
)

const (
	// maxIncarnations bounds the lives that are remembered of a host. enoughReturns is how many returns
	// within a lease prove two agents: a late last message of one agent after the first of the
	// next makes two.
	maxIncarnations = 4
	enoughReturns   = 3
)

// Incarnations detects by [trimtab.Holding.Life] whether two agents claim to be one host. The zero value has
// seen none.
type Incarnations struct {
	// known are the lives that reported last, the newest last; returns are when one of them
	// reported again after another had.
	known   []uint64
	returns []time.Time
}

// Observe records that a holding of a life arrived at now, and reports whether it shows two agents
// within that time. A life that another has followed does not report again, unless two agents
// have one name. A holding without a life (0) shows nothing.
func (l *Incarnations) Observe(life uint64, now time.Time, within time.Duration) bool {
	n := len(l.known)
	if life == 0 || n > 0 && l.known[n-1] == life {
		return false
	}
	duplicate := false
	if at := slices.Index(l.known, life); at >= 0 {
		l.known = slices.Delete(l.known, at, at+1)
		l.returns = append(l.returns, now)
		l.returns = l.returns[max(0, len(l.returns)-enoughReturns):]
		duplicate = l.Duplicate(now, within)
	}
	l.known = append(l.known, life)
	l.known = l.known[max(0, len(l.known)-maxIncarnations):]
	return duplicate
}

// Duplicate reports whether two agents were seen within that time before now.
func (l *Incarnations) Duplicate(now time.Time, within time.Duration) bool {
	return len(l.returns) == enoughReturns && now.Sub(l.returns[0]) <= within
}
