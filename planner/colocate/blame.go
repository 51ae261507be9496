package colocate

import (
	"math"
	"time"
)

// This file decides which resource of jobs caused a missed SLO; it is not in algorithm 2. A miss
// soon after a step beyond a ceiling is attributed to that resource alone. Any other miss is
// attributed to all Servpods of the service, to each by its share of the contribution, since the
// hosts do not know of each other. If the service misses again, all of them lower their ceilings by
// twice as much, and so on.
const (
	// blamed is the number of periods, beyond the window of the measurement, for which a miss is
	// attributed to a step.
	blamed = 4
	// leastPart is the least share that is assumed for a Servpod. A blame within the time
	// remembered makes the next one greater.
	leastPart, remembered = 0.1, 10 * time.Minute
	mostBlames            = 10
	// slight is the fraction of a full reduction of the ceilings that applies to a miss by a
	// slack of 0; from a slack of slight − 1 down the reduction is full.
	slight = 0.25
	// maxTry is the largest number of ticks that a resource waits after a step that failed.
	maxTry = 150
)

// back returns the fraction by which a stop lowers the ceiling of a resource. It is least for
// cores, which help jobs most; other resources have no ceiling. Of two settings tried in
// lab/colocate (seed 1, 3 hours, both loads) this one did more work.
func back(resource string) float64 {
	switch resource {
	case llc:
		return 0.5
	case membw:
		return 0.4
	case cpu, cores:
		return 0.25
	}
	return 0
}

// remember records the amounts of jobs that did no harm. It lowers the ceilings of the service that
// decides, once until that service is calm again.
func (p *policy) remember(r *round, v *verdict) {
	if v.free || p.rules.limits != nil {
		return
	}
	if v.verb == AllowBEGrowth {
		if p.Calm+1 >= leastWait {
			for _, s := range p.Services {
				s.Episode = false
			}
		}
		if !v.oldest.Before(p.Grown) {
			p.prove(r)
		}
	}
	s := p.Services[v.by]
	if s.Episode || math.IsNaN(v.load) || v.verb != StopBE && v.verb != CutBE {
		return
	}
	s.Episode = true
	if p.suspected(r) {
		p.blameTried(r, s)
	} else {
		p.blameAll(r, v, s)
	}
}

// suspected reports whether the last step beyond a ceiling is too recent to be known as safe.
func (p *policy) suspected(r *round) bool {
	window := time.Duration(0)
	for i := range r.o.Services {
		window = max(window, min(r.o.Services[i].Window, p.MaxAge))
	}
	return p.Tried.Resource != "" && r.o.Time.Sub(p.Tried.At) <= blamed*p.Period+window
}

// blameTried lowers the ceiling again that the last step exceeded.
func (p *policy) blameTried(r *round, s *standing) {
	name := p.Tried.Resource
	p.Tried.Resource = ""
	t := p.Tries[name]
	if t != nil {
		t.Wait = min(2*t.Wait, maxTry)
		p.postpone(r, name, t)
	}
	if k := index(r.names, name); k >= 0 && r.sum[k] > 0 {
		s.tooMuch(name, math.Max(r.sum[k]-p.sizes.beyond(name), p.sizes.step[name]))
	}
}

// blameAll lowers the ceilings of all resources of a service.
func (p *policy) blameAll(r *round, v *verdict, s *standing) {
	if r.o.Time.Sub(s.Blamed) > remembered {
		s.Blames = 0
	}
	part := math.Min(1, math.Ldexp(math.Max(v.share, leastPart), s.Blames))
	s.Blames, s.Blamed = min(s.Blames+1, mostBlames), r.o.Time
	switch {
	case !p.apart:
		part = 1
	case v.verb == StopBE:
		part *= math.Min(1, slight-v.slack)
	}
	for k, name := range r.names {
		by := back(name) * r.sum[k] * part
		if v.verb == CutBE {
			by = math.Min(by, p.sizes.beyond(name))
		}
		if by > 0 {
			s.tooMuch(name, math.Max(r.sum[k]-by, p.sizes.step[name]))
		}
	}
}

// tooMuch records that the service does not meet its SLO with more than n at its present load.
func (s *standing) tooMuch(name string, n float64) {
	table(&s.Ceilings, name).lower(s.Ready-shift, n)
	c := table(&s.Proven, name)
	for b := bin(s.Ready - shift); b < len(c); b++ {
		c[b] = math.Min(c[b], n)
	}
}

// table returns the table of that name, and creates it if needed.
func table(of *map[string]ceiling, name string) ceiling {
	if *of == nil {
		*of = map[string]ceiling{}
	}
	if (*of)[name] == nil {
		(*of)[name] = make(ceiling, bins+1)
	}
	return (*of)[name]
}

// tried is the last step beyond a ceiling.
type tried struct {
	Resource string    `json:"resource,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// try is the history of one resource's steps beyond its ceilings.
type try struct {
	// Wait is the number of ticks, about, until Next. Count is how many waits there were.
	Wait  int       `json:"wait"`
	Next  time.Time `json:"next,omitzero"`
	Count int       `json:"count,omitempty"`
}

// tryOf returns the history of a resource.
func (m *memory) tryOf(name string) *try {
	if m.Tries == nil {
		m.Tries = map[string]*try{}
	}
	if m.Tries[name] == nil {
		m.Tries[name] = &try{Wait: leastWait}
	}
	return m.Tries[name]
}

// postpone makes a resource wait for half to one and a half of its time, by a hash of host and
// count: so hosts that share a service do not try at the same time, and each can attribute a miss
// to its own step.
func (p *policy) postpone(r *round, name string, t *try) {
	t.Count = (t.Count + 1) % (1 << 20)
	h := (hash(p.Host) ^ hash(name) + uint64(t.Count)) * 0x9e3779b97f4a7c15
	part := 0.5 + float64(h>>54)/1024
	t.Next = r.o.Time.Add(time.Duration(part * float64(t.Wait) * float64(p.Period)))
}
