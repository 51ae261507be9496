package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/internal/newest"
)

// host is the state of a host.
type host struct {
	// order is that of the last holding, reportedAt when it arrived; ends is when the lease that the
	// host reported ends, at the latest; zero: it has none.
	order            order
	reportedAt, ends time.Time
	// accepted is the last plan that it is known to have accepted; it has no time.
	accepted     order
	paused       bool
	incarnations newest.Incarnations
	// wasLost: it was lost at the last Watch; lostAt: when it last was; again: it was lost twice
	// within the time in which it should be steady.
	wasLost, again bool
	lostAt         time.Time
	// capacity is what the pool has of the host, by resource; divided: other pools have the rest;
	// see [trimtab.Holding].
	capacity map[string]float64
	divided  bool
	// pace is how many changes a second the host makes; 0: as many as it is asked for.
	pace float64
	// knobs are the host's; listing are those of the last holding in its order, nil for one of
	// another pool, and holdings counts the holdings.
	knobs, listing []*Knob
	holdings       uint64
	// at is the index of its site; renews and lost are its state, see stand.
	at int
	// nodes are the sites of its nodes, with what each has by resource.
	nodes        map[int]map[string]float64
	renews, lost bool
}

// host returns the host of that name, making it.
func (l *Ledger) host(name string) *host {
	h := l.hosts[name]
	if h == nil {
		h = &host{at: l.places}
		l.hosts[name] = h
		l.places++
	}
	return h
}

// Duplicate reports whether two agents use the name of a knob's host. Their reports then cannot be
// told apart.
func (l *Ledger) Duplicate(k *Knob, now time.Time) bool {
	return k.host.incarnations.Duplicate(now, l.Lease)
}

// hostStates caches a time for which the states of all hosts are known.
type hostStates struct {
	known bool
	at    time.Time
	lost  bool // some host
}

// updateStates computes for every host whether it renews its lease and whether it is lost, since a round
// asks that for each knob. A holding, a plan and a new term clear the cache.
func (l *Ledger) updateStates(now time.Time) {
	if l.states.known && l.states.at.Equal(now) {
		return
	}
	l.states = hostStates{known: true, at: now}
	some := false
	for _, h := range l.hosts {
		h.renews = l.renews(h, now)
		some = some || h.renews
	}
	for _, h := range l.hosts {
		h.lost = !h.renews && (some || l.Many() && h.order.epoch < l.epoch && l.endsSoon(h, now))
		l.states.lost = l.states.lost || h.lost
	}
}

// Lost reports whether the lease of a knob's host may end unseen, while that of
// another host does not: when all may, it is the planner that is cut off. At the
// begin of a term the leases of a former leader end whether anybody is cut off or not.
func (l *Ledger) Lost(k *Knob, now time.Time) bool {
	l.updateStates(now)
	return k.host.lost
}

// LostAny reports whether any host is lost.
func (l *Ledger) LostAny(now time.Time) bool {
	l.updateStates(now)
	return l.states.lost
}

// Watch notes which hosts are lost now. It is called once a round.
func (l *Ledger) Watch(now time.Time) {
	l.updateStates(now)
	for _, h := range l.hosts {
		if h.lost && !h.wasLost {
			h.again = !h.lostAt.IsZero() && now.Sub(h.lostAt) <= l.Steady
		}
		if h.wasLost = h.lost; h.lost {
			h.lostAt = now
		}
	}
}

// flaps reports whether a host was recently lost more than once. Whenever it came back, another
// knob would get what it lends, and lose that when the host is lost again.
func (l *Ledger) flaps(h *host, now time.Time) bool {
	return h.again && now.Sub(h.lostAt) <= l.Steady
}

