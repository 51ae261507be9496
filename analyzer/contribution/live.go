package contribution

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
)

const (
	// slotSeconds is the least length of a slot: the unit of loads and of comparisons.
	slotSeconds = 10
	// windowSeconds bounds each of the two halves of the window of the tail; with
	// leastTail requests beyond the quantile a half is enough.
	windowSeconds, leastTail = 15, 3
	// defaultQuantile is that of the paper.
	defaultQuantile = 0.99
	// longest bounds times that are believed, in seconds.
	longest = 1e9
)

// Thresholds are those that an operator declared for a component; nil: none.
type Thresholds struct {
	LoadLimit, SlackLimit *float64
}

// Objective is what is declared for a workload.
type Objective struct {
	Workload string
	// SLO is the threshold, in seconds, and Quantile its fraction; 0: 0.99.
	SLO, Quantile float64
	// MaxLoad is the most that it can carry, in requests/s; 0: the most that was seen.
	MaxLoad float64
	// Servpods are by component.
	Servpods map[string]Thresholds
}

// Interval is the data of all partitions for one interval.
type Interval struct {
	From, To time.Time
	Requests float64
	Latency  *quantile.Histogram
	Servpods []trimtab.ServpodSketch
	Calls    []trimtab.CallSketch
	// Beside says that best-effort jobs ran on a host of one of the Servpods.
	Beside bool
}

// Live computes load levels, contributions and growth of the tail from live traffic. It has no
// clock: time is that of the intervals.
type Live struct {
	objective Objective
	// last and current are the halves of the window, both is the latency of both, for a report.
	last, current half
	both          quantile.Histogram
	slot          slot
	// levels are the loads while the workload ran alone, beside those while best-effort jobs ran:
	// the variation of sojourn times there shows the effect of the jobs, not the limit of the
	// workload.
	levels, beside levels
	growth         growth
	servpods       []colocation.Servpod
	cut            int
}

// half is a part of the window of the tail.
type half struct {
	requests, seconds float64
	latency           quantile.Histogram
	// to is the end of its newest interval.
	to time.Time
}

// NewLive returns one that has seen nothing.
func NewLive(o Objective) *Live {
	if !(o.Quantile > 0 && o.Quantile < 1) {
		o.Quantile = defaultQuantile
	}
	return &Live{objective: o}
}

// Take adds an interval. One without requests, or with numbers that are not finite, is ignored.
func (l *Live) Take(x Interval) {
	seconds := x.To.Sub(x.From).Seconds()
	if !(seconds > 0) || !(x.Requests > 0) || x.Requests > longest*longest || x.Latency == nil {
		return
	}
	if !l.current.to.IsZero() && x.From.Sub(l.current.to).Seconds() > 2*windowSeconds {
		l.last, l.current = half{}, half{} // nothing came for long
	}
	if l.current.requests*(1-l.objective.Quantile) >= leastTail || l.current.seconds >= windowSeconds {
		l.last, l.current = l.current, half{}
	}
	l.current.requests += x.Requests
	l.current.seconds += seconds
	l.current.to = x.To
	l.current.latency.Merge(x.Latency)
	l.current.latency.Settle()
	if l.slot.seconds > 0 && x.To.Sub(l.slot.start).Seconds() > 3*slotSeconds+seconds {
		l.slot = slot{} // traffic of a time too far off
	}
	l.slot.merge(&slot{start: x.From, requests: x.Requests, seconds: seconds, latency: *x.Latency, servpods: believed(x.Servpods), calls: x.Calls, beside: x.Beside})
	if l.slot.seconds >= slotSeconds {
		l.close()
	}
}

// believed drops sums that no requests can have, whose squares would not be finite.
func believed(pods []trimtab.ServpodSketch) (out []trimtab.ServpodSketch) {
	for _, p := range pods {
		if p.N > 0 && p.Sum <= longest*p.N && p.Square <= longest*longest*p.N && p.LatencySquare <= longest*longest*p.N {
			out = append(out, p)
		}
	}
	return out
}

// close ends the slot at hand.
func (l *Live) close() {
	s := l.slot
	l.slot = slot{}
	c := &cluster{requests: s.requests, seconds: s.seconds, most: s.requests / s.seconds, pods: map[pod]*podMoments{}}
	c.latency.Merge(&s.latency)
	c.latency.Settle()
	for i := range s.servpods {
		p := &s.servpods[i]
		*c.of(pod{p.Component, p.Host}) = podMoments{
			Moments{N: p.N, Sum: p.Sum, Square: p.Square, Latency: p.Latency, LatencySquare: p.LatencySquare, Cross: p.Cross}, p.Off, p.OffLatency, p.Slack, !p.Peer}
	}
	if s.beside {
		l.beside.take(c)
	} else {
		l.levels.take(c)
	}
	l.growth.take(&s)
	l.profile()
}

// profile computes the Servpods again: from the loads while the workload ran alone, as in the
// paper's solo run, and before there are any from the others, which give no loadlimit.
func (l *Live) profile() {
	if len(l.levels.clusters) > 0 {
		l.servpods, l.cut = l.levels.profile(l.objective.Quantile)
	} else {
		l.servpods, l.cut = l.beside.profile(l.objective.Quantile)
		for i := range l.servpods {
			l.servpods[i].LoadLimit, l.servpods[i].Origin = nil, ""
		}
	}
	l.declare()
}

// declare replaces computed thresholds by declared ones.
func (l *Live) declare() {
	for i := range l.servpods {
		p := &l.servpods[i]
		d := l.objective.Servpods[p.Component]
		if d.LoadLimit != nil {
			p.LoadLimit, p.Origin = d.LoadLimit, colocation.Declared
		}
		if d.SlackLimit != nil {
			p.SlackLimit, p.SlackOrigin = d.SlackLimit, colocation.Declared
		}
	}
}

// Report returns the state of the workload; nil: no traffic was seen.
func (l *Live) Report(at time.Time) *colocation.Contributions {
	requests, seconds := l.last.requests+l.current.requests, l.last.seconds+l.current.seconds
	if requests == 0 || seconds == 0 {
		return nil
	}
	out := &colocation.Contributions{
		Workload: l.objective.Workload, Time: at, Window: trimtab.Seconds(seconds), Load: requests / seconds, MaxLoad: max(l.levels.most(), l.beside.most()),
		SLO: trimtab.Seconds(l.objective.SLO), Quantile: l.objective.Quantile, Requests: requests, Levels: l.cut,
		Servpods: l.servpods, Growth: l.growth.now, Calls: l.calls(),
	}
	out.MaxLoad = max(out.MaxLoad, l.objective.MaxLoad)
	l.both.Reset()
	l.both.Merge(&l.last.latency)
	l.both.Merge(&l.current.latency)
	of := l.objective.Quantile
	if l.both.Count()*(1-of) < 1-1e-9 {
		of = 1 // too few for the quantile: the slowest of them
	}
	if v, ok := l.both.Quantile(of); ok {
		out.Tail = &v
	}
	return out
}

// calls returns those of the newest slot: a call that is no longer made is not part of the call
// graph.
func (l *Live) calls() (out []colocation.Call) {
	if len(l.growth.recent) == 0 {
		return nil
	}
	s := l.growth.recent[len(l.growth.recent)-1]
	for i := range s.calls {
		c := &s.calls[i]
		if rate := c.N / s.seconds; rate > 0 && !math.IsInf(rate, 1) {
			out = append(out, colocation.Call{From: c.Caller, To: c.Component, Rate: rate})
		}
	}
	return out
}
