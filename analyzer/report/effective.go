package report

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// The effective allocation of a workload with instances i, which have the amounts a_i and serve the
// fractions f_i of its load, is
//
//	a = min_i a_i / f_i,    Σ f_i = 1,    f_i = 1/n unless the loads are known,
//
// since load balancers spread the load evenly and the slowest instance determines the tail: the
// instances together do no more than if each had its fraction of a. An instance without a limit
// does not determine the minimum. An instance whose knob cannot be read counts only if none can be
// read, and then the allocation is unknown. The planner counts in the same way.

// Small is the relative change of an allocation up to which a report does not count as transient.
const Small = 0.05

// step is the effective allocation in force from the time since on.
type step struct {
	since   time.Time
	amount  trimtab.Amount
	unknown bool
	// others: the set of instances changed at that time.
	others bool
}

// InForce is the effective allocation during a time.
type InForce struct {
	// Amount is the allocation at the end of the time.
	Amount trimtab.Amount
	// Mean is the mean over the time, if the allocation was limited and known all the time.
	Mean float64
	// Known: the allocation is known. Transient: it changed during the time.
	Known, Transient bool
	// Over: there are more instances than are remembered.
	Over bool
	// Shared: the amount is the least that the workload has; it may also use what others leave
	// idle. Open: others on the whole node, and no measurement shows when the node is used up.
	Shared, Open bool
}

// During returns the allocation in force over [from, to), given the loads of the instances as far
// as they are known. Changes up to settle before from also count as a transient.
func (h *History) During(from, to time.Time, settle time.Duration, loads Loads) InForce {
	if slices.ContainsFunc(h.hosts, func(x *hostHistory) bool { return x.over }) {
		return InForce{Over: true}
	}
	var f InForce
	whole, steps := to.Sub(from).Seconds(), h.effective(from.Add(-settle), to, loads)
	for i, s := range steps {
		begin, end := s.since, to
		if begin.Before(from) {
			begin = from
		}
		if i+1 < len(steps) {
			end = steps[i+1].since
		}
		f.Mean += s.amount.Value * max(0, end.Sub(begin).Seconds()) / whole
		if s.since.After(from.Add(-settle)) {
			f.Transient = f.Transient || i == 0 && s.since.After(from) || i > 0 && far(steps[i-1], s)
		}
		f.Amount, f.Known = s.amount, !s.unknown
	}
	h.present(func(_ instanceID, in *instance, readable bool) {
		f.Shared, f.Open = f.Shared || readable && in.shared, f.Open || readable && in.reserves
	})
	f.Transient = f.Transient || h.rollout.After(from.Add(-settle)) || slices.ContainsFunc(h.hosts, func(x *hostHistory) bool { return x.rolls && x.lost.IsZero() })
	return f
}

// far reports whether a change from a to b is more than small, or unknown.
func far(a, b step) bool {
	return a.unknown || b.unknown || b.others || Far(a.amount, b.amount)
}

// Far reports whether a change from a to b is more than small.
func Far(a, b trimtab.Amount) bool {
	return a.Unlimited || b.Unlimited || math.Abs(a.Value-b.Value) > Small*a.Value
}

// effective returns the effective allocation at the instant from, and at each instant before to at
// which it changed.
func (h *History) effective(from, to time.Time, loads Loads) []step {
	h.lose()
	h.times = append(h.times[:0], from)
	for _, x := range h.hosts {
		if x.lost.After(from) && x.lost.Before(to) {
			h.times = append(h.times, x.lost)
		}
		for _, in := range x.instances {
			for i := len(in.changes) - 1; i >= 0 && in.changes[i].since.After(from); i-- {
				if in.changes[i].since.Before(to) {
					h.times = append(h.times, in.changes[i].since)
				}
			}
		}
	}
	slices.SortFunc(h.times, time.Time.Compare)
	h.steps = h.steps[:0]
	var last *step
	for i, t := range h.times {
		if i > 0 && t.Equal(h.times[i-1]) {
			continue
		}
		s, ok := h.at(t, loads)
		if !ok && last != nil { // the hosts that reported it have been lost
			s.unknown, ok = true, true
		}
		if ok && (last == nil || s.others || s.amount != last.amount || s.unknown != last.unknown) {
			h.steps = append(h.steps, s)
			last = &h.steps[len(h.steps)-1]
		}
	}
	return h.steps
}

