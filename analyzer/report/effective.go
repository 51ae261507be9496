package report

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// The effective allocation of a workload with instances i that have a_i, and serve
// the parts f_i of its load, is
//
//	a = min_i a_i / f_i,    Σ f_i = 1,    f_i = 1/n unless the loads are known,
//
// since load balancers spread evenly and the slowest instance sets the tail: the
// instances together do no more than they would if each had its part of a. One that
// is not limited does not bind. One whose knob cannot be read counts only where none
// can be, and then nothing is known: so the planner counts, too.

// Small is the change of an allocation, as a share of it, that does not make a
// report a transient.
const Small = 0.05

// step is the effective allocation in force from since on.
type step struct {
	since   time.Time
	amount  trimtab.Amount
	unknown bool
	// others says that it is over other instances than before.
	others bool
}

// InForce is the effective allocation over a time.
type InForce struct {
	// Amount is that at the end of it.
	Amount trimtab.Amount
	// Mean is the mean over the time, where all of it was bounded and known.
	Mean float64
	// Known is false when nobody says what it is; Transient tells that it changed.
	Known, Transient bool
	// Over says that there are more instances than are kept.
	Over bool
	// Shared: the amount is the least that it has; it may also use what others leave idle. Open:
	// of all that its node has, and no measurement shows when that is used up.
	Shared, Open bool
}

// During returns what was in force over [from, to), with the loads of the instances as far as
// they are known; changes up to settle before from count as a transient.
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

// far reports whether going from a to b changes the allocation by more than a
// small share.
func far(a, b step) bool {
	return a.unknown || b.unknown || b.others || Far(a.amount, b.amount)
}

// Far reports whether going from a to b is no small change.
func Far(a, b trimtab.Amount) bool {
	return a.Unlimited || b.Unlimited || math.Abs(a.Value-b.Value) > Small*a.Value
}

// effective returns the effective allocation at the instant from, and from each
// instant before to at which it became another.
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
		if !ok && last != nil { // the hosts that told of it are lost since
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

// Most returns the most that the instances could have together; 0: there is only one, or one has
// no maximum.
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

// Above returns the most that the groups above allow the instances together; 0: one has no such
// bound.
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

// Floor returns the effective allocation at which no instance would get less than it uses; 0: not
// measured for all instances.
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

// part calls f for each instance whose knob can be read, with the inverse of its share of the
// load, and returns how many these are.
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

// each calls f with every instance and what was in force in it at t; false: no holding covers
// that time, or its host was lost by then.
func (h *History) each(t time.Time, f func(x *hostHistory, in *instance, c change, ok bool)) {
	for _, x := range h.hosts {
		for _, in := range x.instances {
			c, ok := in.at(t)
			f(x, in, c, ok && (x.lost.IsZero() || t.Before(x.lost)))
		}
	}
}
