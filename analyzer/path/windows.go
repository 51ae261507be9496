package path

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantile"
)

// maxAge is how old the end of a span may be before its clock is doubted
// rather than its way to us, in ns.
const maxAge = 60 * 1e9

// windows holds the intervals that are not yet closed.
type windows struct {
	config *Config
	places *places
	// open is in order of time; intervals before floor are closed.
	open  []*window
	floor int64
	last  *window // the one used last
}

// window sums up one interval: number n covers [n Every, (n+1) Every).
type window struct {
	number, from int64
	// sums is by workload, cells by place; nil: nothing was seen.
	sums  []*sum
	cells []*trimtab.Component
	// started is by the place of the component: its requests that no SERVER or CONSUMER
	// span tells. They count unless it is seen to serve some before the interval is closed.
	started []*sum
}

// sum is what one workload showed.
type sum struct {
	requests, under, errors float64
	spans                   uint64
	sampled                 bool
	latency                 quantile.Histogram
	// begun[k] requests began k intervals before they ended.
	begun   []float64
	slowest slowest
	// served are the requests by number of their instance.
	served []float64
	// servpods are where the time of its requests went.
	servpods servpods
	flagged  tally
}

// pick returns the interval that a request which ended at end counts in, and
// what is wrong with that.
func (w *windows) pick(end, now int64) (int64, faults) {
	every := int64(w.config.Every)
	if w.last != nil && end >= w.last.from && end-w.last.from < every && end <= now {
		return w.last.number, 0
	}
	n := end / every
	switch {
	case end > now+int64(w.config.Skew), n < w.floor && end < now-maxAge:
		return now / every, wrongClock
	case n < w.floor:
		return now / every, late
	}
	return n, 0
}

// at returns window n, opening it when needed.
func (w *windows) at(n int64) *window {
	if w.last != nil && w.last.number == n {
		return w.last
	}
	i, found := slices.BinarySearchFunc(w.open, n, func(x *window, n int64) int { return int(x.number - n) })
	if !found {
		w.open = slices.Insert(w.open, i, &window{number: n, from: n * int64(w.config.Every)})
	}
	w.last = w.open[i]
	return w.last
}

func (x *window) sum(workload int32) *sum {
	for int(workload) >= len(x.sums) {
		x.sums = append(x.sums, nil)
	}
	if x.sums[workload] == nil {
		x.sums[workload] = new(sum)
	}
	return x.sums[workload]
}

func (x *window) cell(p placeID) *trimtab.Component {
	for int(p) >= len(x.cells) {
		x.cells = append(x.cells, nil)
	}
	if x.cells[p] == nil {
		x.cells[p] = new(trimtab.Component)
	}
	return x.cells[p]
}

// emit closes the intervals that ended Grace before now.
func (w *windows) emit(now int64) []trimtab.Value {
	w.floor = max(w.floor, (now-int64(w.config.Grace))/int64(w.config.Every))
	n := 0
	for n < len(w.open) && w.open[n].number < w.floor {
		n++
	}
	return w.close(n)
}

// flush closes all intervals.
func (w *windows) flush() []trimtab.Value {
	if n := len(w.open); n > 0 {
		w.floor = max(w.floor, w.open[n-1].number+1)
	}
	return w.close(len(w.open))
}

// close returns the sketches of the first n open intervals.
func (w *windows) close(n int) []trimtab.Value {
	if n == 0 {
		return nil
	}
	var out []trimtab.Value
	closed := slices.Clone(w.open[:n])
	w.open = slices.Delete(w.open, 0, n) // first: what fails here must not fail again for ever
	w.last = nil
	for _, x := range closed {
		from := len(out)
		for i, s := range x.totals(w.places) {
			if s != nil && s.requests > 0 {
				out = append(out, w.sketch(x, int32(i), s))
			}
		}
		slices.SortFunc(out[from:], func(a, b trimtab.Value) int { return strings.Compare(a.Key(), b.Key()) })
	}
	return out
}

// serve counts a request of an instance.
func (s *sum) serve(by instanceID, weight float64) {
	if by == unnamed {
		return
	}
	for int(by) >= len(s.served) {
		s.served = append(s.served, 0)
	}
	s.served[by] += weight
}

// begin counts a request that began k intervals before it ended.
func (s *sum) begin(k int64, weight float64) {
	k = min(max(k, 0), trimtab.MaxBegun-1)
	for int64(len(s.begun)) <= k {
		s.begun = append(s.begun, 0)
	}
	s.begun[k] += weight
}

// begunOf is what a sketch says: nothing where all began in its interval.
func begunOf(begun []float64) []float64 {
	if len(begun) < 2 {
		return nil
	}
	return begun
}

func (w *windows) sketch(x *window, workload int32, s *sum) *trimtab.Sketch {
	every := int64(w.config.Every)
	about := w.places.workloads[workload]
	s.latency.Settle()
	out := &trimtab.Sketch{
		Workload:  about.name,
		Partition: w.config.Partition,
		From:      time.Unix(0, x.number*every).UTC(),
		To:        time.Unix(0, (x.number+1)*every).UTC(),
		Requests:  s.requests,
		Spans:     s.spans,
		Sampled:   s.sampled,
		Latency:   s.latency,
		Begun:     begunOf(s.begun),
		Threshold: trimtab.SecondsOf(time.Duration(about.threshold)),
		Under:     s.under,
		Errors:    s.errors,
		Exemplars: s.slowest.exemplars(),
		Versions:  about.versions,
		Instances: about.instances.loads(s.served),
		Servpods:  s.servpods.sketch(w.places),
		Calls:     s.servpods.sketchCalls(w.places),
	}
	for id, c := range x.cells {
		if place := w.places.places[id]; c != nil && place.workload == workload {
			if out.Components == nil {
				out.Components = map[string]*trimtab.Component{}
			}
			c.Sojourn.Settle()
			out.Components[place.component] = c
		}
	}
	for i, n := range s.flagged {
		if n > 0 {
			if out.Flagged == nil {
				out.Flagged = map[string]uint64{}
			}
			out.Flagged[faultName(i)] = n
		}
	}
	return out
}
