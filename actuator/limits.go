package actuator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Limits are this host's own limits on every plan, whoever signed it. An unlimited knob counts as
// its Max.
type Limits struct {
	// Capacity limits the sum of the host's knobs, by resource, even if a plan claims more; nil:
	// the plan's capacity counts. For a resource that is not listed it is 0, so that nothing of it
	// is raised.
	Capacity map[string]float64
	// MaxLease is the longest lease; a longer one is shortened to it. 0: no limit.
	MaxLease time.Duration
	// Skew is how far ahead of this host's clock a plan may be dated; 0:
	// DefaultSkew.
	Skew time.Duration
	// Fall limits reductions: within FallWindow a target loses at most this part of the most that
	// it had, in (0, 1]; 0: no limit. The actuator makes a deeper cut only this deep. However many
	// plans come, after a time T a target has at least
	//
	//	(1 − Fall)^⌈T/FallWindow⌉
	//
	// of what it had. A number of instances may always fall by one in a window, even if that is a
	// larger part. A share by weight may fall at once while the kernel's counters show that the
	// shared quota is used up: then some workload waits in any case.
	Fall float64
	// FallWindow is the window of Fall; 0: DefaultFallWindow.
	FallWindow time.Duration
	// Share limits how many targets are lowered: at most this part of the host's targets of one
	// resource within ShareWindow, in (0, 1], rounded to whole targets, at least one; 0: no limit.
	// Further reductions are refused.
	Share float64
	// ShareWindow is the window of Share; 0: DefaultShareWindow.
	ShareWindow time.Duration
}

// The defaults for the zero values of Limits.
const (
	DefaultSkew        = 30 * time.Second
	DefaultFallWindow  = 5 * time.Second
	DefaultShareWindow = 2 * time.Second
)

func (l *Limits) validate() error {
	for _, part := range []float64{l.Fall, l.Share} {
		if !(part >= 0 && part <= 1) {
			return trimtab.Invalidf("actuator: limit %v: want a number in [0, 1]", part)
		}
	}
	for _, d := range []time.Duration{l.MaxLease, l.Skew, l.FallWindow, l.ShareWindow} {
		if d < 0 {
			return trimtab.Invalidf("actuator: limit %v: want no negative time", d)
		}
	}
	for resource, v := range l.Capacity {
		if trimtab.Units(v).Validate() != nil {
			return trimtab.Invalidf("actuator: capacity %v of %s", v, resource)
		}
	}
	return nil
}

// fill puts the defaults in place of zero values.
func (l *Limits) fill() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Skew, DefaultSkew}, {&l.FallWindow, DefaultFallWindow}, {&l.ShareWindow, DefaultShareWindow}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// lease returns how long an allocation lasts on this host if a plan asks for a lease.
func (l *Limits) lease(asked trimtab.Seconds) trimtab.Seconds {
	if l.MaxLease > 0 {
		return min(asked, trimtab.SecondsOf(l.MaxLease))
	}
	return asked
}

// limit returns the limit of the sum of the host's knobs, whatever a plan says: the capacity in
// Limits, and, if the pool has other hosts, at most the measured capacity. On a host that has the
// whole pool the declared capacity counts, which may be more than its cores.
func (hs *host) limit(resource string) float64 {
	most := math.Inf(1)
	if c := hs.config.Limits.Capacity; c != nil {
		most = c[resource]
	}
	if measured, ok := hs.capacity[resource]; ok && hs.config.Shared {
		most = min(most, measured)
	}
	return most
}

// measureEvery is how often the host's capacity is measured.
const measureEvery = 10 * time.Second

