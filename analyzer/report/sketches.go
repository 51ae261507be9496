package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"github.com/trimtab/trimtab/quantile"
)

// Sketches are the partial sketches of one workload and interval, in order of partition and time.
type Sketches []*trimtab.Sketch

// place compares partial sketches by partition and time; 0: they are duplicates.
func place(a, b *trimtab.Sketch) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), a.From.Compare(b.From), a.To.Compare(b.To))
}

// Add inserts s in order. Of two sketches for the same partition and time, which only a restarted
// path step sends, the one with more spans counts, in whichever order they come.
func (p *Sketches) Add(s *trimtab.Sketch) (duplicate bool) {
	i, found := slices.BinarySearchFunc(*p, s, place)
	if !found {
		*p = slices.Insert(*p, i, s)
		return false
	}
	old := (*p)[i]
	if cmp.Or(cmp.Compare(s.Spans, old.Spans), cmp.Compare(s.Requests, old.Requests), cmp.Compare(s.Under, old.Under)) > 0 {
		(*p)[i] = s
	}
	return true
}

// Cells returns the number of partial sketches, and the number that there would be if every
// partition had a request in every part of an interval of that length.
func (p Sketches) Cells(partitions int, length time.Duration) (present, whole int) {
	if len(p) == 0 {
		return 0, 0
	}
	each := p[0].To.Sub(p[0].From)
	return len(p), partitions * max(1, int(length/each))
}

// Spans is the content of the merged sketches of an interval.
type Spans struct {
	Requests, Under float64
	// Refused is how many of the Requests a gate did not pass on, by class.
	Refused map[string]float64
	// Read is the number of requests whose spans were read, at most Requests.
	Read    float64
	Load    float64
	Sampled bool
	// Lost: partial sketches seem to be lost, so that Load was scaled up.
	Lost    bool
	Latency quantile.Histogram
	// Begun[k] is the number of requests that began k intervals before they ended.
	Begun   []float64
	Slowest []trimtab.Exemplar
	// Sojourn is the total time, in seconds, that the Visits spent in the workload itself; 0: none
	// of its components reported it.
	Visits, Sojourn float64
	// Components are the names of the components with spans, sorted.
	Components []string
	// Servpods and Calls have where the time of the requests was spent.
	Servpods []trimtab.ServpodSketch
	Calls    []trimtab.CallSketch
}

// Merge adds up the partial sketches of an interval with the given length. Requests within latency
// count as Under. A partition that sent nothing had no request, or its sketch was lost. With λ
// requests per cell, a fraction e^-λ of the cells is expected to be empty; if many more are,
// sketches were lost, and Load is scaled up from the others. False: there was no request.
func (p Sketches) Merge(partitions int, length, latency time.Duration) (s Spans, ok bool) {
	if len(p) == 0 {
		return s, false
	}
	counted := 0.0
	for _, x := range p {
		s.Requests += x.Requests
		s.Under += underOf(x, latency)
		s.Sampled = s.Sampled || x.Sampled
		counted += float64(x.Spans)
		s.Latency.Merge(&x.Latency)
		s.Begun = sumBegun(s.Begun, x.Begun, x.Requests)
		s.Visits += x.Requests - refusedOf(x)
		s.Refused = sumRefused(s.Refused, x.Refused)
		for _, name := range slices.Sorted(maps.Keys(x.Components)) {
			if i, found := slices.BinarySearch(s.Components, name); !found {
				s.Components = slices.Insert(s.Components, i, name)
			}
			h := &x.Components[name].Sojourn
			if mean, ok := h.Mean(); ok {
				s.Sojourn += mean * h.Count()
			}
		}
		s.Slowest = merge.Slowest(s.Slowest, x.Exemplars)
		s.Servpods = merge.Servpods(s.Servpods, x.Servpods)
		s.Calls = merge.Calls(s.Calls, x.Calls)
	}
	s.Read = s.Requests
	if s.Sampled {
		s.Read = math.Min(s.Requests, counted)
	}
	s.Load = s.Requests / length.Seconds()
	present, whole := p.Cells(partitions, length)
	empty := float64(whole) * math.Exp(-s.Requests/float64(present))
	if float64(whole-present) > 0.5+3*empty {
		s.Lost = true
		s.Load *= float64(whole) / float64(present)
	}
	return s, s.Requests > 0
}

// underOf returns how many requests of p were within latency. If p counted them with another
// threshold, its histogram gives the number to within 1%.
func underOf(p *trimtab.Sketch, latency time.Duration) float64 {
	if latency <= 0 || p.Threshold == trimtab.SecondsOf(latency) {
		return math.Min(p.Under, p.Requests)
	}
	below, _ := p.Latency.FractionBelow(latency.Seconds())
	return math.Min(below*(p.Requests-refusedOf(p)), p.Requests-math.Min(p.Errors, p.Requests))
}

// refusedOf returns how many requests of p a gate did not pass on.
func refusedOf(p *trimtab.Sketch) float64 {
	return math.Min(sumOf(p.Refused), p.Requests)
}

// maxClasses bounds the classes of refused requests. Those beyond it are counted as other.
const (
	maxClasses = 17
	other      = "other"
)

// sumRefused adds the numbers of refused requests by class.
func sumRefused(to, refused map[string]float64) map[string]float64 {
	for _, class := range slices.Sorted(maps.Keys(refused)) {
		if to == nil {
			to = map[string]float64{}
		}
		if _, known := to[class]; !known && len(to) >= maxClasses-1 {
			to[other] += refused[class]
			continue
		}
		to[class] += refused[class]
	}
	return to
}

// sumOf adds up the requests of all classes.
func sumOf(byClass map[string]float64) (sum float64) {
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		sum += byClass[class]
	}
	return sum
}

// Served is how many of the requests the workload itself answered.
func (s *Spans) Served() float64 {
	return math.Max(0, s.Requests-sumOf(s.Refused))
}

// sumBegun adds the numbers of requests by when they began.
func sumBegun(to, begun []float64, requests float64) []float64 {
	if len(begun) == 0 {
		begun = []float64{requests}
	}
	for k, v := range begun {
		if k == len(to) {
			to = append(to, 0)
		}
		to[k] += v
	}
	return to
}
