package services

import "slices"

// state is that of all instances at a time.
type state struct {
	above    []*above // of each host
	queues   []*queue // of each place
	balanced []*balancer
}

// begin is the state before anything comes: each instance has its equal part of its host.
func begin(s *Scenario, coming [][]Request) *state {
	out := &state{above: s.aboves()}
	of := make([][]int, len(s.Services))
	for k, p := range s.All() {
		of[p.Service] = append(of[p.Service], k)
		out.queues = append(out.queues, &queue{Service: &s.Services[p.Service], Place: p, quota: s.Share(k)})
	}
	for i, members := range of {
		if len(members) == 1 {
			out.queues[members[0]].coming = coming[i]
		} else {
			out.balanced = append(out.balanced, &balancer{coming: coming[i], members: members})
		}
	}
	return out
}

// clone copies it, without what was answered so far.
func (s *state) clone() *state {
	out := &state{}
	for _, a := range s.above {
		out.above = append(out.above, a.clone())
	}
	for _, q := range s.queues {
		c := *q
		c.waiting, c.coming, c.done = append([]request(nil), q.waiting...), slices.Clip(q.coming), nil
		out.queues = append(out.queues, &c)
	}
	for _, b := range s.balanced {
		c := *b
		out.balanced = append(out.balanced, &c)
	}
	return out
}

// advance runs all instances from t to t+step, the n-th step of a period, behind quotas of their
// own or below one for all of each host.
func (s *state) advance(shares bool, t float64, n int) {
	for _, b := range s.balanced {
		b.advance(s.queues, t)
	}
	if shares {
		for _, a := range s.above {
			a.advance(s.queues, t, n)
		}
		return
	}
	for _, q := range s.queues {
		q.advance(t, n)
	}
}

// play runs the seconds from one to before another with the weights of each instance, and
// returns those.
func (s *state) play(way func(second int) []float64, from, to int) (out [][]float64) {
	for second := from; second < to; second++ {
		weights := way(second)
		for i, q := range s.queues {
			q.quota = weights[i]
		}
		for k := range int(1 / step) {
			s.advance(true, float64(second)+float64(k)*step, k%steps)
		}
		out = append(out, weights)
	}
	return out
}

// windows has, per service, the share in time of each window, of those that were answered or
// still wait; NaN without any.
func (s *state) windows(of *Scenario) (out [][]float64) {
	all := make([][]float64, len(of.Services))
	for i := range of.Services {
		out, all[i] = append(out, make([]float64, of.Seconds/window+1)), make([]float64, of.Seconds/window+1)
	}
	for _, q := range s.queues {
		i := q.Place.Service
		for _, a := range q.done {
			k := int(a.at) / window
			all[i][k]++
			if a.met(q.Latency) {
				out[i][k]++
			}
		}
		for _, w := range q.waiting {
			if !w.dead {
				all[i][int(w.at)/window]++
			}
		}
	}
	for i := range out {
		for k := range out[i] {
			out[i][k] /= all[i][k]
		}
	}
	return out
}

// balancer is a load balancer by least connections: a request goes to the instance with the
// fewest open ones, of several to the next in turn.
type balancer struct {
	coming  []Request
	members []int // places
	turn    int
}

// advance sends what comes from t to t+step to the instances.
func (b *balancer) advance(qs []*queue, t float64) {
	for len(b.coming) > 0 && b.coming[0].At < t+step {
		to := -1
		for k := range b.members {
			m := b.members[(b.turn+k)%len(b.members)]
			if to < 0 || qs[m].open() < qs[to].open() {
				to = m
			}
		}
		b.turn = (slices.Index(b.members, to) + 1) % len(b.members)
		qs[to].coming = append(qs[to].coming, b.coming[0])
		b.coming = b.coming[1:]
	}
}
