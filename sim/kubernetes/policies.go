package kubernetes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/replicas"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// policy reads the reports of all services every 15 s and scales their pods.
type policy interface {
	act(w *world, seen []report)
}

// hpas has an HPA for each service.
type hpas struct {
	words  func(p *place) *HPAWords
	of     []autoscale.HPA
	before []report
}

// act passes each HPA the means of the last two reports, since the metrics API reports about the
// last 30 s.
func (h *hpas) act(w *world, seen []report) {
	if h.of == nil {
		h.of, h.before = make([]autoscale.HPA, len(seen)), seen
	}
	for i, p := range w.places {
		words, c := h.words(p), &h.of[i]
		c.Min, c.Max, c.Behavior = words.Min, words.Max, words.Behavior
		var metrics []autoscale.Metric
		for _, t := range words.Targets {
			metrics = append(metrics, t.metric(p, &seen[i], &h.before[i]))
		}
		p.advised(w.second)
		p.scale(c.Step(now(w.second), len(p.pods), metrics), p.request, w.scored())
	}
	h.before = seen
}

// metric returns what an HPA reads for a target.
func (t *Target) metric(p *place, r, before *report) autoscale.Metric {
	total := (r.used + before.used) / 2
	load := (r.rate + before.rate) / 2 // as rate(…[30s])
	pods := make([]autoscale.Pod, len(p.pods))
	for i := range pods {
		q, each := &p.pods[i], math.Min(total/float64(r.ready), p.request)
		if t.Load {
			each = load / float64(r.ready)
		}
		pods[i] = autoscale.Pod{Pending: !q.ready(), Ready: q.ready(), Age: seconds(q.before + q.lives), Held: seconds(q.before + q.lives - q.age), Usage: &each}
	}
	return t.Metric(p.request, pods, &load)
}