// measure measures the host's capacity for the pool. If that fails, the last value stays.
func (hs *host) measure() {
	now := hs.clock.boot()
	if hs.config.Measure == nil || now < hs.measureAgain {
		return
	}
	hs.measureAgain = saturate(now, measureEvery)
	measured, err := hs.config.Measure()
	changed := false
	for resource, v := range measured {
		if bad := trimtab.Units(v).Validate(); bad != nil {
			err = errors.Join(err, fmt.Errorf("measure %s: %w", resource, bad))
		} else if old, ok := hs.capacity[resource]; !ok || old != v {
			if hs.capacity == nil {
				hs.capacity = map[string]float64{}
			}
			hs.capacity[resource], changed = v, true
		}
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if changed || problem != hs.unmeasured {
		hs.unmeasured = problem
		hs.logger.Info("capacity of this host", "capacity", hs.capacity, "problem", problem)
		hs.notify()
	}
}

// limit removes from a step the moves for which this host has no time, and applies Config.Limits to
// the others: it makes a cut that is too deep less deep, and refuses cuts of too many targets.
func (x *executor) limit(s *step) {
	now, fall := x.clock.boot(), x.config.Limits.Fall
	s.moves = slices.DeleteFunc(x.turns(s), func(m *move) bool {
		if !m.goal.Less(m.result.Before) {
			return false
		}
		if least := x.lowest(m.knob, now); m.goal.Less(least) && !m.knob.contended() {
			how := fmt.Sprintf("to %v: this host leaves at least %.4g%% of the most that it had in the last %v",
				m.action.Set, 100*(1-fall), x.config.Limits.FallWindow)
			if m.goal = m.knob.Knob.Nearest(least); !m.goal.Less(m.result.Before) {
				return !refuse(m.result, "limit: not lowered "+how)
			}
			m.result.Reason = fmt.Sprintf("limit: lowered to %v, not %s", m.goal, how)
		}
		if why := x.tooMany(m.knob, now); why != "" {
			return !refuse(m.result, why)
		}
		// Recorded even if the write fails: then too little is lowered, never too much.
		m.knob.falls.last = now
		return false
	})
}

// turns returns the moves for which there is time, in their order. It refuses the others, which are
// neither journaled nor written. A plan that a person applies is carried out completely or not at
// all.
func (x *executor) turns(s *step) []*move {
	lease := x.config.Limits.lease(s.Lease).Duration()
	x.paced.note(s.Time, s.Sequence == x.fence.position.Sequence && s.Epoch == x.fence.position.Epoch)
	var slow []*move
	pace := 0.0
	for _, m := range s.moves {
		if v := m.knob.can.Pace; v > 0 {
			slow, pace = append(slow, m), v
		}
	}
	if s.Applies != "" {
		if most := writesIn(lease/2, pace); len(slow) > most {
			for _, m := range s.moves {
				refuse(m.result, fmt.Sprintf("not applied: the API server takes %.0f changes a second, so these %d would outlast the lease: apply a plan of fewer workloads, or use mode act, which makes them over several rounds", pace, len(slow)))
			}
			return nil
		}
		return s.moves
	}
	most := writesIn(x.paced.stepTime(lease, s.Step <= 1 && s.Last), pace)
	if len(slow) <= most {
		return s.moves
	}
	var now []*move
	writes, later := 0, map[*move]bool{}
	actions := make([]trimtab.Action, len(slow))
	for i, m := range slow {
		actions[i] = *m.action
		actions[i].Expect, actions[i].Set = m.had, m.goal
	}
	for _, i := range trimtab.Urgent(actions) {
		m := slow[i]
		switch {
		case slices.ContainsFunc(now, func(o *move) bool { return m.goal.Less(m.had) == o.goal.Less(o.had) && m.knob.writesWith(o.knob) }):
		case writes < most:
			writes++
		default:
			later[m] = true
			refuse(m.result, fmt.Sprintf("its turn has not come: the API server takes %.0f changes a second, %d go out in this step, the most urgent first", pace, most))
			continue
		}
		now = append(now, m)
	}
	return slices.DeleteFunc(s.moves, func(m *move) bool { return later[m] })
}

// lowest returns the least amount to which Limits.Fall lets plans lower a knob now.
func (x *executor) lowest(h *managed, now time.Duration) trimtab.Amount {
	limit := &x.config.Limits
	if limit.Fall <= 0 {
		return trimtab.Units(0)
	}
	had := h.most(now - limit.FallWindow)
	least := had * (1 - limit.Fall)
	if h.Resource == trimtab.Replicas { // one instance may go, even the last one
		least = max(0, min(least, had-1))
	}
	return trimtab.Units(least)
}

// tooMany returns why Limits.Share does not let plans lower a knob now; "": it does.
func (x *executor) tooMany(h *managed, now time.Duration) string {
	limit, window := x.config.Limits.Share, x.config.Limits.ShareWindow
	if limit <= 0 || h.falls.last > now-window {
		return ""
	}
	total, lowered := 0, 0
	for _, k := range x.knobs.all {
		if k.Resource == h.Resource {
			total++
			if k.falls.last > now-window {
				lowered++
			}
		}
	}
	if most := max(1, int(math.Round(limit*float64(total)))); lowered >= most {
		return fmt.Sprintf("limit: %d of %d targets were lowered within %v, this host allows no more", lowered, total, window)
	}
	return ""
}

// history has the values that a knob had, and when plans lowered it.
type history struct {
	// peaks are recent values that are above every later one, the oldest and highest first.
	peaks []peak
	// last is when a plan last lowered the knob, on the boot clock, or never.
	last time.Duration
}

// peak is a value above the knob's present one that it had until a time of the boot clock.
type peak struct {
	amount float64
	until  time.Duration
}

// maxPeaks bounds the peaks kept of one knob. Beyond it the two oldest are merged into one with the
// higher value and the later end: the limit is then stricter than needed, never looser.
const maxPeaks = 64

// remember records the value that the knob had until now. It drops lower peaks, which can no longer
// be the highest value.
func (y *history) remember(had float64, now time.Duration) {
	for len(y.peaks) > 0 && y.peaks[len(y.peaks)-1].amount <= had {
		y.peaks = y.peaks[:len(y.peaks)-1]
	}
	if y.peaks = append(y.peaks, peak{had, now}); len(y.peaks) > maxPeaks {
		y.peaks[1].amount = y.peaks[0].amount
		y.peaks = append(y.peaks[:0], y.peaks[1:]...)
	}
}

// most returns the highest value that the knob had since a time of the boot clock.
func (h *managed) most(since time.Duration) float64 {
	y := &h.falls
	for len(y.peaks) > 0 && y.peaks[0].until <= since {
		y.peaks = y.peaks[1:]
	}
	if len(y.peaks) > 0 {
		return max(y.peaks[0].amount, h.amount())
	}
	return h.amount()
}

// never is earlier than any time of the boot clock.
const never = time.Duration(math.MinInt64)
