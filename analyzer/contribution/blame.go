package contribution

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// The constants of the rule that decides what counts as a change. They are conventional values, not
// fitted to recordings. The form of the rule was chosen with the recordings of docs/papers.md in
// view.
const (
	// level is the probability that an unchanged tail is called changed, at most, over all
	// quantiles together (Bonferroni).
	level = 0.05
	// leastGrowth is the least growth of a quantile, as a factor, that is reported.
	leastGrowth = 1.1
	// usual is the quantile of the times before the incident that counts as their usual maximum.
	usual = 0.9
	// twofold is the factor by which the waiting for every callee must have grown for their caller
	// to count as starved.
	twofold = 2
	// fewVisits is the number of visits below which that is not tested.
	fewVisits = 3
)

// quantiles returns the quantiles of the latency that are compared.
func quantiles() []float64 { return []float64{0.9, 0.95, 0.99} }

// Growth is the change of one quantile of the latency, in seconds.
type Growth struct {
	Quantile, Before, After float64
	// Slower is the fraction of later requests that took longer than Before.
	Slower float64
	// P is the probability of at least that many if nothing had changed.
	P float64
}

// Culprit is one component and its part in the growth of the tail.
type Culprit struct {
	Name string
	// Share is its part of the votes of the requests that became slow. The rest up to 1 is time
	// that no changed component explains: other requests, or single slow ones.
	Share float64
	// Before and After are the mean sojourn times per request through it, in seconds, including the
	// waiting that is charged to it, BeforeWait and AfterWait. Before is 0 if the component did not
	// exist.
	Before, After, BeforeWait, AfterWait float64
	// Requests is how many of the later requests visited it, and Slow how many of these are in the
	// tail, by their adjusted counts.
	Requests, Slow float64
	// Starved: it waits longer for all its callees, although they are as fast as before.
	Starved bool
	// Example is the trace of the slow request in which its excess is largest.
	Example [16]byte
}

// Verdict is the comparison of two samples.
type Verdict struct {
	// Changed: the tail grew by more than chance explains.
	Changed bool
	// Tail has the change of each quantile. Chosen is the most significant one.
	Tail   []Growth
	Chosen Growth
	// Components have a part in the growth, the largest first; empty without a change.
	Components []Culprit
}

// Blame compares requests of an incident with earlier ones.
//
// The tail has grown if more of the later requests exceed a quantile of the earlier ones than
// chance explains (the precedence test), and the quantile itself has grown by 10%. Each slow
// request then has one vote, which is divided among the components by their excess. The excess is a
// component's time in the request, less the earlier mean of the same edge (caller, component, own
// or waiting time). An excess is weighted by how much the edge itself has changed, w = (S − e)/(1 −
// e): S is the fraction of its times that exceed the earlier 90th percentile, e the fraction that
// chance puts there. A component that is slow now and then, as before, or for a few large requests,
// is thus not blamed. If more times exceed all earlier ones than chance explains, the excess over
// the longest earlier one is weighted by 1 − e/S, the fraction of these times that is not due to
// chance: a component may be slow in one request of twenty, and these form the tail. The votes of
// the earlier tail are subtracted.
//
// Under sampling all counts are adjusted counts. The tests then use the number of equally weighted
// requests that carries as much information ([weighted]).
//
// Waiting is charged to the callee, or to the caller if the caller is starved.
func Blame(before, after *Requests) Verdict {
	v := Verdict{Tail: compareTails(before.latencies(), after.latencies())}
	for _, g := range v.Tail {
		if g.P < level/float64(len(v.Tail)) && g.After >= leastGrowth*g.Before && (!v.Changed || g.P < v.Chosen.P) {
			v.Changed, v.Chosen = true, g
		}
	}
	if !v.Changed {
		return v
	}
	c := newComparison(before, after)
	v.Components = c.culprits(v.Chosen)
	return v
}

// compareTails tests each quantile; nil if there are no requests.
func compareTails(before, after *weighted) []Growth {
	if before.len() == 0 || after.len() == 0 {
		return nil
	}
	n, m := before.effective(), after.effective()
	var out []Growth
	for _, q := range quantiles() {
		g := Growth{Quantile: q, Before: before.quantile(q), After: after.quantile(q)}
		g.Slower = after.over(g.Before)
		// Values that are equal to the quantile do not count as longer.
		g.P = precedence(of(g.Slower, m), of(before.over(g.Before), n), of(1, n), of(1, m))
		out = append(out, g)
	}
	return out
}

