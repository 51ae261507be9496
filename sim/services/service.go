package services

import (
	"math"
	"math/rand/v2"
	"slices"
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

// request is one request: when it came and the work that is left.
type request struct{ at, left float64 }

// queue is the state of one service.
type queue struct {
	*Service
	rng     *rand.Rand
	next    float64 // the next arrival
	waiting []request
	// quota is in cores, left what remains of it in this period.
	quota, left float64
	// used is the work done so far in core-seconds, periods and throttled the
	// counters of the quota.
	used               float64
	periods, throttled int
	done               []answer
}

// answer is a request that left.
type answer struct{ at, end float64 }

func newQueue(s *Service, seed uint64) *queue {
	q := &queue{Service: s, rng: rand.New(rand.NewPCG(seed, 1))}
	q.next = q.gap(0)
	return q
}

// gap draws the time from t to the next arrival by thinning.
func (q *queue) gap(t float64) float64 {
	const most = 1000 // requests per second
	for {
		t += q.rng.ExpFloat64() / most
		if q.rng.Float64()*most < q.Load(t) {
			return t
		}
		if t > 1e6 {
			return math.Inf(1)
		}
	}
}

// advance runs the service from t to t+step; the n-th step of a period.
func (q *queue) advance(t float64, n int) {
	if n == 0 {
		q.left = q.quota * period
		q.periods++
	}
	for q.next < t+step {
		work := q.Cost
		if q.Dearer != nil {
			work *= q.Dearer(q.next)
		}
		if q.Spread > 0 {
			s := math.Sqrt(math.Log1p(q.Spread * q.Spread))
			work *= math.Exp(s*q.rng.NormFloat64() - s*s/2)
		}
		q.waiting = append(q.waiting, request{q.next, work})
		q.next = q.gap(q.next)
	}
	budget := min(q.Servers*step, q.left)
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
		q.waiting = slices.DeleteFunc(q.waiting, func(r request) bool {
			if r.left <= 1e-12 {
				q.done = append(q.done, answer{r.at, max(t+step, r.at)})
				return true
			}
			return false
		})
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(r request) bool {
		if t-r.at > timeout {
			q.done = append(q.done, answer{r.at, t + step})
			return true
		}
		return false
	})
	if n == steps-1 && len(q.waiting) > 0 && q.left <= 1e-9 {
		q.throttled++
	}
}

// timeout is after how many seconds a client gives up.
const timeout = 10
