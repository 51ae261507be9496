package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Ended returns the most that a knob may give when the lease of its host ends before those
// of others: what is reserved for it, and its baseline.
func (l *Ledger) Ended(k *Knob, now time.Time) float64 {
	return max(l.Reserve(k, now), k.gives()+k.Lends())
}

// Lenders returns the hosts on which a knob of a resource is below its baseline, in order,
// and the earliest end of their leases, as far as is known: a lease may end later, never
// earlier. Leases that have ended by then are left out: their baselines are back, and are
// reserved.
func (l *Ledger) Lenders(resource string, now time.Time) (names []string, until time.Time) {
	for name, h := range l.hosts {
		if !h.any(func(k *Knob) bool { return k.Resource == resource && k.Lends() > 0 }) {
			continue
		}
		ends := l.holdsUntil(h)
		if !ends.After(now) {
			continue
		}
		if names = append(names, name); until.IsZero() || ends.Before(until) {
			until = ends
		}
	}
	slices.Sort(names)
	return names, until
}

// holdsUntil returns until when a host keeps at least what plans have set: one lease after the issue
// of the plan of this term that it has accepted; for a plan of a former leader, until the host's
// reported end of lease.
func (l *Ledger) holdsUntil(h *host) time.Time {
	a := h.accepted
	if a.epoch != l.epoch {
		return h.ends
	}
	i, found := slices.BinarySearchFunc(l.issued, a.sequence, func(i issued, n uint64) int { return cmp.Compare(i.sequence, n) })
	if !found {
		return time.Time{} // it is older than a lease
	}
	return l.issued[i].at.Add(l.Lease)
}

// accept notes that a host has accepted a plan.
func (h *host) accept(epoch, sequence uint64) {
	if o := (order{epoch: epoch, sequence: sequence}); h.accepted.before(o) {
		h.accepted = o
	}
}
