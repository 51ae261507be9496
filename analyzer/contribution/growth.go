package contribution

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
)

const (
	// nowSlots is the number of latest slots that are compared with the time before. The comparison
	// needs leastBefore slots with fewBefore requests before, and fewNow requests now.
	nowSlots, leastBefore = 6, 6
	fewBefore, fewNow     = 200, 50
	// lasting is the number of slots after which a change counts as the new normal.
	lasting = 180
	// normalHalf is the half-life of a slot in the normal state, in slots.
	normalHalf = 360
	// mostTested limits the numbers of requests in the precedence test: requests of a live service
	// are not independent, so that thousands prove no more than this.
	mostTested = 500
	// unusual is the number of standard deviations by which a quantile must exceed its mean over
	// slots, on a logarithmic scale.
	unusual = 3
	// leastShare is the least part of a growth that is reported.
	leastShare = 0.02
)

// slot is the traffic of some seconds.
type slot struct {
	start             time.Time
	requests, seconds float64
	latency           quantile.Histogram
	servpods          []trimtab.ServpodSketch
	calls             []trimtab.CallSketch
	// beside: best-effort jobs ran during a part of it.
	beside bool
}

func (s *slot) merge(o *slot) {
	if s.start.IsZero() {
		s.start = o.start
	}
	s.requests, s.seconds, s.beside = s.requests+o.requests, s.seconds+o.seconds, s.beside || o.beside
	s.latency.Merge(&o.latency)
	s.latency.Settle()
	s.servpods = boundTo(maxPods, merge.Servpods(s.servpods, o.servpods), func(p trimtab.ServpodSketch) float64 { return p.N })
	s.calls = boundTo(trimtab.MaxSketchCalls, merge.Calls(s.calls, o.calls), func(c trimtab.CallSketch) float64 { return c.N })
}

// boundTo returns the n elements with the largest weights, in their order.
func boundTo[T any](n int, all []T, weight func(T) float64) []T {
	if len(all) <= n {
		return all
	}
	weights := make([]float64, len(all))
	for i := range all {
		weights[i] = weight(all[i])
	}
	slices.Sort(weights)
	least := weights[len(weights)-n]
	all = slices.DeleteFunc(all, func(x T) bool { return weight(x) < least })
	return all[:min(n, len(all))]
}

// fade scales all sums of s by a factor.
func (s *slot) fade(by float64) {
	s.requests, s.seconds = s.requests*by, s.seconds*by
	s.latency.Scale(by)
	s.latency.Settle()
	fadeTail := func(tail []trimtab.TailSum) {
		for i := range tail {
			tail[i][1], tail[i][2], tail[i][3] = tail[i][1]*by, tail[i][2]*by, tail[i][3]*by
		}
	}
	for i := range s.servpods {
		p := &s.servpods[i]
		for _, v := range []*float64{&p.N, &p.Sum, &p.Square, &p.Latency, &p.LatencySquare, &p.Cross, &p.Wait, &p.Off, &p.OffLatency, &p.Slack} {
			*v *= by
		}
		fadeTail(p.Tail)
	}
	for i := range s.calls {
		c := &s.calls[i]
		c.N, c.Own, c.Wait = c.N*by, c.Own*by, c.Wait*by
		fadeTail(c.Tail)
	}
	s.servpods = slices.DeleteFunc(s.servpods, func(p trimtab.ServpodSketch) bool { return p.N < 0.01 })
	s.calls = slices.DeleteFunc(s.calls, func(c trimtab.CallSketch) bool { return c.N < 0.01 })
}

// spread has the mean and variance of the logarithm of a quantile over slots; old slots count less.
type spread struct{ n, mean, variance float64 }

func (s *spread) add(x float64) {
	s.n = s.n*math.Exp2(-1.0/normalHalf) + 1
	d := x - s.mean
	s.mean += d / s.n
	s.variance += (d*(x-s.mean) - s.variance) / s.n
}

// growth compares the traffic of the last minute with the time before.
type growth struct {
	recent []*slot // the latest slots, the oldest first
	before slot
	// slots is the number of slots in before. changed has the slots since the tail grew, lasted of
	// them: they do not count as normal until the change has lasted.
	slots, lasted int
	changed       slot
	usual         [3]spread // by quantiles()
	now           *colocation.TailGrowth
}

// observe adds a slot, and keeps a reference to it.
func (g *growth) observe(s *slot) {
	g.recent = append(g.recent, s)
	if len(g.recent) > nowSlots {
		g.settle(g.recent[0])
		g.recent = slices.Delete(g.recent, 0, 1)
	}
	g.now = g.compare()
}

