// Package reservation computes how many requests may be before a service at once for one more of each
// class to be admitted, where a proxy with one queue admits by such a number:
//
//	N(r) = X · D · f(r)        r the rank of a class, 0 for the most important one
//	                           X answered requests per second while some wait
//	                           D the SLO
//
// By Little's law a request that comes as the N-th is answered N/X later, if those that wait are
// served in their order. During an overload f is 0.8 for the most important class and falls from
// 0.3 to 0.15 over the others: an important request hardly ever meets a full queue, because the
// others leave it the last places. Otherwise f is 0.9 and 0.75: only a request that would hardly be
// answered within the SLO is refused.
//
// An overload has begun when the queue has not been empty for w ≥ D and more than X·w + 3·√(X·w)
// requests came in w, which chance hardly explains. It is over when fewer than X came per second in
// about the last second, or nobody waited for half a second. N is at least the number that may be in
// service, and one more: with fewer nobody would wait, and X would not be learnt again.
//
// Source: trunk reservation, F. P. Kelly, "Loss Networks", Annals of Applied Probability 1(3), 1991,
// section 3. The package is pure. It does not limit what is in service, and counts no refusals.
//
//	rule := reservation.New(200*time.Millisecond, 6)
//	d := rule.Tick(reservation.Reading{At: now, Arrived: 5200, Answered: 5120, Waiting: 4, Serving: 3, Limit: 3}) // every 100 ms
package reservation

import (
	"math"
	"time"
)

// The constants of the rule, of which TestTheBounds… shows the effect.
const (
	first, second, last = 0.8, 0.3, 0.15
	calmFirst, calm     = 0.9, 0.75
	// sure is by how many standard deviations arrivals must exceed X, idle how long nobody waits after
	// an overload, lately over which time its arrivals are counted.
	sure   = 3
	idle   = 500 * time.Millisecond
	lately = time.Second
	// X moves towards what was seen by the fraction rise or fall of the difference, each time enough
	// requests were answered or long has passed: a stall of the service says little about X.
	rise, fall = 0.5, 0.25
	enough     = 40
	long       = 2 * time.Second
	// gap is the time between two readings from which on they say nothing together.
	gap = time.Second
)

// Reading is what the proxy says at one time.
type Reading struct {
	At time.Time
	// Arrived counts all requests, Answered the answers of the service.
	Arrived, Answered uint64
	// Waiting wait in the queue, Serving are in service, of which Limit may be; 0: there is no limit.
	Waiting, Serving, Limit uint64
}

// Decision is what holds until the next reading.
type Decision struct {
	// Most is the bound by rank; nil: nothing is bounded, since nothing is known of the service.
	Most []int
	// Overloaded says that lower ranks have lower bounds.
	Overloaded bool
	// Rate is X, in requests per second.
	Rate float64
}

// Rule follows one backend.
type Rule struct {
	within time.Duration
	ranks  int

	before Reading
	// busy and answered are the time with a queue since X last moved, and the answers in it.
	busy     time.Duration
	answered uint64
	rate     float64
	// empty is the reading in which the queue was last empty, and waited the last one in which it was
	// not.
	empty, waited Reading
	overloaded    bool
	// arriving is the rate of arrivals in about the last second of an overload.
	arriving float64
}

// New returns a rule for an SLO and a number of ranks, both positive.
func New(within time.Duration, ranks int) *Rule { return &Rule{within: within, ranks: ranks} }

// Tick takes a reading and returns the bounds. A counter that went back, or a reading that is not
// newer than the last one, teaches nothing.
func (r *Rule) Tick(now Reading) Decision {
	took := now.At.Sub(r.before.At)
	usable := !r.before.At.IsZero() && took > 0 && took <= gap && now.Answered >= r.before.Answered && now.Arrived >= r.before.Arrived
	if usable && now.Waiting > 0 && r.before.Waiting > 0 {
		r.busy += took
		r.answered += now.Answered - r.before.Answered
		r.learn()
	}
	if !usable {
		r.empty, r.overloaded = now, false
	} else {
		r.judge(now, took)
	}
	r.before = now
	return r.decide(now)
}

// judge decides whether there is an overload.
func (r *Rule) judge(now Reading, took time.Duration) {
	if now.Waiting > 0 {
		r.waited = now
	} else {
		r.empty = now
	}
	if r.overloaded {
		share := math.Exp(-took.Seconds() / lately.Seconds())
		r.arriving = share*r.arriving + (1-share)*float64(now.Arrived-r.before.Arrived)/took.Seconds()
		r.overloaded = r.arriving >= r.rate && now.At.Sub(r.waited.At) < idle
		return
	}
	w := now.At.Sub(r.empty.At)
	came, served := float64(now.Arrived-r.empty.Arrived), r.rate*w.Seconds()
	if r.rate > 0 && w >= r.within && came > served+sure*math.Sqrt(served) {
		r.overloaded, r.arriving = true, came/w.Seconds()
	}
}

// learn moves X once the busy time says enough.
func (r *Rule) learn() {
	if r.answered < enough && r.busy < long {
		return
	}
	seen := float64(r.answered) / r.busy.Seconds()
	switch {
	case r.rate == 0:
		r.rate = seen
	case seen > r.rate:
		r.rate += rise * (seen - r.rate)
	default:
		r.rate += fall * (seen - r.rate)
	}
	r.busy, r.answered = 0, 0
}

// decide returns the bounds.
func (r *Rule) decide(now Reading) Decision {
	d := Decision{Rate: r.rate, Overloaded: r.overloaded}
	if r.rate == 0 || now.Limit == 0 {
		return d
	}
	for rank := range r.ranks {
		n := math.Floor(r.rate*r.within.Seconds()*r.fraction(rank) + 1e-9)
		d.Most = append(d.Most, int(math.Min(math.Max(n, float64(now.Limit)+1), math.MaxInt32)))
	}
	return d
}

// fraction returns f.
func (r *Rule) fraction(rank int) float64 {
	switch {
	case !r.overloaded && rank == 0:
		return calmFirst
	case !r.overloaded:
		return calm
	case rank == 0:
		return first
	}
	return second - (second-last)*float64(rank-1)/float64(max(1, r.ranks-2))
}
