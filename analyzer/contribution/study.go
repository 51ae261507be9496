package contribution

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/quantile"
)

const (
	// tail is the quantile of the latency to which contributions are computed.
	tail = 0.99
	// maxLevels is the largest number of load levels. A level has at least leastRequests, so that
	// no single request determines its tail.
	maxLevels, leastRequests = 10, 30
	// maxWindows is the largest number of intervals that are kept apart. If there are more,
	// neighbours are merged.
	maxWindows = 1024
	// maxComponents is the largest number of components; further ones count as Other.
	maxComponents = 4096
)

// Other is the component of services beyond the limit.
const Other = "other"

// Study computes load levels and contributions from live or recorded requests. Its memory does not
// grow with their number. The zero value is empty.
type Study struct {
	// ByHost distinguishes Servpods: a name is then the component, a NUL byte and the host, if the
	// host is known.
	ByHost bool

	// width is the length of a window in seconds, a power of two.
	width   int64
	windows map[int64]*window
	numbers map[pod]int
	names   []pod
	// off has, by component, sums over requests in which it was off the critical path.
	off     []offPath
	scratch []stay
	touched []int
	// requests is the number of requests that the sampled ones stand for.
	requests, sampled float64
}

// window has the requests that began in one interval. Intervals without requests are not kept,
// since a recording may have gaps.
type window struct {
	requests   float64
	latency    quantile.Histogram
	components []Moments
}

// offPath has sums over the requests that visited a component: on and off count those in which it
// was on the critical path or off it; slack and latency, in seconds, are of the latter.
type offPath struct {
	on, off        float64
	slack, latency float64
}

// stay is the time of one component in the current request.
type stay struct {
	in            bool
	total, onPath time.Duration
	wait, slack   time.Duration
}

// number returns the index of a component.
func (s *Study) number(name pod) int {
	if i, ok := s.numbers[name]; ok {
		return i
	}
	if other := (pod{component: Other}); len(s.names) >= maxComponents && name != other {
		return s.number(other)
	}
	if s.numbers == nil {
		s.numbers, s.windows, s.width = map[pod]int{}, map[int64]*window{}, 1
	}
	i := len(s.names)
	s.numbers[name] = i
	s.names = append(s.names, name)
	s.off = append(s.off, offPath{})
	s.scratch = append(s.scratch, stay{})
	return i
}

// Add counts a request in the interval in which it began.
func (s *Study) Add(r *path.Request) {
	if len(r.Visits) == 0 || !(r.Adjusted > 0) || r.End < r.Start {
		return
	}
	s.touched = s.touched[:0]
	for i := range r.Visits {
		v := &r.Visits[i]
		name := pod{component: v.Component}
		if s.ByHost {
			name.host = v.Host
		}
		k := s.number(name)
		t := &s.scratch[k]
		if !t.in {
			*t = stay{in: true, slack: v.Slack}
			s.touched = append(s.touched, k)
		}
		t.total += v.Own + v.Wait
		t.onPath += v.OnPath + v.OnPathWait
		t.wait += v.Wait
		t.slack = min(t.slack, v.Slack)
	}
	w := s.window(r.Start / int64(time.Second))
	latency := r.Latency().Seconds()
	w.requests += r.Adjusted
	s.requests += r.Adjusted
	s.sampled++
	w.latency.Add(latency, r.Adjusted)
	for _, k := range s.touched {
		t := &s.scratch[k]
		t.in = false
		w.of(k).Add(t.total.Seconds(), latency, r.Adjusted)
		o := &s.off[k]
		if t.onPath > 0 || t.total == 0 {
			o.on += r.Adjusted
			continue
		}
		o.off += r.Adjusted
		o.slack += r.Adjusted * t.slack.Seconds()
		o.latency += r.Adjusted * latency
	}
}

// of returns the moments of component k, creating them if needed.
func (w *window) of(k int) *Moments {
	if k >= len(w.components) {
		w.components = append(w.components, make([]Moments, k+1-len(w.components))...)
	}
	return &w.components[k]
}

