package path

// startedSum sums up the requests of a component without a SERVER or CONSUMER span.
type startedSum struct {
	component placeID
	*sum
}

// startedBy returns the sums of the requests that a component started itself.
func (s *sum) startedBy(component placeID) *sum {
	for _, x := range s.started {
		if x.component == component {
			return x.sum
		}
	}
	x := startedSum{component, new(sum)}
	s.started = append(s.started, x)
	return x.sum
}

// total returns the sums, including requests without a SERVER or CONSUMER span of components that
// never served one.
func (s *sum) total(p *places) *sum {
	for _, x := range s.started {
		if !p.serves(x.component) {
			n := s.unserved + x.requests
			s = s.plus(x.sum)
			s.unserved = n
		}
	}
	return s
}

// plus returns the sum of s and t. It may share memory with one of them.
func (s *sum) plus(t *sum) *sum {
	if s.requests == 0 {
		out := *t
		out.late += s.late
		out.spans, out.sampled, out.flagged = s.spans, s.sampled, s.flagged
		return &out
	}
	out := sum{late: s.late + t.late, spans: s.spans, sampled: s.sampled, flagged: s.flagged}
	for _, x := range []*sum{s, t} {
		out.requests += x.requests
		out.adjusted += x.adjusted
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
