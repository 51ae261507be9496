package contribution

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
)

const (
	// maxClusters is the largest number of loads that are kept apart; if there are more, the two
	// neighbours with the fewest requests are merged.
	maxClusters = 12
	// maxPods is the largest number of Servpods of one load; a new one replaces the one with the
	// fewest requests.
	maxPods = trimtab.MaxSketchServpods
	// halfLife is the half-life of a request, in seconds of traffic: the behavior of older releases
	// is forgotten.
	halfLife = 6 * 3600
	// leastLevel is the least number of requests in a level, leastLevels the number of levels that
	// a loadlimit needs.
	leastLevel, leastLevels = 100, 4
	// leastSpan is the ratio of the largest to the smallest load that a loadlimit needs: the effect
	// of the load cannot be seen at a single load.
	leastSpan = 1.5
)

// pod identifies a Servpod.
type pod struct{ component, host string }

func (p pod) compare(q pod) int {
	return cmp.Or(cmp.Compare(p.component, q.component), cmp.Compare(p.host, q.host))
}

// podMoments has the sums of one Servpod at one load.
type podMoments struct {
	Moments
	Off, OffLatency, Slack float64
	// sends: it sends spans, and is not only named in those of its callers.
	sends bool
}

func (m *podMoments) scale(by float64) {
	for _, v := range []*float64{&m.N, &m.Sum, &m.Square, &m.Latency, &m.LatencySquare, &m.Cross, &m.Off, &m.OffLatency, &m.Slack} {
		*v *= by
	}
}

func (m *podMoments) merge(o *podMoments) {
	m.Moments.Merge(o.Moments)
	m.Off, m.OffLatency, m.Slack = m.Off+o.Off, m.OffLatency+o.OffLatency, m.Slack+o.Slack
	m.sends = m.sends || o.sends
}

// cluster sums up the workload at similar loads.
type cluster struct {
	requests, seconds float64
	// most is the largest load of one of its slots.
	most    float64
	latency quantile.Histogram
	pods    map[pod]*podMoments
}

func (c *cluster) load() float64 { return c.requests / c.seconds }

// of returns the sums of a Servpod, creating them if needed.
func (c *cluster) of(p pod) *podMoments {
	if m := c.pods[p]; m != nil {
		return m
	}
	if c.pods == nil {
		c.pods = map[pod]*podMoments{}
	}
	if len(c.pods) >= maxPods {
		var least pod
		first := true
		for q, m := range c.pods {
			if l := c.pods[least]; first || m.N < l.N || m.N == l.N && q.compare(least) < 0 {
				least, first = q, false
			}
		}
		delete(c.pods, least)
	}
	m := new(podMoments)
	c.pods[p] = m
	return m
}

func (c *cluster) merge(o *cluster) {
	c.requests, c.seconds, c.most = c.requests+o.requests, c.seconds+o.seconds, max(c.most, o.most)
	c.latency.Merge(&o.latency)
	c.latency.Settle()
	for _, p := range podsOf(o.pods) {
		c.of(p).merge(o.pods[p])
	}
}

func podsOf[V any](m map[pod]V) []pod {
	out := make([]pod, 0, len(m))
	for p := range m {
		out = append(out, p)
	}
	slices.SortFunc(out, pod.compare)
	return out
}

// fade scales all sums of c by a factor, and reports whether hardly anything is left.
func (c *cluster) fade(by float64) (gone bool) {
	c.requests, c.seconds = c.requests*by, c.seconds*by
	c.latency.Scale(by)
	c.latency.Settle()
	for p, m := range c.pods {
		if m.scale(by); m.N < 0.5 {
			delete(c.pods, p)
		}
	}
	return c.requests < 1
}

// levels has the traffic of a workload by load, in ascending order.
type levels struct{ clusters []*cluster }

// observe adds a slot of traffic, to which it keeps a reference, and lets the others fade.
func (l *levels) observe(c *cluster) {
	by := math.Exp2(-c.seconds / halfLife)
	l.clusters = slices.DeleteFunc(l.clusters, func(x *cluster) bool { return x.fade(by) })
	i, _ := slices.BinarySearchFunc(l.clusters, c.load(), func(x *cluster, load float64) int { return cmp.Compare(x.load(), load) })
	l.clusters = slices.Insert(l.clusters, i, c)
	if len(l.clusters) <= maxClusters {
		return
	}
	at, fewest := 0, math.Inf(1)
	for i := range len(l.clusters) - 1 {
		if n := l.clusters[i].requests + l.clusters[i+1].requests; n < fewest {
			at, fewest = i, n
		}
	}
	l.clusters[at].merge(l.clusters[at+1])
	l.clusters = slices.Delete(l.clusters, at+1, at+2)
}