// Metric returns what an HPA reads for a target of these pods. load is nil if it cannot be read.
func (t *Target) Metric(request float64, pods []autoscale.Pod, load *float64) autoscale.Metric {
	m := autoscale.Metric{Type: t.Type, Target: t.Value, Request: request}
	m.See(pods, !t.Load)
	if t.Type == autoscale.External || t.Type == autoscale.Value {
		m.Sum = load
	}
	return m
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// kedas has a ScaledObject for each service.
type kedas struct {
	words  func(p *place) *KEDAWords
	of     []autoscale.KEDA
	before []report
}

func (k *kedas) act(w *world, seen []report) {
	if k.of == nil {
		k.of, k.before = make([]autoscale.KEDA, len(seen)), seen
	}
	for i, p := range w.places {
		words, c := k.words(p), &k.of[i]
		c.Min, c.Max, c.Behavior, c.Idle, c.PollingInterval = words.Min, words.Max, words.Behavior, words.Idle, words.PollingInterval
		if !slices.ContainsFunc(words.Targets, func(t Target) bool { return t.Load || t.Within != nil }) {
			c.Idle = nil // with cpu triggers only, KEDA always counts one as active
		}
		if words.Cooldown != nil {
			c.Cooldown = max(*words.Cooldown, 1) // a 0 would mean the default
		}
		var triggers []autoscale.Trigger
		for _, t := range words.Targets {
			triggers = append(triggers, t.trigger(p, &seen[i], &k.before[i], w.clock()))
		}
		p.advised(w.second)
		p.scale(c.Step(now(w.second), len(p.pods), triggers), p.request, w.scored())
	}
	k.before = seen
}

// trigger returns what KEDA reads for a target.
func (t *Target) trigger(p *place, r, before *report, at time.Time) autoscale.Trigger {
	if t.Within != nil {
		sum := 0.0
		if t.Within(at) {
			sum = t.Value
		}
		return autoscale.Trigger{Threshold: 1, Sum: &sum}
	}
	m := t.metric(p, r, before)
	out := autoscale.Trigger{Threshold: t.Value, Activation: t.Activation, Sum: m.Sum, Value: t.Type == autoscale.Value, Ready: m.Ready}
	if !t.Load {
		out.Resource = &m
	}
	return out
}

// vpas has a VPA for each service. Nothing changes the number of pods.
type vpas struct {
	words func(p *place) *VPAWords
	of    []*autoscale.VPA
}

// act does once a minute what the recommender and the updater do.
func (v *vpas) act(w *world, seen []report) {
	if v.of == nil {
		for range seen {
			v.of = append(v.of, autoscale.NewVPA())
		}
	}
	if w.second%60 != 0 {
		return
	}
	for i, p := range w.places {
		words, c := v.words(p), v.of[i]
		c.MinCPU, c.MaxCPU = words.Min, words.Max
		for k := range p.pods {
			if q := &p.pods[k]; q.ready() && seen[i].ready > 0 {
				c.CPU(now(w.second), math.Min(seen[i].used/float64(seen[i].ready), q.size))
			}
		}
		if cpu, _, ok := c.Recommend(); ok {
			p.advised(w.second)
			p.follow(words, &cpu)
		}
	}
}

// follow changes pods as the updater does, in place or by eviction. It begins with pods that must
// grow, and with those that differ most from the target. In one round it changes at most half of
// the pods; a single pod only if that is allowed. Pods that have not started are always evicted.
func (p *place) follow(words *VPAWords, cpu *autoscale.Recommendation) {
	if !words.InPlace && !words.Recreate || len(p.pods) < words.MinReplicas {
		return
	}
	type change struct {
		pod *pod
		to  float64
	}
	var all []change
	running := 0
	for k := range p.pods {
		q := &p.pods[k]
		if q.ready() {
			running++
		}
		if to := cpu.Update(q.asked, seconds(q.lives)); to != q.asked && (q.ready() || !words.InPlace) {
			all = append(all, change{q, to})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int {
		if up, other := a.to > a.pod.asked, b.to > b.pod.asked; up != other {
			if up {
				return -1
			}
			return 1
		}
		return cmp.Compare(math.Abs(b.to/b.pod.asked-1), math.Abs(a.to/a.pod.asked-1))
	})
	changed, n := 0, len(p.pods)
	for _, c := range all {
		if c.pod.ready() {
			if running-changed <= n-n/2 && (n > 1 || running < n) {
				continue
			}
			changed++
		}
		if words.InPlace {
			c.pod.asked = c.to
			continue
		}
		*c.pod = pod{size: c.to, asked: c.to, was: c.pod.was, left: p.takes(), pending: true}
	}
}

// percentiles has a rule of EKS or Datadog for each service. Nothing changes the number of pods.
type percentiles struct {
	rule func() *autoscale.Percentile
	of   []*autoscale.Percentile
}

// act observes each pod once a minute, and resizes all in place.
func (c *percentiles) act(w *world, seen []report) {
	if w.second%60 != 0 {
		return
	}
	for i, p := range w.places {
		if len(c.of) <= i {
			c.of = append(c.of, c.rule())
		}
		for k := range p.pods {
			if q := &p.pods[k]; q.ready() && seen[i].ready > 0 {
				c.of[i].Observe(now(w.second), math.Min(seen[i].used/float64(seen[i].ready), q.size))
			}
		}
		if _, ok := c.of[i].Recommend(); !ok {
			continue
		}
		p.advised(w.second)
		for k := range p.pods {
			p.pods[k].asked = c.of[i].Update(p.pods[k].asked)
		}
	}
}

// oracle knows the load and the formula, and scales without delay.
type oracle struct{}

func (oracle) act(w *world, _ []report) {
	for _, p := range w.places {
		n, worst := len(p.pods), 0.0
		for s := 0; s <= look; s += tick {
			if rate, ok := p.load(float64(w.second + s)); ok {
				worst = math.Max(worst, rate)
			}
		}
		p.advised(w.second)
		worst *= math.Exp(math.Max(p.drift, 0)*0.9 + p.spread)
		a := p.sizes.Min
		for p.perform(n, a, worst, p.backlog).Mean < p.Fraction && a < 64 {
			a += p.sizes.Step
		}
		for i := range p.pods {
			p.pods[i].asked = a
		}
	}
}

// level is the confidence level of the bounds of curves and loads.
const level = 0.9

// warm is the number of reports, an hour of them, before misses count.
const warm = 3600 / look

// serviceModels has trimtab's models of one service.
type serviceModels struct {
	learner      *gp.Process
	model        *queue.Model
	round, start *conformal.Forecaster
	curve        *trimtab.Curve
	looks        int
	cost         float64
	// Sums of the current minute.
	requests, inTime float64
	state            replicas.State
	// work is the part of the latest need that comes from the work of requests.
	work float64
}

func newServiceModels(s *Service) (*serviceModels, error) {
	k := &serviceModels{state: replicas.State{Startup: replicas.Startup{Declared: replicas.DefaultStartup}}}
	if s.Latency > 0 {
		k.model = queue.New(s.Latency)
	}
	var err error
	if k.learner, err = gp.New(level); err != nil {
		return nil, err
	}
	for to, horizon := range map[**conformal.Forecaster]int{&k.round: 2, &k.start: 5} {
		if *to, err = auto.New("auto", auto.Config{Horizon: horizon, Level: level, Step: look * time.Second}); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// observe learns from a report, and returns the need.
func (k *serviceModels) observe(p *place, r *report) (replicas.Need, bool) {
	for _, v := range r.started {
		k.state.Startup.Observe(time.Duration(v * float64(time.Second)))
	}
	if k.round.Observe(r.rate) != nil || k.start.Observe(r.rate) != nil {
		return replicas.Need{}, false
	}
	// If requests have waited since the first, any estimate is better than none.
	if r.requests > 0 && (r.backlog == 0 || k.cost == 0) {
		cost := r.used / r.rate
		if k.cost == 0 {
			k.cost = cost
		}
		k.cost += 0.05 * (cost - k.cost)
	}
	if k.cost > 0 && r.had > 0 {
		o := learn.Observation{Allocation: r.had, Load: r.rate, Performance: r.inTime}
		if p.shares {
			o.Requests = r.requests
		}
		_ = k.learner.Observe(o)
		if k.model != nil {
			_ = k.model.Observe(r.had, r.rate, k.cost, r.inTime, r.requests)
		}
	}
	k.requests, k.inTime = k.requests+r.requests, k.inTime+r.inTime*r.requests
	if k.looks%4 == 3 { // once a minute; in the first hour the curve is not good enough
		if k.looks > warm {
			k.state.Margin.Observe(k.inTime < p.Fraction*k.requests)
		}
		k.requests, k.inTime = 0, 0
	}
	soon, ok := k.round.Forecast(2, level)
	later, ok2 := k.start.Forecast(5, level)
	if !ok || !ok2 || k.cost == 0 {
		return replicas.Need{}, false
	}
	if k.looks++; k.curve == nil || k.looks%4 == 0 {
		least, most := p.sizes.Min, p.sizes.Max*float64(p.counts.Max)
		k.curve = learn.CurveOf(k.learner, soon.Upper, least, most, level)
		if k.model != nil {
			k.curve = k.model.Inform(k.curve, soon.Upper, k.cost, level, least, most)
		}
	}
	return k.needed(p, r, soon.Upper, later.Upper)
}

// needed returns the need at the upper bounds of the load of the next round and of the next 75 s.
func (k *serviceModels) needed(p *place, r *report, soon, later float64) (replicas.Need, bool) {
	part := math.Min(k.state.Startup.Upper().Seconds()/(5*look), 1)
	n, ok := replicas.NeedOf(k.curve, p.Fraction, soon, soon+part*math.Max(later-soon, 0))
	k.work = soon * k.cost
	k.state.Slack.Observe(n.Start, k.work, r.ready)
	n = k.state.Margin.Add(n)
	waits := r.backlog * k.cost / look // the cores that serve the backlog within a round
	n.Round, k.work = n.Round+waits, k.work+k.state.Margin.Amount()+waits
	return n, ok
}

// trimtabs plans all services.
type trimtabs struct{ of []*serviceModels }

func newTrimtabs(w *world) (*trimtabs, error) {
	t := &trimtabs{}
	for _, p := range w.places {
		k, err := newServiceModels(p.Service)
		if err != nil {
			return nil, fmt.Errorf("make learner of %s: %w", p.Name, err)
		}
		t.of = append(t.of, k)
	}
	return t, nil
}

func (t *trimtabs) act(w *world, seen []report) {
	list := make([]*replicas.Workload, len(seen))
	wanted, sum := make([]float64, len(seen)), 0.0
	for i, p := range w.places {
		need, ok := t.of[i].observe(p, &seen[i])
		list[i] = p.workload(need, ok)
		list[i].Work = t.of[i].work
		wanted[i] = math.Max(need.Round, need.Start)
		if ok {
			p.advised(w.second)
		} else {
			wanted[i] = seen[i].had
		}
		sum += wanted[i]
	}
	if math.IsInf(w.pool, 1) {
		t.set(w, list, math.Inf(1))
		return
	}
	if sum > w.pool {
		for i, k := range t.of { // margins take only capacity that the needs leave
			if by := k.state.Margin.Amount(); list[i].Missing == "" {
				n := &list[i].Need
				n.Round, n.Start, list[i].Work, wanted[i] = n.Round-by, n.Start-by, list[i].Work-by, wanted[i]-by
			}
		}
	}
	if r, err := fair.NJC(w.pool, wanted, nil); err == nil {
		for i, n := range list {
			if r.Allocation[i] < wanted[i]-1e-9 {
				n.Work = 0 // the given amount is fixed, whatever load it serves
			}
			n.Need.Round, n.Need.Start = math.Min(n.Need.Round, r.Allocation[i]), math.Min(n.Need.Start, r.Allocation[i])
		}
	}
	t.set(w, list, w.pool-w.used())
}

// workload converts a service for the planner.
func (p *place) workload(need replicas.Need, ok bool) *replicas.Workload {
	w := &replicas.Workload{Name: p.Name, Need: need, Replicas: len(p.pods),
		Size: p.sizes, Count: p.counts}
	if !ok {
		w.Missing = "nothing is known yet"
	}
	for i := range p.pods {
		q := &p.pods[i]
		in := replicas.Instance{InForce: q.size, Asked: q.asked, Ready: q.ready(), Age: time.Duration(q.age * float64(time.Second))}
		if q.pending {
			in.InForce, in.Asked = 0, 0
		}
		w.Instances = append(w.Instances, in)
	}
	return w
}

func (t *trimtabs) set(w *world, list []*replicas.Workload, free float64) {
	room := &replicas.Headroom{Pool: math.Max(free, 0)}
	at := now(w.second)
	for i, p := range w.places {
		state := &t.of[i].state
		d := list[i].Decide(at, state, room)
		for j := range p.pods {
			if q := &p.pods[j]; q.pending {
				q.asked, q.size, q.was = d.Size, d.Size, d.Size
			} else {
				q.asked = d.Sizes[j]
			}
		}
		state.Count.Changed(at, list[i].Count.Behavior, len(p.pods), d.Replicas)
		p.scale(d.Replicas, d.Size, w.scored())
	}
}