// at returns the effective allocation at t; false: no holding covers that time.
func (h *History) at(t time.Time, loads Loads) (s step, told bool) {
	s.since = t
	n, unread, sum, known := 0, 0, 0.0, true
	h.each(t, func(x *hostHistory, in *instance, c change, ok bool) {
		counts := ok && !c.gone && !c.unknown
		s.others = s.others || counts != in.counted
		in.counted, told = counts, told || ok
		switch {
		case counts:
			load, seen := loads[instanceID{x.host, in.name}]
			n, sum, known = n+1, sum+load, known && seen
		case ok && !c.gone:
			unread++
		}
	})
	s.unknown = n == 0 && unread > 0
	s.amount.Unlimited = n+unread > 0
	h.each(t, func(x *hostHistory, in *instance, c change, ok bool) {
		if !ok || c.gone || c.amount.Unlimited || c.unknown != s.unknown {
			return
		}
		parts := float64(unread)
		if !s.unknown {
			parts = float64(n)
			if known {
				parts = sum / loads[instanceID{x.host, in.name}]
			}
		}
		if a := trimtab.Units(math.Min(c.amount.Value*parts, math.MaxFloat64)); a.Less(s.amount) {
			s.amount = a
		}
	})
	return s, told
}

// Most returns the largest effective allocation that the instances can have together; 0: there is
// only one instance, or one has no maximum.
func (h *History) Most(loads Loads) float64 {
	if h.kept < 2 {
		return 0
	}
	least := math.Inf(1)
	n := h.part(loads, func(in *instance, parts float64) { least = math.Min(least, in.most*parts) })
	if n < 2 {
		return 0
	}
	return math.Min(least, math.MaxFloat64)
}

// Above returns the largest effective allocation that the parent control groups allow; 0: they set
// no limit.
func (h *History) Above(loads Loads) float64 {
	least := math.Inf(1)
	n := h.part(loads, func(in *instance, parts float64) {
		if in.above > 0 {
			least = math.Min(least, in.above*parts)
		}
	})
	if n == 0 || math.IsInf(least, 1) {
		return 0
	}
	return least
}

// Floor returns the effective allocation at which no instance would get less than it uses; 0: the
// use is not measured for all instances.
func (h *History) Floor(loads Loads) float64 {
	least, most := math.Inf(1), 0.0
	h.part(loads, func(in *instance, parts float64) {
		least, most = math.Min(least, in.floor), math.Max(most, in.floor*parts)
	})
	if !(least > 0) || math.IsInf(most, 1) {
		return 0
	}
	return most
}

// Instances returns the number of instances whose knob can be read.
func (h *History) Instances() int { return h.part(nil, func(*instance, float64) {}) }

// part calls f for each instance whose knob can be read, with the inverse of its share of the load,
// and returns the number of these instances.
func (h *History) part(loads Loads, f func(in *instance, parts float64)) (n int) {
	sum, known := 0.0, true
	h.present(func(id instanceID, _ *instance, readable bool) {
		if readable {
			load, seen := loads[id]
			n, sum, known = n+1, sum+load, known && seen
		}
	})
	h.present(func(id instanceID, in *instance, readable bool) {
		switch {
		case readable && known:
			f(in, sum/loads[id])
		case readable:
			f(in, float64(n))
		}
	})
	return n
}

// each calls f with every instance and its allocation at t. ok is false if no holding covers that
// time, or the host was lost by then.
func (h *History) each(t time.Time, f func(x *hostHistory, in *instance, c change, ok bool)) {
	for _, x := range h.hosts {
		for _, in := range x.instances {
			c, ok := in.at(t)
			f(x, in, c, ok && (x.lost.IsZero() || t.Before(x.lost)))
		}
	}
}