// most returns the largest load ever seen.
func (l *levels) most() float64 {
	most := 0.0
	for _, c := range l.clusters {
		most = max(most, c.most)
	}
	return most
}

// cut divides the clusters into levels with about the same number of requests.
func (l *levels) cut() (out []*cluster) {
	total := 0.0
	for _, c := range l.clusters {
		total += c.requests
	}
	m := min(maxLevels, max(1, int(total/leastLevel)))
	seen := 0.0
	var level *cluster
	for i, c := range l.clusters {
		if level == nil {
			level = &cluster{}
		}
		level.merge(c)
		seen += c.requests
		if i == len(l.clusters)-1 || seen >= total*float64(len(out)+1)/float64(m) && level.requests >= leastLevel {
			out = append(out, level)
			level = nil
		}
	}
	if n := len(out); n > 1 && out[n-1].requests < leastLevel {
		out[n-2].merge(out[n-1])
		out = out[:n-1]
	}
	return out
}

// profile returns the Servpods by equations (2) to (6), and the number of levels. tail is the
// quantile of the latency that counts as tail.
func (l *levels) profile(tail float64) ([]colocation.Servpod, int) {
	cut := l.cut()
	p := Profile{Alpha: map[string]float64{}}
	all := map[pod]*podMoments{}
	for _, c := range cut {
		q, _ := c.latency.Quantile(tail)
		p.Tail = append(p.Tail, q)
		p.Loads = append(p.Loads, c.load())
		for name, m := range c.pods {
			if all[name] == nil {
				all[name] = new(podMoments)
			}
			all[name].merge(m)
		}
	}
	pods := podsOf(all)
	if len(pods) > colocation.MaxServpods {
		pods = pods[:colocation.MaxServpods]
	}
	for _, name := range pods {
		series := Series{Name: name.component + "\x00" + name.host}
		for _, c := range cut {
			sum := 0.0
			if m := c.pods[name]; m != nil {
				sum = m.Sum
			}
			series.Sojourn = append(series.Sojourn, sum/c.requests)
		}
		p.Components = append(p.Components, series)
		off := all[name]
		o := offPath{on: off.N - off.Off, off: off.Off, slack: off.Slack, latency: off.OffLatency}
		p.Alpha[series.Name] = o.alpha()
	}
	r, err := p.Compute()
	if err != nil {
		return nil, len(cut)
	}
	most := l.most()
	out := make([]colocation.Servpod, len(pods))
	for i, c := range r.Components {
		component, host, _ := strings.Cut(c.Name, "\x00")
		out[i] = colocation.Servpod{Component: component, Host: host, Sojourn: c.Mean, Weight: min(1, c.P), Correlation: c.Rho, Variation: c.V, Contribution: c.C}
		if out[i].Peer = !all[pods[i]].sends; out[i].Peer {
			continue // no best-effort work is known to run beside it
		}
		if limit, ok := loadLimit(cut, pods[i], most); ok {
			out[i].LoadLimit, out[i].Origin = &limit, colocation.FromHistory
		}
	}
	return out, len(cut)
}

// loadLimit returns the load of the first level, from the one with the lowest CoV on, at which the
// CoV of sojourn times exceeds its mean over all levels by twice its own standard error. The load
// is relative to the largest one.
func loadLimit(levels []*cluster, name pod, most float64) (float64, bool) {
	if len(levels) < leastLevels || !(most > 0) || levels[len(levels)-1].load() < leastSpan*levels[0].load() {
		return 0, false
	}
	cov, errs := make([]float64, len(levels)), make([]float64, len(levels))
	calmest, sum := 0, 0.0
	for j, l := range levels {
		m := l.pods[name]
		if m == nil || m.N < leastLevel/2 {
			return 0, false // it was not visited at all loads
		}
		cov[j] = m.CoV()
		// The standard error for a normal distribution. Sojourn times have heavier tails, but with
		// those a growth of the CoV is larger as well.
		errs[j] = cov[j] * math.Sqrt((0.5+cov[j]*cov[j])/m.N)
		sum += cov[j]
		if cov[j] < cov[calmest] {
			calmest = j
		}
	}
	average := sum / float64(len(levels))
	for j := calmest; j < len(levels); j++ {
		if cov[j] > average+2*errs[j] {
			return min(1, levels[j].load()/most), true
		}
	}
	return 0, false
}
