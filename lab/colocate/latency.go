package colocate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab/lab"
)

const (
	// tableSize draws of each distribution are made beforehand, one of each
	// stratum, in random order. A period begins anywhere in it.
	tableSize = 4096
	// most requests of a period are sampled, as tracing samples them; a slow
	// service has fewer, and a tail that is as uncertain as theirs.
	fewestSamples, mostSamples = 100, 512
	// tailQuantile is that of the SLO.
	tailQuantile = 0.99
)

// tables are the draws of one component: of the service time in units of its
// mean, and two exponentials.
type tables struct{ service, wait, stall []float64 }

func newTables(cv float64, r *rand.Rand) *tables {
	t := &tables{service: make([]float64, tableSize), wait: make([]float64, tableSize), stall: make([]float64, tableSize)}
	sigma := math.Sqrt(math.Log1p(cv * cv))
	for i := range tableSize {
		u := (float64(i) + 0.5) / tableSize
		t.service[i] = math.Exp(sigma*math.Sqrt2*math.Erfinv(2*u-1) - sigma*sigma/2)
		t.wait[i] = -math.Log(u)
		t.stall[i] = t.wait[i]
	}
	for _, v := range [][]float64{t.service, t.wait, t.stall} {
		r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
	}
	return t
}

// visit is a call with its component as a number.
type visit struct {
	component int
	share     float64
	stages    [][]visit
}

func (s *Service) compile(c *Call) visit {
	v := visit{share: c.Share}
	if v.share == 0 {
		v.share = 1
	}
	for i := range s.Components {
		if s.Components[i].Name == c.Component {
			v.component = i
		}
	}
	for _, stage := range c.Stages {
		var calls []visit
		for i := range stage {
			calls = append(calls, s.compile(&stage[i]))
		}
		v.stages = append(v.stages, calls)
	}
	return v
}

// sampler draws the latencies of a service's requests. It is not safe for
// concurrent use.
type sampler struct {
	root    visit
	tables  []*tables
	rand    *rand.Rand
	scratch [][]float64
}

func newSampler(s *Service, seed ...uint64) *sampler {
	a, b := lab.Seed(seed...)
	out := &sampler{root: s.compile(&s.Call), rand: rand.New(rand.NewPCG(a, b))}
	for i := range s.Components {
		out.tables = append(out.tables, newTables(s.Components[i].CV, out.rand))
	}
	return out
}

// take returns a buffer of n; give puts it back.
func (s *sampler) take(n int) []float64 {
	if k := len(s.scratch); k > 0 {
		b := s.scratch[k-1]
		s.scratch = s.scratch[:k-1]
		return b[:n]
	}
	return make([]float64, n, max(n, mostSamples))
}

func (s *sampler) give(b []float64) { s.scratch = append(s.scratch, b) }

// draw fills out with the times of one call.
func (s *sampler) draw(v *visit, st []station, out []float64) {
	s.own(&st[v.component], s.tables[v.component], out)
	for _, stage := range v.stages {
		longest := s.take(len(out))
		s.draw(&stage[0], st, longest)
		for i := 1; i < len(stage); i++ {
			other := s.take(len(out))
			s.draw(&stage[i], st, other)
			for n, x := range other {
				longest[n] = max(longest[n], x)
			}
			s.give(other)
		}
		for n, x := range longest {
			out[n] += x
		}
		s.give(longest)
	}
	if v.share < 1 {
		for n := range out {
			if s.rand.Float64() >= v.share {
				out[n] = 0
			}
		}
	}
}

// own fills out with the times in one station. A wait that is exponential with
// mean m with probability p, and else 0, is max(0, m (E + ln p)) of a standard
// exponential E.
func (s *sampler) own(st *station, t *tables, out []float64) {
	i, j := s.rand.IntN(tableSize), s.rand.IntN(tableSize)
	fixed := st.floor + st.behind
	for n := range out {
		x := fixed + st.mean*t.service[(i+n)&(tableSize-1)]
		if w := t.wait[(j+n)&(tableSize-1)] + st.logWait; w > 0 {
			x += st.wait * w
		}
		out[n] = x
	}
	if st.pause == 0 {
		return
	}
	k := s.rand.IntN(tableSize)
	for n := range out {
		if w := t.stall[(k+n)&(tableSize-1)] + st.logStall; w > 0 {
			out[n] += st.pause * w
		}
	}
}

// p99 is that of n requests.
func (s *sampler) p99(st []station, n int) float64 {
	out := s.take(n)
	s.draw(&s.root, st, out)
	v := nth(out, int(math.Ceil(tailQuantile*float64(n)))-1)
	s.give(out)
	return v
}

// samples is how many requests of a period are seen.
func samples(requests float64) int {
	return int(min(max(requests, fewestSamples), mostSamples))
}

// nth returns the k-th least of v, which it reorders (Hoare's selection).
func nth(v []float64, k int) float64 {
	low, high := 0, len(v)-1
	for high-low > 12 {
		pivot := max(min(v[low], v[high]), min(max(v[low], v[high]), v[(low+high)/2]))
		i, j := low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return v[k]
		}
	}
	slices.Sort(v[low : high+1])
	return v[k]
}
