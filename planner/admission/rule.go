package admission

import (
	"math"
	"time"
)

// The constants of the rule. TestTheRule… in sim_test.go checks their effect.
const (
	firstLimit = 100
	// slack is the target service time at the limit, as a multiple of the one without load. It
	// keeps a service busy even if S was estimated a third too low, from few requests.
	slack = 1.5
	// share is the fraction of the SLO that a request may always spend in the service.
	share = 1.0 / 8
	// Per tick the limit grows at most by the factor grow and shrinks at most by shrink.
	grow, shrink = 1.5, 0.7
	// forget is the factor by which S grows in a tick in which no request waited: it doubles in 35
	// s.
	forget = 1.002
	// In a tick in which requests always waited, the capacity moves towards the throughput by the
	// fraction rise or fall of the difference. It falls slowly, since a stall of the service says
	// little about its capacity.
	rise, fall = 1.0 / 4, 1.0 / 10
)

// rule learns the limit and the service times.
type rule struct {
	within float64 // seconds
	limit  float64

	// Sums over ticks that decay: seconds in service, completions, and time.
	inService, completed, time float64
	// unloaded is S of the package comment, in seconds; 0: unknown.
	unloaded float64
	// proven: half as many requests in service took as long, so the service was not busy with unloaded.
	// Otherwise unloaded may be that of a service that was never seen without an overload.
	proven bool
	// capacity is about the highest recent throughput, in completions per second; 0: unknown.
	capacity float64
	// cutFrom requests were in service, with the service time cutTime, when the current series of cuts
	// of the limit began.
	cutFrom, cutTime float64
	times            histogram
	// calm and over are W without and with an overload, as of the last tick.
	calm, over time.Duration
}

func newRule(within time.Duration) rule {
	return rule{within: within.Seconds(), limit: firstLimit, calm: within, over: within}
}

// served records the service time of one answered request.
func (r *rule) served(took time.Duration) { r.times.add(took.Seconds()) }

// service returns the recent mean service time in seconds, 0 if unknown.
func (r *rule) service() float64 {
	if r.completed < 1e-9 {
		return 0
	}
	return r.inService / r.completed
}

// target returns T, the service time at the limit, in seconds. Beyond half of the SLO it must be proven
// that S is that long.
func (r *rule) target() float64 {
	t := max(slack*r.unloaded, share*r.within)
	if !r.proven {
		t = min(t, r.within/2)
	}
	return t
}

// longest returns W.
func (r *rule) longest(overloaded bool) time.Duration {
	if overloaded {
		return r.over
	}
	return r.calm
}

// bound sets W. During an overload all requests wait about that long, so W must be safe; otherwise
// a request may wait as long as it has a chance. W is at least a tenth of the SLO: with an empty
// queue the service would idle between two requests.
func (r *rule) bound() {
	r.calm = seconds(max(r.within-r.times.quantile(0.9), r.within/10))
	r.over = seconds(max(min(r.within-r.times.quantile(0.99), r.within/2), r.within/10))
}

// clamp lowers a limit that bounds nothing to the requests in service, once this tick shows that they
// take too long. After a step of the load the service would otherwise fill until the end of the tick, and
// the first refusal would come that much later.
func (r *rule) clamp(t interval, inService float64) {
	if r.unloaded > 0 && r.limit > 2*inService && t.completed >= 3 && t.inService > float64(t.completed)*r.target() {
		r.limit = max(inService, r.capacity*r.target(), 1)
	}
}

// learn updates the rule with the measurements of one tick.
func (r *rule) learn(t interval, took time.Duration) {
	r.times.decay()
	r.bound()
	// Keep as much history as has about 30 completions, two to ten ticks.
	keep := min(max(1/(1+float64(t.completed)/30), 0.5), 0.9)
	r.inService = keep*r.inService + t.inService
	r.completed = keep*r.completed + float64(t.completed)
	r.time = keep*r.time + took.Seconds()
	if r.completed < 5 && r.inService < 5*r.target() {
		return // too few to learn from, and not because requests hang
	}
	r.learnService(t)
	r.move(t, took)
}

// learnService updates S.
func (r *rule) learnService(t interval) {
	now := r.service()
	switch {
	case r.completed < 5 || t.failed*5 > t.completed: // error responses may be quick
	case r.unloaded == 0 || now < r.unloaded:
		r.unloaded = now
	case t.full == 0:
		r.unloaded = min(r.unloaded*forget, now)
	}
}

// move updates the limit.
func (r *rule) move(t interval, took time.Duration) {
	now, at, rate := r.service(), r.inService/r.time, r.completed/r.time
	if t.completed >= 5 && t.inService/float64(t.completed) > now {
		// A sudden change of the load shows in this tick before it shows in the means.
		now, at = t.inService/float64(t.completed), t.inService/took.Seconds()
	}
	waited := t.full > took/2
	// Only a tick that was busy all the time shows the capacity.
	if busy := float64(t.completed) / took.Seconds(); busy > 0 && t.full >= took*9/10 {
		if busy > r.capacity {
			r.capacity += (busy - r.capacity) * rise
		} else {
			r.capacity += (busy - r.capacity) * fall
		}
	}
	r.capacity = max(r.capacity, rate)
	if now == 0 {
		now = math.Inf(1)
	}
	want := rate * r.target()
	switch {
	case now > r.target() && at > 1:
		if r.cutFrom == 0 {
			r.cutFrom, r.cutTime = at, now
		}
		if at <= r.cutFrom/2 && now >= 0.75*r.cutTime && r.completed >= 5 {
			// Half as many requests in service take just as long: the service was not busy.
			r.unloaded, r.proven, r.cutFrom = now, true, 0
			return
		}
		r.limit = max(min(r.limit, max(r.capacity*r.target(), shrink*at)), 1)
	case waited:
		r.cutFrom = 0
		r.limit = max(r.limit, min(want, grow*r.limit))
	default:
		r.cutFrom = 0
	}
}
