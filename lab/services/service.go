package services

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab/planner/admission"
)

const (
	// step is the resolution of the simulation, period that of the quota, in
	// seconds.
	step, period = 0.005, 0.1
	steps        = 20 // in a period
)

// Service is one service and its load.
type Service struct {
	Name string
	// Cost is the mean work of a request in core-seconds, Spread its
	// coefficient of variation.
	Cost, Spread float64
	// Servers is how many cores it can use at once, Concurrency how many
	// requests it works on at once.
	Servers     float64
	Concurrency int
	// Latency is the SLO's threshold in seconds, Fraction the share of the
	// requests that must keep it.
	Latency, Fraction float64
	// Load is the arrival rate in requests per second at t seconds; Dearer is
	// the factor on Cost, nil: 1.
	Load, Dearer func(t float64) float64
}

// Request is one request: when it comes, in seconds, what it asks for, in core-seconds, and which of
// [Classes] it is of.
type Request struct {
	At, Work float64
	Class    int
}

// request is one that waits, and the work that is left. Dead: its client has given up, which a
// server finds out when it answers.
type request struct {
	at, left float64
	class    int
	dead     bool
	// under is how many were under way, and ticket what its gate knows of it, where a front let it in.
	under  int
	ticket *admission.Ticket
}

// queue is the state of one service.
type queue struct {
	*Service
	Place
	coming  []Request // those that have not come yet
	waiting []request
	// quota is in cores, left what remains of it in this period.
	// capped is the quota of who shares by weight, in cores; 0: none.
	quota, left, capped float64
	// used is the work done so far in core-seconds, periods and throttled the
	// counters of the quota.
	used               float64
	periods, throttled int
	done               []answer
	// front is what stands before it; nil: nothing.
	front front
}

// answer is a request that left: when it came and when it ended.
type answer struct {
	at, end float64
	class   int
	refused bool
}

// met tells that it was answered within a time.
func (a *answer) met(within float64) bool { return !a.refused && a.end-a.at <= within }

// draw returns the requests of a service up to a time, by a seed.
func draw(s *Service, until float64, seed uint64) (out []Request) {
	rng, class := rand.New(rand.NewPCG(seed, 1)), classes{rand.New(rand.NewPCG(seed, 2))}
	for t := s.gap(rng, 0, until); t < until; t = s.gap(rng, t, until) {
		work := s.Cost
		if s.Dearer != nil {
			work *= s.Dearer(t)
		}
		if s.Spread > 0 {
			v := math.Sqrt(math.Log1p(s.Spread * s.Spread))
			work *= math.Exp(v*rng.NormFloat64() - v*v/2)
		}
		out = append(out, Request{t, work, class.draw()})
	}
	return out
}

// gap returns the next arrival after t, by thinning.
func (s *Service) gap(rng *rand.Rand, t, until float64) float64 {
	const most = 1000 // requests per second
	for {
		t += rng.ExpFloat64() / most
		if t >= until || rng.Float64()*most < s.Load(t) {
			return t
		}
	}
}

// open is how many requests it has that are not answered, with those that come in this step.
func (q *queue) open() int { return q.unanswered() + len(q.coming) }

// unanswered is how many requests wait for their answer.
func (q *queue) unanswered() (n int) {
	if q.front != nil {
		n = q.front.waits()
	}
	for _, r := range q.waiting {
		if !r.dead {
			n++
		}
	}
	return n
}

// advance runs the service from t to t+step, the n-th step of a period, behind its quota.
func (q *queue) advance(t float64, n int) {
	if q.arrive(t); n == 0 {
		q.left = q.quota * period
		q.periods++
	}
	q.serve(t, min(q.Servers*step, q.left))
	if q.leave(t); n == steps-1 && len(q.waiting) > 0 && q.left <= 1e-9 {
		q.throttled++
	}
}

// arrive takes in what comes from t to t+step.
func (q *queue) arrive(t float64) {
	for len(q.coming) > 0 && q.coming[0].At < t+step {
		r := request{at: q.coming[0].At, left: q.coming[0].Work, class: q.coming[0].Class}
		if q.coming = q.coming[1:]; q.front != nil {
			q.front.arrive(r)
		} else {
			q.waiting = append(q.waiting, r)
		}
	}
}

// wants is the work that it could do in a step, in core-seconds: a request is one thread.
func (q *queue) wants() float64 {
	most, sum := min(q.Servers, float64(len(q.waiting)))*step, 0.0
	for _, r := range q.waiting {
		if sum += r.left; sum >= most {
			return most
		}
	}
	return sum
}

// serve does so much work, as far as there is some.
func (q *queue) serve(t, budget float64) {
	for budget > 1e-12 && len(q.waiting) > 0 {
		n := min(len(q.waiting), q.Concurrency)
		each := budget / float64(n)
		for i := range n {
			w := min(each, q.waiting[i].left)
			q.waiting[i].left -= w
			budget -= w
			q.left -= w
			q.used += w
		}
		var over []request
		still := slices.DeleteFunc(q.waiting[:n], func(r request) bool {
			if r.left <= 1e-12 && !r.dead {
				over = append(over, r)
			}
			return r.left <= 1e-12
		})
		q.waiting = slices.Delete(q.waiting, len(still), n)
		for i := range over {
			q.end(&over[i], max(t+step, over[i].at))
		}
	}
}

// end has a request end at a time: it is answered, or its client gives up.
func (q *queue) end(r *request, at float64) {
	q.done = append(q.done, answer{at: r.at, end: at, class: r.class})
	if q.front != nil {
		q.front.left(r, at)
	}
}

// leave has the clients of what waited too long give up, and ends the step. The work is done
// nevertheless.
func (q *queue) leave(t float64) {
	for i := range q.waiting {
		r := &q.waiting[i]
		if t-r.at <= timeout {
			break // those behind it came later
		}
		if !r.dead {
			r.dead = true
			q.end(r, t+step)
		}
	}
	if q.front != nil {
		q.front.step(t + step)
	}
}

// timeout is after how many seconds a client gives up.
const timeout = 10
