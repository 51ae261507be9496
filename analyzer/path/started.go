package path

import "slices"

// startedBy returns the sums of the requests that a component started itself.
func (x *window) startedBy(component placeID) *sum {
	for int(component) >= len(x.started) {
		x.started = append(x.started, nil)
	}
	if x.started[component] == nil {
		x.started[component] = new(sum)
	}
	return x.started[component]
}

// totals returns the sums by workload, with what its components started themselves where
// they were not seen to serve requests. It changes none.
func (x *window) totals(p *places) []*sum {
	out, own := x.sums, true
	for id, s := range x.started {
		if s == nil || p.serves(placeID(id)) {
			continue
		}
		if own {
			out, own = slices.Clone(x.sums), false
		}
		w := p.places[id].workload
		out[w] = out[w].plus(s)
	}
	return out
}

// plus returns the sum of s and t, which may share memory with one of them.
func (s *sum) plus(t *sum) *sum {
	if s.requests == 0 {
		out := *t
		out.spans, out.sampled, out.flagged = s.spans+t.spans, s.sampled || t.sampled, s.flagged
		return &out
	}
	out := sum{spans: s.spans, sampled: s.sampled, flagged: s.flagged}
	for _, x := range []*sum{s, t} {
		out.requests += x.requests
		out.under += x.under
		out.errors += x.errors
		out.latency.Merge(&x.latency)
		for k, n := range x.begun {
			out.begin(int64(k), n)
		}
		for _, y := range x.slowest.held[:x.slowest.n] {
			out.slowest.add(y)
		}
		for id, n := range x.served {
			out.serve(instanceID(id), n)
		}
		out.servpods.add(&x.servpods)
	}
	return &out
}
