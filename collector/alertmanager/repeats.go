package alertmanager

import (
	"crypto/sha256"
	"sync"
	"time"
)

// If a sender reports that an alert fires, and never that it has ended, its workload would keep
// the raise for ever: Alertmanager sends no end of alerts that are silenced or inhibited
// meanwhile, nor of a group whose receiver was removed. It repeats firing alerts every
// repeat_interval of the route. The message does not contain that interval; it is learnt from two
// equal messages.

const (
	// leastRepeat is the least time between two repetitions: two of a cluster of senders, or
	// one that had no answer, say the same within seconds.
	leastRepeat = time.Minute
	// overdue is the number of repeat intervals without a repetition after which an alert counts as
	// ended: one repetition may be lost.
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

// repetition has the last message of a group, its time, and the last two intervals between equal
// messages; 0: unknown.
type repetition struct {
	said       [sha256.Size]byte
	at         time.Time
	last, prev time.Duration
}

// add combines the hash of one alert with that of its group, independent of the order.
func add(said *[sha256.Size]byte, a *received) {
	sum := sha256.Sum256([]byte(string(a.Status) + "\x00" + string(a.Fingerprint) + "\x00" + string(a.StartsAt)))
	for i := range said {
		said[i] ^= sum[i]
	}
}

// heard records a message of a group, and returns the time after which its sender is overdue; 0:
// unknown.
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
