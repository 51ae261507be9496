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

// lease returns how long a plan's allocation lasts on this host.
func (l *Limits) lease(p *trimtab.Plan) trimtab.Seconds {
	if l.MaxLease > 0 {
		return min(p.Lease, trimtab.SecondsOf(l.MaxLease))
	}
	return p.Lease
}

// room returns the limit of the sum of the host's knobs, whatever a plan says: the capacity in
// Limits, and, if the pool has other hosts, at most the measured capacity. On a host that has the
// whole pool the declared capacity counts, which may be more than its cores.
func (hs *host) room(resource string) float64 {
	room := math.Inf(1)
	if c := hs.config.Limits.Capacity; c != nil {
		room = c[resource]
	}
	if measured, ok := hs.capacity[resource]; ok && hs.config.Shared {
		room = min(room, measured)
	}
	return room
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

// limit applies Config.Limits to the moves: it makes a cut that is too deep less deep, and refuses
// cuts of too many targets.
func (x *executor) limit(moves []*move) []*move {
	return slices.DeleteFunc(moves, func(m *move) bool { return m.goal.Less(m.result.Before) && !x.maySink(m) })
}

// maySink reports whether a cut, perhaps made less deep, is allowed, and records it.
func (x *executor) maySink(m *move) bool {
	now := x.clock.boot()
	if !x.soften(m, now) {
		return false
	}
	if limit, window := &x.config.Limits, x.config.Limits.ShareWindow; limit.Share > 0 && !m.held.loweredSince(now-window) {
		total, lowered := 0, 0
		for _, h := range x.knobs.all {
			if h.Resource == m.held.Resource {
				total++
				if h.loweredSince(now - window) {
					lowered++
				}
			}
		}
		if most := max(1, int(math.Round(limit.Share*float64(total)))); lowered >= most {
			return refuse(m.result, fmt.Sprintf("limit: %d of %d targets were lowered within %v, this host allows no more", lowered, total, window))
		}
	}
	// Recorded even if the write fails: then too little is lowered, never too much.
	m.held.lowered = now
	return true
}

// soften reduces a cut to what Limits.Fall allows, and reports whether anything is left of it.
func (x *executor) soften(m *move, now time.Duration) bool {
	limit := &x.config.Limits
	if limit.Fall <= 0 {
		return true
	}
	had := m.held.most(now - limit.FallWindow)
	least := trimtab.Units(had * (1 - limit.Fall))
	if m.held.Resource == trimtab.Replicas { // one instance may go, even the last one
		least.Value = max(0, min(least.Value, had-1))
	}
	if !m.goal.Less(least) {
		return true
	}
	if k := m.held.can.Shared; k != nil && k.Contended() {
		return true
	}
	m.goal = m.held.Knob.Nearest(least)
	m.result.Reason = fmt.Sprintf("limit: lowered to %v, not to %v: this host leaves at least %.4g%% of the most that it had in the last %v",
		m.goal, m.action.Set, 100*(1-limit.Fall), limit.FallWindow)
	if !m.goal.Less(m.result.Before) {
		return refuse(m.result, fmt.Sprintf("limit: not lowered to %v: this host leaves at least %.4g%% of the most that it had in the last %v",
			m.action.Set, 100*(1-limit.Fall), limit.FallWindow))
	}
	return true
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
func (h *held) remember(had float64, now time.Duration) {
	for len(h.peaks) > 0 && h.peaks[len(h.peaks)-1].amount <= had {
		h.peaks = h.peaks[:len(h.peaks)-1]
	}
	if h.peaks = append(h.peaks, peak{had, now}); len(h.peaks) > maxPeaks {
		h.peaks[1].amount = h.peaks[0].amount
		h.peaks = append(h.peaks[:0], h.peaks[1:]...)
	}
}

// most returns the highest value that the knob had since a time of the boot clock.
func (h *held) most(since time.Duration) float64 {
	for len(h.peaks) > 0 && h.peaks[0].until <= since {
		h.peaks = h.peaks[1:]
	}
	if len(h.peaks) > 0 {
		return max(h.peaks[0].amount, h.amount())
	}
	return h.amount()
}

// never is earlier than any time of the boot clock.
const never = time.Duration(math.MinInt64)

// loweredSince reports whether a plan lowered the knob after a time of the boot
// clock.
func (h *held) loweredSince(t time.Duration) bool { return h.lowered > t }