// precedence returns the probability that at least k of m values exceed a certain one of n other
// values, of which above exceed it, if all come from one distribution:
//
//	P(K = j) = C(j+above, j) C(m-j+r-1, m-j) / C(n+m, m),  r = n - above
//
// Source: Balakrishnan and Ng, Precedence-Type Tests and Applications, 2006.
func precedence(k, above, n, m int) float64 {
	r := n - above
	p := 0.0
	for j := m; j >= k; j-- {
		p += math.Exp(logChoose(j+above, j) + logChoose(m-j+r-1, m-j) - logChoose(n+m, m))
	}
	return min(1, p)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n) + 1)
	b, _ := math.Lgamma(float64(k) + 1)
	c, _ := math.Lgamma(float64(n-k) + 1)
	return a - b - c
}

// normal is the state of an edge before the incident, and how much it has changed since.
type normal struct {
	mean, weight float64
	// most is the longest time before, beyond the weight of the time over it.
	most, beyond float64
}

// changed returns the part of a time that is due to a change of the edge.
func (n normal) changed(time float64) float64 {
	return max(n.weight*(time-n.mean), n.beyond*max(0, time-n.most))
}

// comparison has the shared data of the comparison of two samples.
type comparison struct {
	before, after         *Requests
	timesBefore, timesNow map[namedEdge]*weighted
	normal                map[namedEdge]normal
	starved               map[string]bool
}

func newComparison(before, after *Requests) *comparison {
	c := &comparison{before: before, after: after, timesBefore: before.times(), timesNow: after.times(), normal: map[namedEdge]normal{}}
	// An edge with few visits is judged by all calls of its component.
	pooledBefore, pooledNow := pooled(c.timesBefore), pooled(c.timesNow)
	for e := range c.timesNow {
		c.normal[e] = c.normalOf(e, pooledBefore, pooledNow)
	}
	for e := range c.timesBefore {
		if _, ok := c.normal[e]; !ok {
			c.normal[e] = normal{mean: c.timesBefore[e].mean()}
		}
	}
	c.starved = c.findStarved()
	return c
}

// pooled joins all edges to the same component, whoever the caller is.
func pooled(times map[namedEdge]*weighted) map[namedEdge]*weighted {
	out := map[namedEdge]*weighted{}
	for _, e := range slices.SortedFunc(maps.Keys(times), compareEdges) {
		to := e
		to.caller = ""
		if out[to] == nil {
			out[to] = &weighted{}
		}
		out[to].values = append(out[to].values, times[e].values...)
	}
	for _, v := range out {
		v.sort()
	}
	return out
}

func compareEdges(a, b namedEdge) int {
	if a.wait != b.wait {
		if b.wait {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.caller, b.caller))
}

// normalOf compares the earlier and later times of one edge.
func (c *comparison) normalOf(e namedEdge, pooledBefore, pooledNow map[namedEdge]*weighted) normal {
	before, now, all := c.timesBefore[e], c.timesNow[e], e
	all.caller = ""
	if before == nil || before.len() < fewVisits {
		before = pooledBefore[all]
	}
	if now.len() < fewVisits {
		now = pooledNow[all]
	}
	if before == nil {
		return normal{weight: 1} // the edge is new: all of its time is growth
	}
	rank := before.rank(usual)
	// By chance, the fraction 1/(n+1) of later values falls between two neighbours of n values. One
	// more value that does not exceed rank is added, so that a single visit proves nothing.
	n, m := before.effective(), now.effective()
	chance := n * before.from(rank) / (n + 1)
	seen := m * now.over(before.values[rank].value) / (m + 1)
	out := normal{mean: before.mean(), weight: max(0, (seen-chance)/(1-chance)), most: before.quantile(1)}
	// By chance, the k longest of n+m values are all later ones with a probability below
	// (m/(n+m))^k.
	if over := now.over(out.most); math.Pow(m/(n+m), m*over) < level/float64(len(c.timesNow)) {
		out.beyond = max(0, 1-(m+1)/((n+1)*m*over))
	}
	return out
}

// charged returns the component to which the time of an edge is charged.
func (c *comparison) charged(e namedEdge) string {
	if e.wait && c.starved[e.caller] {
		return e.caller
	}
	return e.component
}