// merge adds o to w.
func (w *window) merge(o *window) {
	w.requests += o.requests
	w.latency.Merge(&o.latency)
	for k, m := range o.components {
		w.of(k).Merge(m)
	}
}

// window returns the window of a second. If there are too many, it doubles the width of all
// windows.
func (s *Study) window(second int64) *window {
	w := s.windows[second/s.width]
	for w == nil {
		if len(s.windows) < maxWindows {
			w = &window{}
			s.windows[second/s.width] = w
			break
		}
		s.widen()
		w = s.windows[second/s.width]
	}
	return w
}

// widen merges each pair of neighbouring windows.
func (s *Study) widen() {
	s.width *= 2
	wider := make(map[int64]*window, len(s.windows))
	for _, k := range slices.Sorted(maps.Keys(s.windows)) {
		if w := wider[k/2]; w != nil {
			w.merge(s.windows[k])
		} else {
			wider[k/2] = s.windows[k]
		}
	}
	s.windows = wider
}

// levels divides the windows, in order of their load, into levels with about the same number of
// requests.
func (s *Study) levels() (levels []*window, loads []float64) {
	order := slices.Sorted(maps.Keys(s.windows))
	slices.SortStableFunc(order, func(a, b int64) int { return cmp.Compare(s.windows[a].requests, s.windows[b].requests) })
	m := min(maxLevels, max(1, int(s.sampled/leastRequests)))
	var level *window
	seen, windows := 0.0, 0
	for i, k := range order {
		if level == nil {
			level, windows = &window{}, 0
		}
		level.merge(s.windows[k])
		windows++
		seen += s.windows[k].requests
		if i == len(order)-1 || seen >= s.requests*float64(len(levels)+1)/float64(m) {
			levels = append(levels, level)
			loads = append(loads, level.requests/float64(windows)/float64(s.width))
			level = nil
		}
	}
	return levels, loads
}

// Answer is the result of a study.
type Answer struct {
	Result
	// Moments has, by component, the moments over all levels.
	Moments  map[string]Moments
	Loads    []float64
	Requests float64
}

// Contributions returns the contributions, the largest first. The error is trimtab.ErrInvalid if
// there are no requests.
func (s *Study) Contributions() (Answer, error) {
	if s.requests == 0 {
		return Answer{}, trimtab.Invalidf("no request with a duration")
	}
	levels, loads := s.levels()
	p := Profile{Alpha: map[string]float64{}, CoV: map[string][]float64{}, Loads: loads}
	out := Answer{Moments: map[string]Moments{}, Loads: loads, Requests: s.requests}
	for _, l := range levels {
		q, _ := l.latency.Quantile(tail)
		p.Tail = append(p.Tail, q)
	}
	for k, servpod := range s.names {
		name := servpod.component
		if servpod.host != "" {
			name += "\x00" + servpod.host
		}
		series, all := Series{Name: name}, Moments{}
		for _, l := range levels {
			m := l.of(k)
			series.Sojourn = append(series.Sojourn, m.Sum/l.requests)
			p.CoV[name] = append(p.CoV[name], m.CoV())
			all.Merge(*m)
		}
		p.Components = append(p.Components, series)
		p.Alpha[name] = s.off[k].alpha()
		out.Moments[name] = all
	}
	var err error
	if out.Result, err = p.Compute(); err != nil {
		return Answer{}, err
	}
	slices.SortStableFunc(out.Components, func(a, b Contribution) int {
		return cmp.Or(cmp.Compare(b.C, a.C), cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// alpha returns α of equation (6), estimated from requests: 1 for a component that is on the
// critical path in most of its requests. For others the longest path through the component is
// shorter than the request by the component's slack, so that α = 1 − slack/latency.
func (o *offPath) alpha() float64 {
	if o.on >= o.off || o.latency == 0 {
		return 1
	}
	return max(0, 1-o.slack/o.latency)
}
