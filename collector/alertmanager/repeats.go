package alertmanager

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A sender that says once that an alert fires, and never that it is over, would hold its
// workload up for ever: Alertmanager sends no end of what is silenced or inhibited meanwhile,
// nor of a group whose receiver was taken out. What fires it repeats, each repeat_interval of
// the route. How long that is is not in the message; it is learnt from two that say the same.

const (
	// leastRepeat is the least time between two repetitions: two of a cluster of senders, or
	// one that had no answer, say the same within seconds.
	leastRepeat = time.Minute
	// overdue is after how many repeat intervals without a repetition an alert is over: one
	// may be lost.
	overdue = 2
	// maxGroups bounds the groups whose repetitions are awaited; the oldest is forgotten.
	maxGroups = 4096
)

// repeats has, by group of alerts, how often its sender repeats it. The zero value is ready.
type repeats struct {
	mu    sync.Mutex
	of    map[string]*repetition
	order []string // in order of arrival
}

// repetition is what a group said last, at a time, and how long it took to say the same
// again, the last two times; 0: it did not yet.
type repetition struct {
	said       [sha256.Size]byte
	at         time.Time
	last, prev time.Duration
}

// add joins what one alert of a group says, in any order.
func add(said *[sha256.Size]byte, a *received) {
	sum := sha256.Sum256([]byte(string(a.Status) + "\x00" + string(a.Fingerprint) + "\x00" + string(a.StartsAt)))
	for i := range said {
		said[i] ^= sum[i]
	}
}

// heard notes what a group says now, and returns after how long its sender is overdue; 0: that is
// not known.
func (r *repeats) heard(group string, said [sha256.Size]byte, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.of[group]
	if g == nil {
		if len(r.order) >= maxGroups {
			delete(r.of, r.order[0])
			r.order = r.order[1:]
		}
		if r.of == nil {
			r.of = map[string]*repetition{}
		}
		g = &repetition{}
		r.of[group], r.order = g, append(r.order, group)
	}
	gap := now.Sub(g.at)
	switch {
	case g.said != said || g.at.IsZero():
		g.said, g.at = said, now
	case gap >= leastRepeat:
		g.prev, g.last, g.at = g.last, gap, now
	}
	return overdue * max(g.last, g.prev)
}