// settle adds a past slot to the normal state, unless the tail has grown.
func (g *growth) settle(s *slot) {
	if g.now != nil && g.now.Changed {
		g.changed.merge(s)
		if g.lasted++; g.lasted <= lasting {
			return
		}
		g.before, g.slots, g.usual = g.changed, g.lasted, [3]spread{}
		for i, q := range quantiles() {
			g.usual[i].add(logQuantile(s, q))
		}
		g.changed, g.lasted = slot{}, 0
		return
	}
	g.changed, g.lasted = slot{}, 0
	g.before.fade(math.Exp2(-1.0 / normalHalf))
	g.before.merge(s)
	g.slots++
	for i, q := range quantiles() {
		g.usual[i].add(logQuantile(s, q))
	}
}

func logQuantile(s *slot, q float64) float64 {
	v, _ := s.latency.Quantile(q)
	return math.Log(max(v, 1e-9))
}

// compare returns whether the tail has grown; nil: too few requests.
func (g *growth) compare() *colocation.TailGrowth {
	var now slot
	for _, s := range g.recent {
		now.merge(s)
	}
	if g.slots < leastBefore || g.before.latency.Count() < fewBefore || now.latency.Count() < fewNow {
		return nil
	}
	var chosen Growth
	changed := false
	var last Growth
	for i, q := range quantiles() {
		x := compareQuantile(q, &g.before.latency, &now.latency)
		u := &g.usual[i]
		over := math.Log(max(x.After, 1e-9)) > u.mean+unusual*math.Sqrt(u.variance)
		last = x
		if x.After < leastGrowth*x.Before || !over {
			continue // skip the test, which is most of the cost of this
		}
		x.P = comesOf(&x, &g.before.latency, &now.latency)
		if x.P < level/float64(len(quantiles())) && (!changed || x.P < chosen.P) {
			changed, chosen = true, x
		}
	}
	if !changed {
		return &colocation.TailGrowth{Quantile: last.Quantile, Before: last.Before, After: last.After, Since: now.start}
	}
	out := &colocation.TailGrowth{Changed: true, Quantile: chosen.Quantile, Before: chosen.Before, After: chosen.After, Since: now.start}
	if g.changed.requests > 0 {
		out.Since = g.changed.start
	}
	out.Parts = partsOf(&g.before, &now, chosen)
	return out
}

// compareQuantile compares one quantile, as [Blame] does, but from histograms. It does not set P:
// comesOf does.
func compareQuantile(q float64, before, now *quantile.Histogram) Growth {
	out := Growth{Quantile: q}
	out.Before, _ = before.Quantile(q)
	out.After, _ = now.Quantile(q)
	out.Slower = 1 - below(now, out.Before)
	return out
}

// comesOf returns the probability of such a growth if nothing has changed.
func comesOf(x *Growth, before, now *quantile.Histogram) float64 {
	n, m := min(mostTested, before.Count()), min(mostTested, now.Count())
	above := min(int(n)-1, int(math.Round((1-below(before, x.Before))*n)))
	return precedence(int(x.Slower*m), above, int(n), int(m))
}

func below(h *quantile.Histogram, v float64) float64 {
	f, _ := h.FractionBelow(v)
	return f
}

// partsOf divides the growth of the tail among Servpods. As in [Blame], each slow request has one
// vote, which is divided among the Servpods by their excess: their time on the critical path, less
// the earlier mean over all requests. Here all requests of one latency class vote together. The
// votes of slow requests before are subtracted, since unchanged traffic would have as many.
func partsOf(before, now *slot, chosen Growth) []colocation.GrowthPart {
	starved := starvedNow(before, now)
	was, is := chargeTo(before, starved), chargeTo(now, starved)
	normal := map[pod]float64{}
	for p, tail := range was {
		for _, t := range tail {
			normal[p] += (t[2] + t[3]) / before.requests
		}
	}
	votesBefore, votesNow := votes(before, was, normal, chosen.Before), votes(now, is, normal, chosen.Before)
	sum := 0.0
	var out []colocation.GrowthPart
	for _, p := range podsOf(votesNow) {
		share := votesNow[p] - votesBefore[p]
		if share <= 0 {
			continue
		}
		sum += share
		out = append(out, colocation.GrowthPart{Component: p.component, Host: p.host, Share: share,
			Before: meanOf(was[p]), After: meanOf(is[p])})
	}
	grown := chosen.Slower - (1 - below(&before.latency, chosen.Before))
	for i := range out {
		out[i].Share = min(1, out[i].Share/max(sum, grown))
	}
	out = slices.DeleteFunc(out, func(p colocation.GrowthPart) bool { return p.Share < leastShare })
	slices.SortStableFunc(out, func(a, b colocation.GrowthPart) int { return cmp.Compare(b.Share, a.Share) })
	return out[:min(len(out), colocation.MaxGrowthParts)]
}

