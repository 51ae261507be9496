package path

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantile"
)

// maxAge is the largest age, in ns, of the end of a span that a delay can explain; an older one
// means that the sender's clock is wrong.
const maxAge int64 = 60 * 1e9

// windows has the open intervals.
type windows struct {
	config *Config
	places *places
	// open is in order of time. For a workload, the intervals before its floor are closed.
	open   []*window
	floors []int64
	last   *window // the one that was used last
}

// window sums up one interval: number n covers [n Every, (n+1) Every).
type window struct {
	number, from int64
	// sums is indexed by workload, cells by place; nil: there were no spans.
	sums  []*sum
	cells []*trimtab.Component
}

// sum is the summary of one workload in one interval.
type sum struct {
	requests, under, errors float64
	// come counts the request spans that have arrived, including those of unfinished traces.
	come trimtab.Part
	// late counts requests that arrived after their interval was closed.
	late float64
	// adjusted counts requests whose span says how many requests it stands for.
	adjusted float64
	spans    uint64
	sampled  bool
	latency  quantile.Histogram
	// begun[k] requests began k intervals before they ended.
	begun   []float64
	slowest slowest
	// served has the requests of each instance, by number.
	served []float64
	// servpods sums up where the time of the requests was spent.
	servpods servpods
	flagged  tally
	// unserved counts requests without a SERVER or CONSUMER span.
	unserved float64
	// started are the requests without a SERVER or CONSUMER span, by component. They count unless
	// the component is seen to serve requests before the interval is closed.
	started []startedSum
}

// pick returns the interval in which a request of a workload that ended at end counts, and the
// fault of its time, if any. A request whose own interval is closed is assigned to a later one.
func (w *windows) pick(workload int32, end, now int64) (int64, faults) {
	every := int64(w.config.Every)
	n := end / every
	switch {
	case end > now+int64(w.config.Skew):
		return now / every, wrongClock
	case n < w.floor(workload):
		return max(now/every, w.floor(workload)), late
	}
	return n, 0
}

// floor returns the first interval of a workload that is not closed.
func (w *windows) floor(workload int32) int64 {
	if int(workload) >= len(w.floors) {
		return 0
	}
	return w.floors[workload]
}

// at returns window n, opening it if needed.
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

// foretell counts a request whose span has just arrived. It ignores requests with a wrong clock or
// a closed interval, which say nothing of the present.
func (w *windows) foretell(workload int32, end, now int64, weight float64, under bool) {
	if now-end > maxAge {
		return
	}
	n, fault := w.pick(workload, end, now)
	if fault != 0 {
		return
	}
	s := w.at(n).sum(workload)
	s.come.Requests += weight
	if under {
		s.come.Under += weight
	}
}

// newer returns the requests of a workload that have arrived so far of the intervals after x.
func (w *windows) newer(x *window, workload int32) (all []trimtab.Part) {
	for _, y := range w.open {
		k := y.number - x.number - 1
		if k < 0 || k >= trimtab.MaxBegun || int(workload) >= len(y.sums) || y.sums[workload] == nil || y.sums[workload].come.Requests == 0 {
			continue
		}
		all = append(all, make([]trimtab.Part, k+1-int64(len(all)))...)
		all[k] = y.sums[workload].come
	}
	return all
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

// emit closes the intervals for which all spans have arrived.
func (w *windows) emit(now int64, from *senders) []trimtab.Value {
	w.raise(now, from)
	return w.close(now, from)
}

// raise computes for each workload up to which interval all spans have arrived.
func (w *windows) raise(now int64, from *senders) {
	every := int64(w.config.Every)
	for i := range w.places.workloads {
		mark := now - int64(w.config.Grace)
		if w.config.Lateness > 0 {
			mark = from.group(int32(i)).mark
		}
		for i >= len(w.floors) {
			w.floors = append(w.floors, 0)
		}
		w.floors[i] = max(w.floors[i], mark/every)
	}
}

// flush closes all intervals.
func (w *windows) flush(now int64, from *senders) []trimtab.Value {
	w.raise(now, from)
	for i := range w.floors {
		if n := len(w.open); n > 0 {
			w.floors[i] = max(w.floors[i], w.open[n-1].number+1)
		}
	}
	return w.close(now, from)
}

// close returns the sketches of closed intervals.
func (w *windows) close(now int64, from *senders) (out []trimtab.Value) {
	w.last = nil
	w.open = slices.DeleteFunc(w.open, func(x *window) bool {
		open, begun := false, len(out)
		for i, s := range x.sums {
			switch {
			case s == nil:
			case x.number >= w.floors[i]:
				open = true
			default:
				x.sums[i] = nil // first, so that a panic below cannot repeat for ever
				if s = s.total(w.places); s.requests > 0 || s.late > 0 {
					out = append(out, w.sketch(x, int32(i), s, now, from))
				}
			}
		}
		slices.SortFunc(out[begun:], func(a, b trimtab.Value) int { return strings.Compare(a.Key(), b.Key()) })
		return !open
	})
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

// begin counts a request that began k intervals before the one in which it ended.
func (s *sum) begin(k int64, weight float64) {
	k = min(max(k, 0), trimtab.MaxBegun-1)
	for int64(len(s.begun)) <= k {
		s.begun = append(s.begun, 0)
	}
	s.begun[k] += weight
}

// begunOf returns the value for the sketch: nil if all requests began in the interval in which they
// ended.
func begunOf(begun []float64) []float64 {
	if len(begun) < 2 {
		return nil
	}
	return begun
}

func (w *windows) sketch(x *window, workload int32, s *sum, now int64, from *senders) *trimtab.Sketch {
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
		Adjusted:  s.adjusted,
		Unserved:  s.unserved,
		Latency:   s.latency,
		Begun:     begunOf(s.begun),
		Threshold: trimtab.SecondsOf(time.Duration(about.threshold)),
		Under:     s.under,
		Errors:    s.errors,
		Refused:   about.instances.refused(s.served),
		Late:      s.late,
		Wait:      trimtab.Seconds(seconds(max(0, now-(x.number+1)*every))),
		Missing:   from.group(workload).part(),
		Newer:     w.newer(x, workload),
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
