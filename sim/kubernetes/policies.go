package kubernetes

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/planner/baseline/autoscale"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/replicas"
)

// policy looks at all services every 15 s and turns their pods.
type policy interface {
	act(w *world, seen []report)
}

// hpas has an HPA on CPU utilisation for each service; utilisation in percent.
type hpas struct {
	target float64
	of     []autoscale.HPA
	before []report
}

func (h *hpas) act(w *world, seen []report) {
	if h.of == nil {
		h.of, h.before = make([]autoscale.HPA, len(seen)), seen
	}
	for i, p := range w.places {
		c := &h.of[i]
		c.Min, c.Max = 1, maxPods
		// The metrics API has the mean of about 30 s.
		r, b := &seen[i], &h.before[i]
		used := (r.used + b.used) / 2
		m := autoscale.Metric{Type: autoscale.Utilization, Target: h.target, Request: podCores, Unready: len(p.pods) - r.ready}
		for range r.ready {
			m.Usage = append(m.Usage, math.Min(used/float64(r.ready), podCores))
		}
		p.scale(c.Step(now(w.second), len(p.pods), []autoscale.Metric{m}), podCores)
	}
	h.before = seen
}

// kedas has a ScaledObject on the request rate for each service; the threshold is the
// rate that a pod can serve, times target percent.
type kedas struct {
	target float64
	of     []autoscale.KEDA
	before []report
}

func (k *kedas) act(w *world, seen []report) {
	if k.of == nil {
		k.of, k.before = make([]autoscale.KEDA, len(seen)), seen
	}
	for i, p := range w.places {
		c := &k.of[i]
		c.Min, c.Max = 1, maxPods
		rate := (seen[i].rate + k.before[i].rate) / 2 // rate(…[30s])
		n := c.Step(now(w.second), len(p.pods), []autoscale.Trigger{{Threshold: k.target / 100 * podCores / p.Cost, Sum: &rate}})
		p.scale(n, podCores)
	}
	k.before = seen
}

// oracle knows everything and sizes without delay.
type oracle struct{}

func (oracle) act(w *world, _ []report) {
	for _, p := range w.places {
		n, worst := len(p.pods), 0.0
		for s := 0; s <= look; s += tick {
			worst = math.Max(worst, p.Cores/p.Cost*p.at(float64(w.second+s)))
		}
		worst *= math.Exp(math.Max(p.drift, 0)*0.9 + 0.04)
		a := leastCores
		for p.late(n, a, worst, p.backlog) > 1-p.Fraction && a < 64 {
			a += 0.01
		}
		for i := range p.pods {
			p.pods[i].asked = a
		}
	}
}

// level is that of bounds of curves and loads.
const level = 0.9

// warm is how many looks pass before misses count: an hour.
const warm = 3600 / look

// keeper is trimtab, for one service.
type keeper struct {
	learner      *gp.Process
	model        *queue.Model
	round, start *conformal.Forecaster
	curve        *trimtab.Curve
	looks        int
	cost         float64
	// Of the minute that runs.
	requests, inTime float64
	state            replicas.State
}

func newKeeper(s *Service) (*keeper, error) {
	k := &keeper{model: queue.New(s.Latency), state: replicas.State{Startup: replicas.Startup{Declared: replicas.DefaultStartup}}}
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

// observe takes in a report, and returns the need.
func (k *keeper) observe(s *Service, r *report) (replicas.Need, bool) {
	for _, v := range r.started {
		k.state.Startup.Observe(time.Duration(v * float64(time.Second)))
	}
	if k.round.Observe(r.rate) != nil || k.start.Observe(r.rate) != nil {
		return replicas.Need{}, false
	}
	if r.requests > 0 && r.backlog == 0 {
		cost := r.used / r.rate
		if k.cost == 0 {
			k.cost = cost
		}
		k.cost += 0.05 * (cost - k.cost)
	}
	if k.cost > 0 && r.had > 0 {
		_ = k.learner.Observe(learn.Observation{Allocation: r.had, Load: r.rate, Performance: r.inTime, Requests: r.requests})
		_ = k.model.Observe(r.had, r.rate, k.cost, r.inTime, r.requests)
	}
	k.requests, k.inTime = k.requests+r.requests, k.inTime+r.inTime*r.requests
	if k.looks%4 == 3 { // a minute; in the first hour the curve is what is missing
		if k.looks > warm {
			k.state.Margin.Observe(k.inTime < s.Fraction*k.requests)
		}
		k.requests, k.inTime = 0, 0
	}
	soon, ok := k.round.Forecast(2, level)
	later, ok2 := k.start.Forecast(5, level)
	if !ok || !ok2 || k.cost == 0 {
		return replicas.Need{}, false
	}
	if k.looks++; k.curve == nil || k.looks%4 == 0 {
		most := maxCores * maxPods
		k.curve = k.model.Inform(learn.CurveOf(k.learner, soon.Upper, leastCores, most, level), soon.Upper, k.cost, level, leastCores, most)
	}
	n, ok := replicas.NeedOf(k.curve, s.Fraction, soon.Upper, later.Upper)
	n = k.state.Margin.Add(n)
	n.Round += r.backlog * k.cost / look // what waits is worked off in a round
	return n, ok
}

// trimtabs plans for all services.
type trimtabs struct{ of []*keeper }

func (t *trimtabs) act(w *world, seen []report) {
	list := make([]*replicas.Workload, len(seen))
	wanted := make([]float64, len(seen))
	for i, p := range w.places {
		need, ok := t.of[i].observe(p.Service, &seen[i])
		list[i] = p.workload(need, ok)
		wanted[i] = math.Max(need.Round, need.Start)
		if !ok {
			wanted[i] = seen[i].had
		}
	}
	if math.IsInf(w.pool, 1) {
		t.set(w, list, math.Inf(1))
		return
	}
	if r, err := fair.NJC(w.pool, wanted, nil); err == nil {
		for i, n := range list {
			n.Need.Round, n.Need.Start = math.Min(n.Need.Round, r.Allocation[i]), math.Min(n.Need.Start, r.Allocation[i])
		}
	}
	t.set(w, list, w.pool-w.used())
}

// workload is what the planner sees of a place.
func (p *place) workload(need replicas.Need, ok bool) *replicas.Workload {
	w := &replicas.Workload{Name: p.Name, Need: need, Replicas: len(p.pods),
		Size:  replicas.Size{Min: leastCores, Max: maxCores, Step: 0.01},
		Count: replicas.Count{Min: 1, Max: maxPods}}
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
	room := &replicas.Room{Pool: math.Max(free, 0)}
	at := now(w.second)
	for i, p := range w.places {
		state := &t.of[i].state
		d := list[i].Decide(at, state, room)
		for j := range p.pods {
			if q := &p.pods[j]; q.pending {
				q.asked, q.size = d.Size, d.Size
			} else {
				q.asked = d.Sizes[j]
			}
		}
		state.Count.Changed(at, list[i].Count.Behavior, len(p.pods), d.Replicas)
		p.scale(d.Replicas, d.Size)
	}
}
