package admission

import (
	"math"
	"time"
)

// The constants of the rule. TestTheRule… in sim_test.go holds what they give.
const (
	firstLimit = 100
	// slack is the service time at the limit over the one without load: enough to keep a service
	// busy whose S was read a third too low from few requests.
	slack = 1.5
	// share of the SLO that a request may always spend in the service.
	share = 1.0 / 8
	// A limit grows at most by grow and shrinks at most by shrink in a tick.
	grow, shrink = 1.5, 0.7
	// forget is the growth of S in a tick in which nobody waited: it doubles in 35 s.
	forget = 1.002
	// In a tick in which somebody always waited, capacity moves to its throughput by the share
	// rise or fall of the difference: a stall of the service says little of its capacity.
	rise, fall = 1.0 / 4, 1.0 / 10
)

// rule learns limit and service times.
type rule struct {
	within float64 // seconds
	limit  float64

	// Decayed sums over ticks: seconds in service, completions, and time.
	inService, completed, time float64
	// unloaded is S in seconds, 0 while unknown.
	unloaded float64
	// capacity is about the most completions per second of late, 0 while unknown.
	capacity float64
	// A series of cuts began at this number in service and this service time.
	cutFrom, cutTime float64
	times            histogram
	// calm and over are W, as of the last tick, without and with an overload.
	calm, over time.Duration
}

func newRule(within time.Duration) rule {
	return rule{within: within.Seconds(), limit: firstLimit, calm: within, over: within}
}

// served tells of the service time of one answered request.
func (r *rule) served(took time.Duration) { r.times.add(took.Seconds()) }

// service is the mean service time of late, 0 while unknown.
func (r *rule) service() float64 {
	if r.completed < 1e-9 {
		return 0
	}
	return r.inService / r.completed
}

// target is T, the service time at the limit.
func (r *rule) target() float64 { return max(slack*r.unloaded, share*r.within) }

// longest is W.
func (r *rule) longest(overloaded bool) time.Duration {
	if overloaded {
		return r.over
	}
	return r.calm
}

// bound sets W. A queue that stands for long needs a W that is surely in time, since all wait that
// long; another one lets a request wait that has a chance. A queue that may hold nobody would leave
// the service idle between two requests.
func (r *rule) bound() {
	r.calm = seconds(max(r.within-r.times.quantile(0.9), r.within/10))
	r.over = seconds(max(min(r.within-r.times.quantile(0.99), r.within/2), r.within/10))
}

// learn takes in one interval.
func (r *rule) learn(t interval, took time.Duration) {
	r.times.decay()
	r.bound()
	// About 30 completions make a mean, in at least two ticks and at most ten.
	keep := min(max(1/(1+float64(t.completed)/30), 0.5), 0.9)
	r.inService = keep*r.inService + t.inService
	r.completed = keep*r.completed + float64(t.completed)
	r.time = keep*r.time + took.Seconds()
	if r.completed < 5 && r.inService < 5*r.target() {
		return // too few to learn from, and not because they hang
	}
	r.learnService(t)
	r.move(t, took)
}

// learnService moves S.
func (r *rule) learnService(t interval) {
	now := r.service()
	switch {
	case r.completed < 5 || t.failed*5 > t.completed: // errors may be quick
	case r.unloaded == 0 || now < r.unloaded:
		r.unloaded = now
	case t.full == 0:
		r.unloaded = min(r.unloaded*forget, now)
	}
}

// move sets the limit.
func (r *rule) move(t interval, took time.Duration) {
	now, at, rate := r.service(), r.inService/r.time, r.completed/r.time
	if t.completed >= 5 && t.inService/float64(t.completed) > now {
		// A step of the load shows in this tick before it shows in the means.
		now, at = t.inService/float64(t.completed), t.inService/took.Seconds()
	}
	waited := t.full > took/2
	// A tick that was busy only for a part shows less than the service can do.
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
			// Half as many in service, and each takes as long: the service was not busy.
			r.unloaded, r.cutFrom = now, 0
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
