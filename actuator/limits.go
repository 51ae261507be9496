package actuator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Limits are the host's own: what no plan gets past, whoever signed it. An
// unlimited knob counts as one at its Max.
type Limits struct {
	// Capacity is what the host's knobs may have together, by resource, even if
	// a plan claims more; nil: what the plan says. A resource that is not listed
	// has none, and nothing of it is raised.
	Capacity map[string]float64
	// MaxLease is the longest lease; a longer one is cut to it. 0: no limit.
	MaxLease time.Duration
	// Skew is how far ahead of this host's clock a plan may be dated; 0:
	// DefaultSkew.
	Skew time.Duration
	// Fall is the largest part of the most that a target had within FallWindow
	// that may be taken away, in (0, 1]; 0: no limit. A deeper cut is made this
	// deep. However many plans come, after a time T a target has at least
	//
	//	(1 − Fall)^⌈T/FallWindow⌉
	//
	// of what it had. Of a number of instances one may go in a window, also where that is a
	// larger part: the last one is no part of itself. A share by weight may fall at once while
	// the kernel counts that what all share is used up: somebody waits in any case, and what is
	// lowered slowly serves nobody.
	Fall float64
	// FallWindow is the window of Fall; 0: DefaultFallWindow.
	FallWindow time.Duration
	// Share is the largest part of the host's targets of one resource that may
	// be lowered within ShareWindow, in (0, 1], rounded to whole targets, at
	// least one; 0: no limit. The rest is refused.
	Share float64
	// ShareWindow is the window of Share; 0: DefaultShareWindow.
	ShareWindow time.Duration
}

// What the zero values of Limits stand for.
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

// lease returns how long a plan's allocation may hold on this host.
func (l *Limits) lease(p *trimtab.Plan) trimtab.Seconds {
	if l.MaxLease > 0 {
		return min(p.Lease, trimtab.SecondsOf(l.MaxLease))
	}
	return p.Lease
}

// room returns what the host's knobs may have together, whatever a plan says:
// the less of what Limits allow and, where the pool has other hosts, of what was
// measured. A host that has the whole pool has what was declared, which may be
// more than its cores.
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

// measureEvery is how often the host is measured.
const measureEvery = 10 * time.Second

// measure finds out what the pool may give out of this host. What cannot be
// measured is as it was.
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

// limit holds the moves to Config.Limits: a cut that is too deep is made less
// deep, cuts of too many targets are refused.
func (x *executor) limit(moves []*move) []*move {
	return slices.DeleteFunc(moves, func(m *move) bool { return m.goal.Less(m.result.Before) && !x.maySink(m) })
}

// maySink reports whether a cut, perhaps made less deep, may be made, and
// notes it.
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
	// Even if the write fails: then too little is lowered, not too much.
	m.held.lowered = now
	return true
}

// soften makes a cut as deep as Limits.Fall allows, and reports whether there
// is anything left of it.
func (x *executor) soften(m *move, now time.Duration) bool {
	limit := &x.config.Limits
	if limit.Fall <= 0 {
		return true
	}
	had := m.held.most(now - limit.FallWindow)
	least := trimtab.Units(had * (1 - limit.Fall))
	if m.held.Resource == trimtab.Replicas { // of instances one may go, the last one too
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

// peak is more than what a knob has now, which it had until a time of the boot
// clock.
type peak struct {
	amount float64
	until  time.Duration
}

// maxPeaks bounds what is kept of one knob. Beyond it two of the oldest become
// one that is as high as the higher and lasts as long as the longer: the limit
// is then stricter than it need be, never looser.
const maxPeaks = 64

// remember notes what the knob had until now. What was not more than that is
// forgotten: it can no longer be the most.
func (h *held) remember(had float64, now time.Duration) {
	for len(h.peaks) > 0 && h.peaks[len(h.peaks)-1].amount <= had {
		h.peaks = h.peaks[:len(h.peaks)-1]
	}
	if h.peaks = append(h.peaks, peak{had, now}); len(h.peaks) > maxPeaks {
		h.peaks[1].amount = h.peaks[0].amount
		h.peaks = append(h.peaks[:0], h.peaks[1:]...)
	}
}

// most returns the most that the knob had since a time of the boot clock.
func (h *held) most(since time.Duration) float64 {
	for len(h.peaks) > 0 && h.peaks[0].until <= since {
		h.peaks = h.peaks[1:]
	}
	if len(h.peaks) > 0 {
		return max(h.peaks[0].amount, h.amount())
	}
	return h.amount()
}

// never is before any time of the boot clock.
const never = time.Duration(math.MinInt64)

// loweredSince reports whether a plan lowered the knob after a time of the boot
// clock.
func (h *held) loweredSince(t time.Duration) bool { return h.lowered > t }
