package analyzer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// maxChanges and maxHosts bound the history of one workload.
	maxChanges, maxHosts = 32, 256
	// small is the change of an allocation, as a share of it, that does not
	// make a report a transient.
	small = 0.05
)

// change is an allocation in force on one host from Since on.
type change struct {
	since, told time.Time
	amount      trimtab.Amount
	// unknown: the knob cannot be read.
	unknown bool
}

// history holds, per host, when the allocation changed.
type history struct {
	hosts []*hostHistory // in order of key
}

type hostHistory struct {
	key     string // of the holdings
	host    string
	told    time.Time // the latest holding
	changes []change  // in order of since
}

// take adds what h says about target; an absent target has nothing here from
// then on.
func (h *history) take(v *trimtab.Holding, target, resource string) {
	key := v.Key()
	if key != v.Host {
		// What a build without pools said of the host is what this one says now.
		h.hosts = slices.DeleteFunc(h.hosts, func(x *hostHistory) bool { return x.key == v.Host })
	} else if slices.ContainsFunc(h.hosts, func(x *hostHistory) bool { return x.host == v.Host && x.key != key }) {
		return
	}
	i, found := slices.BinarySearchFunc(h.hosts, key, func(x *hostHistory, key string) int { return cmp.Compare(x.key, key) })
	for k := range v.Targets {
		t := &v.Targets[k]
		if t.Workload != target || t.Resource != resource {
			continue
		}
		if !found {
			if len(h.hosts) >= maxHosts {
				return
			}
			h.hosts = slices.Insert(h.hosts, i, &hostHistory{key: key, host: v.Host})
		}
		since := t.Since
		if since.IsZero() || since.After(v.Time) {
			since = v.Time
		}
		h.hosts[i].add(change{since, v.Time, t.InForce(), t.Problem != ""})
		return
	}
	if found && len(h.hosts[i].changes) > 0 {
		h.hosts[i].add(change{since: v.Time, told: v.Time, amount: trimtab.Units(0)})
	}
}

// add puts c in order; of two with one since, the later told counts.
func (h *hostHistory) add(c change) {
	if c.told.After(h.told) {
		h.told = c.told
	}
	i, found := slices.BinarySearchFunc(h.changes, c.since, func(x change, since time.Time) int { return x.since.Compare(since) })
	if found {
		if c.told.After(h.changes[i].told) {
			h.changes[i] = c
		}
		return
	}
	if i > 0 && h.changes[i-1].amount == c.amount && h.changes[i-1].unknown == c.unknown {
		return // the same value still
	}
	h.changes = slices.Insert(h.changes, i, c)
	if len(h.changes) > maxChanges {
		h.changes = slices.Delete(h.changes, 0, len(h.changes)-maxChanges)
	}
}

// inForce is the allocation over a time.
type inForce struct {
	amount trimtab.Amount
	// mean is the mean over the time, where all of it was bounded and known.
	mean float64
	// known is false when no host, or not every host, says; transient tells
	// that it changed.
	known, transient bool
}

// during sums up the hosts over [from, to): changes up to settle before from
// make a transient.
func (h *history) during(from, to time.Time, settle time.Duration) inForce {
	var sum inForce
	for _, x := range h.hosts {
		f := x.during(from, to, settle)
		if !f.known {
			if f.transient {
				return f // it began here
			}
			continue
		}
		sum.known = true
		sum.transient = sum.transient || f.transient
		sum.mean += f.mean
		if f.amount.Unlimited || sum.amount.Unlimited {
			sum.amount = trimtab.Unlimited()
		} else {
			sum.amount.Value += f.amount.Value
		}
	}
	return sum
}

func (h *hostHistory) during(from, to time.Time, settle time.Duration) inForce {
	var f inForce
	whole := to.Sub(from).Seconds()
	for i, c := range h.changes {
		if !c.since.Before(to) {
			break
		}
		begin, end := c.since, to
		if begin.Before(from) {
			begin = from
		}
		if i+1 < len(h.changes) && h.changes[i+1].since.Before(to) {
			end = h.changes[i+1].since
		}
		f.mean += c.amount.Value * max(0, end.Sub(begin).Seconds()) / whole
		if c.since.After(from.Add(-settle)) {
			f.transient = f.transient || i == 0 && c.since.After(from) || i > 0 && far(h.changes[i-1], c)
		}
		f.amount, f.known = c.amount, !c.unknown
	}
	return f
}

// far reports whether going from a to b changes the allocation by more than a
// small share.
func far(a, b change) bool {
	if a.unknown || b.unknown || a.amount.Unlimited || b.amount.Unlimited {
		return true
	}
	return math.Abs(a.amount.Value-b.amount.Value) > small*a.amount.Value
}

// latest returns when any host told last; zero: none did.
func (h *history) latest() (t time.Time) {
	for _, x := range h.hosts {
		if x.told.After(t) {
			t = x.told
		}
	}
	return t
}