// renews reports whether a host reports, and has accepted a plan of the last half of a lease: its
// report may have been delayed, and then is about an old plan. At the beginning of a term it has
// a sixth of a lease to accept the first plan.
func (l *Ledger) renews(h *host, now time.Time) bool {
	if now.Sub(h.reportedAt) > l.Lease/3 {
		return false
	}
	from := now // of a later term, of which this planner hears soon
	switch {
	case h.order.epoch < l.epoch:
		return now.Sub(l.since) < l.Lease/6 && !l.endsSoon(h, now)
	case h.order.epoch == l.epoch:
		i, found := slices.BinarySearchFunc(l.issued, h.order.sequence, func(i issued, n uint64) int { return cmp.Compare(i.sequence, n) })
		switch {
		case found:
			from = l.issued[i].at
		case i == 0:
			from = l.since
		}
	}
	return now.Sub(from) <= l.Lease/2
}

// endsSoon reports whether at most a quarter of the lease that a host reported is left, so that
// others must now give back what it lends.
func (l *Ledger) endsSoon(h *host, now time.Time) bool {
	return !h.ends.IsZero() && h.ends.Sub(now) <= l.Lease/4
}

// ReportedAt returns when the host of the knob last reported.
func (k *Knob) ReportedAt() time.Time { return k.host.reportedAt }

// Hosts returns the hosts that have knobs, in order.
func (l *Ledger) Hosts() (names []string) {
	for name, h := range l.hosts {
		if h.any(func(*Knob) bool { return true }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Paces returns the changes a second that hosts make, for those that have such a bound.
func (l *Ledger) Paces() map[string]float64 {
	var all map[string]float64
	for name, h := range l.hosts {
		if h.pace > 0 {
			if all == nil {
				all = map[string]float64{}
			}
			all[name] = h.pace
		}
	}
	return all
}

// any reports whether a knob that the host still has is so.
func (h *host) any(so func(*Knob) bool) bool {
	for _, k := range h.knobs {
		if !k.gone && so(k) {
			return true
		}
	}
	return false
}

// Many reports whether more than one host has, had, or may have knobs of the pool.
func (l *Ledger) Many() bool { return l.Shared || len(l.hosts) > 1 }

// bounded reports whether the capacities that hosts report bound the pool: a pool that has its
// only host for itself has what is declared.
func (l *Ledger) bounded() bool {
	if l.Many() {
		return true
	}
	for _, h := range l.hosts {
		if h.divided || len(h.nodes) > 0 {
			return true
		}
	}
	return false
}

// settle notes on which node a knob's instance is, and what the node has.
func (l *Ledger) settle(k *Knob) {
	s, site := k.Held.Status, k.host.at
	if s != nil && s.Node != "" && s.Has > 0 {
		name := [2]string{k.Host, s.Node}
		at, known := l.nodes[name]
		if !known && l.places < maxHosts {
			at, known = l.places, true
			l.nodes[name] = at
			l.places++
		}
		if known {
			site = at
			if k.host.nodes == nil {
				k.host.nodes = map[int]map[string]float64{}
			}
			if k.host.nodes[at] == nil {
				k.host.nodes[at] = map[string]float64{}
			}
			k.host.nodes[at][k.Resource] = s.Has
		}
	}
	if k.site != site {
		k.site, l.list = site, nil
	}
}

// Node names what bounds the knob: its node, or its host where that has none.
func (k *Knob) Node() string {
	if s := k.Held.Status; s != nil && s.Node != "" && k.site != k.host.at {
		return s.Node
	}
	return k.Host
}

// Capacity returns what the pool has of a resource: what is declared, and no more than its hosts
// have, if they bound it and all of them report it.
func (l *Ledger) Capacity(resource string, declared float64) float64 {
	if !l.bounded() {
		return declared
	}
	return l.Measured(resource, declared)
}

// Measured returns how much of a resource all hosts have together, and at most the declared amount. It
// returns the declared amount while a host with a knob of the resource does not report its capacity.
func (l *Ledger) Measured(resource string, declared float64) float64 {
	var all []float64 // added up in one order, whatever that of the map
	for _, h := range l.hosts {
		if c, ok := h.capacity[resource]; ok {
			all = append(all, c)
		} else if h.any(func(k *Knob) bool { return k.Resource == resource }) {
			return declared
		}
	}
	if len(all) == 0 {
		return declared // no host reports it, as when no instance with a knob is left
	}
	slices.Sort(all)
	sum := 0.0
	for _, c := range all {
		sum += c
	}
	return math.Min(declared, sum)
}
