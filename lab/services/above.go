package services

import "github.com/trimtab/trimtab/lab"

// above is the group above the services: it has the pool as its quota, and shares what the
// CPUs of the host give by the weights of those below, which have no quota. Their amounts are
// their weights; one whose amount is 0 is held back: the least weight alone would leave it every
// CPU that is idle, and so what the others need of the quota above at the next moment. It has a
// quota of HeldBack of the pool.
type above struct {
	pool, cpus float64
	// members are the places of those below it.
	members []int
	// left is what remains of the quota in this period, in core-seconds.
	left float64
	// wants, weights and given are of the services, in one step.
	wants, weights, given []float64
}

func newAbove(pool float64, members []int) *above {
	n := len(members)
	return &above{pool: pool, cpus: cpus, members: members, wants: make([]float64, n), weights: make([]float64, n), given: make([]float64, n)}
}

// aboves are those of each host.
func (s *Scenario) aboves() (out []*above) {
	on := make([][]int, s.hosts())
	for i, p := range s.All() {
		on[p.Host] = append(on[p.Host], i)
	}
	for _, members := range on {
		out = append(out, newAbove(s.Pool/float64(len(on)), members))
	}
	return out
}

// clone copies it.
func (a *above) clone() *above {
	out := newAbove(a.pool, a.members)
	out.left = a.left
	return out
}

// HeldBack is the part of the pool that a service which is held back may use: enough for probes.
const HeldBack = 0.02

// cpus is how many the host has, as that of the benchmark on real services.
const cpus = 2

// advance runs all that are below it, of all queues, from t to t+step, the n-th step of a
// period. Counters of throttling are those of the group above, and of a quota of its own.
func (a *above) advance(qs []*queue, t float64, n int) {
	if n == 0 {
		a.left = a.pool * period
	}
	for k, i := range a.members {
		q := qs[i]
		if q.arrive(t); n == 0 {
			q.periods++
		}
		a.wants[k], a.weights[k] = q.wants(), q.quota
		limit := q.capped
		if q.quota <= 0 {
			limit, a.weights[k] = HeldBack*a.pool, rank(2)
		}
		if n == 0 {
			q.left = limit * period
		}
		if limit > 0 {
			a.wants[k] = min(a.wants[k], max(0, q.left))
		}
	}
	a.left -= lab.Share(min(a.cpus*step, a.left), a.wants, a.weights, a.given)
	waits := false
	for k, i := range a.members {
		q := qs[i]
		q.serve(t, a.given[k])
		q.leave(t)
		waits = waits || len(q.waiting) > 0
	}
	for _, i := range a.members {
		q := qs[i]
		own := (q.capped > 0 || q.quota <= 0) && q.left <= 1e-9 && len(q.waiting) > 0
		if n == steps-1 && (own || waits && a.left <= 1e-9) {
			q.throttled++
		}
	}
}
