package contribution

import (
	"github.com/trimtab/trimtab/analyzer/path"
)

// edge identifies a kind of time: the own time of a component when it is called by a certain
// caller, or the caller's waiting for it.
type edge struct {
	caller, component int32
	wait              bool
}

// part is the time of one edge in one visit, in seconds.
type part struct {
	edge int32
	time float64
}

// sampled is one request.
type sampled struct {
	trace   [16]byte
	latency float64
	// weight is the number of requests that this one stands for under sampling.
	weight float64
	// parts[from:to] of the sample has its times on the critical path.
	from, to int
}

// Requests stores single requests for a comparison, with 16 bytes for each time on their critical
// paths. The zero value is empty.
type Requests struct {
	numbers  map[string]int32
	names    []string
	byEdge   map[edge]int32
	edges    []edge
	parts    []part
	requests []sampled
}

// Count returns the number of stored requests.
func (s *Requests) Count() int { return len(s.requests) }

// Total returns the number of requests that the stored ones stand for, the sum of their adjusted
// counts.
func (s *Requests) Total() float64 {
	sum := 0.0
	for i := range s.requests {
		sum += s.requests[i].weight
	}
	return sum
}

// number returns the index of a component.
func (s *Requests) number(name string) int32 {
	if i, ok := s.numbers[name]; ok {
		return i
	}
	if len(s.names) >= maxComponents && name != Other {
		return s.number(Other)
	}
	if s.numbers == nil {
		s.numbers, s.byEdge = map[string]int32{}, map[edge]int32{}
	}
	i := int32(len(s.names))
	s.numbers[name] = i
	s.names = append(s.names, name)
	return i
}

// put adds a time to the last request.
func (s *Requests) put(e edge, seconds float64) {
	i, ok := s.byEdge[e]
	if !ok {
		i = int32(len(s.edges))
		s.byEdge[e] = i
		s.edges = append(s.edges, e)
	}
	s.parts = append(s.parts, part{i, seconds})
}

// Add stores a request.
func (s *Requests) Add(r *path.Request) {
	if len(r.Visits) == 0 || !(r.Adjusted > 0) || r.End < r.Start {
		return
	}
	from := len(s.parts)
	for i := range r.Visits {
		v := &r.Visits[i]
		if v.Own > 0 && v.OnPath == 0 && v.OnPathWait == 0 {
			continue // off the critical path: the request did not wait for it
		}
		e := edge{s.number(v.Caller), s.number(v.Component), false}
		s.put(e, v.OnPath.Seconds())
		if v.Called && !v.Peer { // of a peer's time it is unknown which part was waiting
			e.wait = true
			s.put(e, v.OnPathWait.Seconds())
		}
	}
	s.requests = append(s.requests, sampled{r.Trace, r.Latency().Seconds(), r.Adjusted, from, len(s.parts)})
}

// times returns all times of the sample by edge.
func (s *Requests) times() map[namedEdge]*weighted {
	out := make(map[namedEdge]*weighted, len(s.edges))
	for i := range s.requests {
		r := &s.requests[i]
		for _, p := range s.parts[r.from:r.to] {
			e := s.named(p.edge)
			if out[e] == nil {
				out[e] = &weighted{}
			}
			out[e].add(p.time, r.weight)
		}
	}
	for _, v := range out {
		v.sort()
	}
	return out
}

// namedEdge is an edge with names, so that edges of two samples can be compared.
type namedEdge struct {
	caller, component string
	wait              bool
}

func (s *Requests) named(i int32) namedEdge {
	e := s.edges[i]
	return namedEdge{s.names[e.caller], s.names[e.component], e.wait}
}

// latencies returns the latencies of all requests.
func (s *Requests) latencies() *weighted {
	var out weighted
	for i := range s.requests {
		out.add(s.requests[i].latency, s.requests[i].weight)
	}
	out.sort()
	return &out
}
