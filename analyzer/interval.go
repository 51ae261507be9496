package analyzer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantile"
)

// interval gathers what was measured in one report's interval: number n
// covers [n Report, (n+1) Report) since 1970.
type interval struct {
	number int64
	// parts are partial sketches, in order of partition and time.
	parts []*trimtab.Sketch
	// performance is the latest sample of it, nil: none.
	performance *trimtab.Sample
	// proxy is the latest sample of what stands for it, nil: none.
	proxy *trimtab.Sample
	// load tells that a load sample fell into it.
	load bool
	// arrived is the first tick after the last arrival; stirred tells that
	// something came since the last tick.
	arrived time.Time
	stirred bool
}

// place orders partial sketches and tells duplicates.
func place(a, b *trimtab.Sketch) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), a.From.Compare(b.From), a.To.Compare(b.To))
}

// add puts s in its place. Of two sketches for one place, which only a
// restarted path step sends, the fuller one counts, whatever came first.
func (v *interval) add(s *trimtab.Sketch) (duplicate bool) {
	i, found := slices.BinarySearchFunc(v.parts, s, place)
	if !found {
		v.parts = slices.Insert(v.parts, i, s)
		return false
	}
	old := v.parts[i]
	if cmp.Or(cmp.Compare(s.Spans, old.Spans), cmp.Compare(s.Requests, old.Requests), cmp.Compare(s.Under, old.Under)) > 0 {
		v.parts[i] = s
	}
	return true
}

// cells returns how many partial sketches there are, and how many there would
// be had every partition seen a request in every part of the interval.
func (v *interval) cells(partitions int, report time.Duration) (present, whole int) {
	if len(v.parts) == 0 {
		return 0, 0
	}
	each := v.parts[0].To.Sub(v.parts[0].From)
	return len(v.parts), partitions * max(1, int(report/each))
}

// spans is what the merged sketches of an interval say.
type spans struct {
	requests, under float64
	// read is the number of requests really seen, at most requests.
	read    float64
	load    float64
	sampled bool
	// lost tells that partial sketches seem lost, so that load was scaled.
	lost    bool
	latency quantile.Histogram
	// begun[k] requests began k intervals before.
	begun   []float64
	slowest []trimtab.Exemplar
	// sojourn is the time, in seconds, that the visits spent in the workload
	// itself; 0: no component of it told.
	visits, sojourn float64
}

// merge sums up the partial sketches. Partitions that sent nothing either had
// no request or their sketch was lost: with λ requests per cell, e^-λ of the
// cells are expected empty; many more than that were lost, and the load of
// the others stands for them.
func (v *interval) merge(c *Config, latency time.Duration) (s spans, ok bool) {
	if len(v.parts) == 0 {
		return s, false
	}
	counted := 0.0
	for _, p := range v.parts {
		s.requests += p.Requests
		s.under += underOf(p, latency)
		s.sampled = s.sampled || p.Sampled
		counted += float64(p.Spans)
		s.latency.Merge(&p.Latency)
		s.begun = sumBegun(s.begun, p.Begun, p.Requests)
		s.visits += p.Requests
		for _, name := range slices.Sorted(maps.Keys(p.Components)) {
			h := &p.Components[name].Sojourn
			if mean, ok := h.Mean(); ok {
				s.sojourn += mean * h.Count()
			}
		}
		s.slowest = trimtab.SlowestExemplars(s.slowest, p.Exemplars)
	}
	s.read = s.requests
	if s.sampled {
		s.read = math.Min(s.requests, counted)
	}
	s.load = s.requests / c.Report.Seconds()
	present, whole := v.cells(c.Partitions, c.Report)
	empty := float64(whole) * math.Exp(-s.requests/float64(present))
	if float64(whole-present) > 0.5+3*empty {
		s.lost = true
		s.load *= float64(whole) / float64(present)
	}
	return s, s.requests > 0
}

// underOf returns how many requests of p kept the latency; p counted them if
// it knew the threshold, otherwise its histogram tells within 1%.
func underOf(p *trimtab.Sketch, latency time.Duration) float64 {
	if latency <= 0 || p.Threshold == trimtab.SecondsOf(latency) {
		return math.Min(p.Under, p.Requests)
	}
	below, _ := p.Latency.FractionBelow(latency.Seconds())
	return math.Min(below*p.Requests, p.Requests-math.Min(p.Errors, p.Requests))
}

// newer reports whether sample a replaces b: the later one; of equal times an
// arbitrary but fixed one.
func newer(a, b *trimtab.Sample) bool {
	return b == nil || cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Requests, b.Requests)) > 0
}
