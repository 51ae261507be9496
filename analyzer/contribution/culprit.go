package contribution

import (
	"cmp"
	"maps"
	"slices"
)

// tally has the sums of one component in one sample.
type tally struct {
	votes          float64
	requests, slow float64
	total, wait    float64
	// most is its largest excess in a slow request; example is the trace of that request.
	most    float64
	example [16]byte
}

// excess is the time of one component in one request, compared with before.
type excess struct {
	total, wait float64
	// raw is the time above the earlier mean. changed is the part of it that is due to a change of
	// the component itself.
	raw, changed float64
}

// tally sums up a sample by component. Requests with a latency above over form its tail.
func (c *comparison) tally(s *Requests, over float64) map[string]*tally {
	out := map[string]*tally{}
	of := make([]string, len(s.edges))
	normals := make([]normal, len(s.edges))
	for i := range s.edges {
		e := s.named(int32(i))
		of[i], normals[i] = c.charged(e), c.normal[e]
		if out[of[i]] == nil {
			out[of[i]] = &tally{}
		}
	}
	in := map[string]*excess{}
	for i := range s.requests {
		r := &s.requests[i]
		clear(in)
		for _, p := range s.parts[r.from:r.to] {
			x := in[of[p.edge]]
			if x == nil {
				x = &excess{}
				in[of[p.edge]] = x
			}
			time, n := p.time, normals[p.edge]
			x.total += time
			if s.edges[p.edge].wait {
				x.wait += time
			}
			x.raw += time - n.mean
			x.changed += n.changed(time)
		}
		vote(out, in, r, r.latency > over)
	}
	return out
}

// vote adds one request and, if it is slow, divides its vote.
func vote(out map[string]*tally, in map[string]*excess, r *sampled, slow bool) {
	all := 0.0
	names := slices.Sorted(maps.Keys(in)) // sorted, so that sums are exactly the same in every run
	for _, name := range names {
		all += max(0, in[name].raw)
	}
	for _, name := range names {
		x, t := in[name], out[name]
		t.requests += r.weight
		t.total += r.weight * x.total
		t.wait += r.weight * x.wait
		if !slow {
			continue
		}
		t.slow += r.weight
		if x.changed <= 0 || all <= 0 {
			continue
		}
		t.votes += r.weight * min(1, x.changed/all)
		if x.changed > t.most {
			t.most, t.example = x.changed, r.trace
		}
	}
}

// culprits ranks the components by their part of the growth of the tail.
func (c *comparison) culprits(chosen Growth) []Culprit {
	before, now := c.tally(c.before, chosen.Before), c.tally(c.after, chosen.Before)
	nBefore, nNow := c.before.Total(), c.after.Total()
	grown := chosen.Slower - c.before.latencies().over(chosen.Before)
	sum := 0.0
	var out []Culprit
	for _, name := range slices.Sorted(maps.Keys(now)) {
		t, b := now[name], before[name]
		if b == nil {
			b = &tally{}
		}
		if t.most <= 0 {
			continue
		}
		share := t.votes/nNow - b.votes/nBefore
		if share <= 0 {
			continue
		}
		sum += share
		out = append(out, Culprit{
			Name: name, Share: share, Requests: t.requests, Slow: t.slow, Starved: c.starved[name], Example: t.example,
			Before: ratio(b.total, b.requests), After: ratio(t.total, t.requests),
			BeforeWait: ratio(b.wait, b.requests), AfterWait: ratio(t.wait, t.requests),
		})
	}
	for i := range out {
		out[i].Share /= max(sum, grown)
	}
	slices.SortStableFunc(out, func(a, b Culprit) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// ratio returns a mean per request, or 0 if there are none.
func ratio(sum, n float64) float64 {
	if n == 0 {
		return 0
	}
	return sum / n
}
