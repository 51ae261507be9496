package contribution

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
)

const (
	// slotSeconds is the least length of a slot, the unit of loads and comparisons.
	slotSeconds = 10
	// windowSeconds limits each half of the window of the tail. A half also ends once leastTail of
	// its requests are beyond the quantile.
	windowSeconds, leastTail = 15, 3
	// defaultQuantile is the quantile of the paper.
	defaultQuantile = 0.99
	// longest is the longest plausible time, in seconds.
	longest = 1e9
)

// Thresholds are declared for a component by the operator; nil: not declared.
type Thresholds struct {
	LoadLimit, SlackLimit *float64
}

// Objective is the configuration of a workload.
type Objective struct {
	Workload string
	// SLO is the latency limit in seconds, Quantile the fraction of requests that must stay within
	// it; 0: 0.99.
	SLO, Quantile float64
	// MaxLoad is the largest load that the workload can carry, in requests/s; 0: the largest one
	// observed.
	MaxLoad float64
	// Servpods has the thresholds by component.
	Servpods map[string]Thresholds
}

// Interval has the data of all partitions for one interval.
type Interval struct {
	From, To time.Time
	Requests float64
	Latency  *quantile.Histogram
	Servpods []trimtab.ServpodSketch
	Calls    []trimtab.CallSketch
	// Beside: best-effort jobs ran on a host of one of the Servpods.
	Beside bool
}

// Live computes load levels, contributions and the growth of the tail from live traffic. It reads
// no clock: intervals have their times.
type Live struct {
	objective Objective
	// last and current are the halves of the window of the tail; both is scratch space for the
	// latencies of both.
	last, current half
	both          quantile.Histogram
	slot          slot
	// levels has the loads while the workload ran alone, beside those while best-effort jobs ran:
	// the variation of sojourn times in the latter shows the effect of the jobs, not the limit of
	// the workload.
	levels, beside levels
	growth         growth
	servpods       []colocation.Servpod
	cut            int
}

// half is one half of the window of the tail.
type half struct {
	requests, seconds float64
	latency           quantile.Histogram
	// to is the end of its newest interval.
	to time.Time
}

// NewLive returns a Live without any history.
func NewLive(o Objective) *Live {
	if !(o.Quantile > 0 && o.Quantile < 1) {
		o.Quantile = defaultQuantile
	}
	return &Live{objective: o}
}

// Observe adds an interval. It ignores one without requests, or with numbers that are not finite.
func (l *Live) Observe(x Interval) {
	seconds := x.To.Sub(x.From).Seconds()
	if !(seconds > 0) || !(x.Requests > 0) || x.Requests > longest*longest || x.Latency == nil {
		return
	}
	if !l.current.to.IsZero() && x.From.Sub(l.current.to).Seconds() > 2*windowSeconds {
		l.last, l.current = half{}, half{} // there was no traffic for long
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
		l.slot = slot{} // drop old traffic
	}
	l.slot.merge(&slot{start: x.From, requests: x.Requests, seconds: seconds, latency: *x.Latency, servpods: believed(x.Servpods), calls: x.Calls, beside: x.Beside})
	if l.slot.seconds >= slotSeconds {
		l.close()
	}
}

// believed removes sums that no requests can have, and whose squares would not be finite.
func believed(pods []trimtab.ServpodSketch) (out []trimtab.ServpodSketch) {
	for _, p := range pods {
		if p.N > 0 && p.Sum <= longest*p.N && p.Square <= longest*longest*p.N && p.LatencySquare <= longest*longest*p.N {
			out = append(out, p)
		}
	}
	return out
}

// close ends the current slot.
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
		l.beside.observe(c)
	} else {
		l.levels.observe(c)
	}
	l.growth.observe(&s)
	l.profile()
}

// profile computes the Servpods anew. It uses the loads while the workload ran alone, as in the
// paper's solo run. Before there are any it uses the others, which give no loadlimit.
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

// Report returns the state of the workload; nil: there was no traffic.
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
		of = 1 // too few requests for the quantile: take the slowest
	}
	if v, ok := l.both.Quantile(of); ok {
		out.Tail = &v
	}
	return out
}

// calls returns the calls in the newest slot: a call that is no longer made does not belong to the
// call graph.
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