// meanOf returns the mean time on the critical path of the requests through a Servpod, in seconds.
func meanOf(tail []trimtab.TailSum) float64 {
	n, sum := 0.0, 0.0
	for _, t := range tail {
		n, sum = n+t[1], sum+t[2]+t[3]
	}
	if n == 0 {
		return 0
	}
	return max(0, sum/n)
}

// votes returns the votes of the requests with a latency above over, per request.
func votes(s *slot, pods map[pod][]trimtab.TailSum, normal map[pod]float64, over float64) map[pod]float64 {
	out := map[pod]float64{}
	names := podsOf(pods)
	classes := map[float64]bool{}
	for _, tail := range pods {
		for _, t := range tail {
			classes[t[0]] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(classes)) {
		low, high := math.Exp2((k-1)/2), math.Exp2(k/2)
		in := below(&s.latency, high) - below(&s.latency, low)
		slow := below(&s.latency, high) - below(&s.latency, max(low, over))
		if high <= over || in <= 0 || slow <= 0 {
			continue
		}
		excess, all := map[pod]float64{}, 0.0
		for _, p := range names {
			x := -in * s.requests * normal[p]
			for _, t := range pods[p] {
				if t[0] == k {
					x += t[2] + t[3]
				}
			}
			if x > 0 {
				excess[p] = x
				all += x
			}
		}
		for p, x := range excess {
			out[p] += slow * x / all
		}
	}
	return out
}

// starvedNow returns the callers whose waiting has doubled for all their callees. It uses means
// where [Blame] uses medians.
func starvedNow(before, now *slot) map[string]bool {
	peers := map[string]bool{} // of their time it is unknown which part was waiting
	for i := range now.servpods {
		if now.servpods[i].Peer {
			peers[now.servpods[i].Component] = true
		}
	}
	byName := map[[2]string]*trimtab.CallSketch{}
	for i := range before.calls {
		c := &before.calls[i]
		byName[[2]string{c.Caller, c.Component}] = c
	}
	var all []waits
	for i := range now.calls {
		c := &now.calls[i]
		b := byName[[2]string{c.Caller, c.Component}]
		if b == nil || b.N < fewVisits || c.N < fewVisits || peers[c.Component] {
			continue
		}
		was, is := b.Wait/b.N, c.Wait/c.N
		all = append(all, waits{caller: c.Caller, callee: c.Component, visits: c.N,
			doubled: is >= twofold*was && is > 0, growth: is - was, callees: c.Own/c.N - b.Own/b.N})
	}
	return starvedCallers(all)
}

// chargeTo returns the times by Servpod. The waiting for callees of starved callers is charged to
// the callers.
func chargeTo(s *slot, starved map[string]bool) map[pod][]trimtab.TailSum {
	out := map[pod][]trimtab.TailSum{}
	byComponent := map[string][]pod{}
	for i := range s.servpods {
		p := &s.servpods[i]
		name := pod{p.Component, p.Host}
		out[name] = slices.Clone(p.Tail)
		byComponent[p.Component] = append(byComponent[p.Component], name)
	}
	for i := range s.calls {
		c := &s.calls[i]
		if !starved[c.Caller] {
			continue
		}
		for _, t := range c.Tail {
			moved := share(out, byComponent[c.Component], t[0], 3, -t[3])
			share(out, byComponent[c.Caller], t[0], 1, -moved)
		}
	}
	return out
}

// share adds an amount of waiting to the Servpods of a component, in proportion to one column of
// their latency class, and returns the amount added. It never makes a waiting time negative.
func share(out map[pod][]trimtab.TailSum, pods []pod, class float64, column int, amount float64) float64 {
	all := 0.0
	var of []*trimtab.TailSum
	for _, p := range pods {
		for i := range out[p] {
			if t := &out[p][i]; t[0] == class {
				of, all = append(of, t), all+t[column]
			}
		}
	}
	if all <= 0 {
		return 0
	}
	if column == 3 {
		amount = max(amount, -all)
	}
	for _, t := range of {
		t[3] += amount * (t[column] / all)
	}
	return amount
}
