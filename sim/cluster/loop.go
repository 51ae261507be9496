package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/planner"
)

// Config configures the loop.
type Config struct {
	Analyzer analyzer.Config
	Planner  planner.Config
	// Start is the time of the first round.
	Start time.Time
	// Held is the allocation of each workload at the start, in the pool's resource, divided equally
	// among its instances.
	Held map[string]float64
	// Instances has the host and the name of each instance of a workload; a workload without any
	// has one.
	Instances map[string][]trimtab.KnobID
	// Capacity is the capacity that each host reports; nil: hosts report none.
	Capacity map[string]float64
	// Shared says that amounts are shares by weight of a parent group's quota.
	Shared bool
}

// Loop is one closed loop. It is not safe for concurrent use.
type Loop struct {
	analyzer  *analyzer.Analyzer
	planner   *planner.Planner
	resource  string
	pool      string
	knobs     []trimtab.KnobState // in order of workload, host and instance
	hosts     []string            // in order
	capacity  map[string]float64
	epoch     uint64
	sequence  uint64
	lease     trimtab.Seconds
	estimates map[string]*trimtab.Estimate
	plan      *trimtab.Plan
	plans     []*trimtab.Plan
}

// host is the host of workloads that name none.
const host = "sim"

// New starts a loop. Errors are those of the steps.
func New(c Config) (*Loop, error) {
	a, err := analyzer.New(c.Analyzer)
	if err != nil {
		return nil, err
	}
	p, err := planner.New(c.Planner)
	if err != nil {
		return nil, err
	}
	l := &Loop{analyzer: a, planner: p, resource: c.Planner.Resource, pool: c.Planner.Pool, estimates: map[string]*trimtab.Estimate{}, capacity: c.Capacity}
	for _, w := range c.Planner.Workloads {
		most := w.Max
		if most == 0 {
			most = c.Planner.Capacity
		}
		instances := c.Instances[w.Name]
		if len(instances) == 0 {
			instances = []trimtab.KnobID{{Host: host}}
		}
		now := trimtab.Units(c.Held[w.Name] / float64(len(instances)))
		for _, in := range instances {
			l.knobs = append(l.knobs, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: l.pool, Host: in.Host, Workload: w.Name, Instance: in.Instance, Resource: l.resource},
				Knob: "simulated " + w.Name, Now: now, Since: c.Start, Baseline: now, Min: w.Min, Max: most, Shared: c.Shared})
			if a, ok := w.Admit[trimtab.Concurrency]; ok {
				l.knobs = append(l.knobs, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: l.pool, Host: in.Host, Workload: w.Name, Instance: in.Instance, Resource: trimtab.Concurrency},
					Knob: "simulated gate of " + w.Name, Now: trimtab.Unlimited(), Since: c.Start, Baseline: trimtab.Unlimited(), Min: 1, Max: a.Max})
			}
			l.hosts = append(l.hosts, in.Host)
		}
	}
	slices.SortFunc(l.knobs, func(a, b trimtab.KnobState) int { return a.Compare(b.KnobID) })
	slices.Sort(l.hosts)
	l.hosts = slices.Compact(l.hosts)
	p.Step(c.Start, &trimtab.Leader{Pool: l.pool, Epoch: 1})
	l.publish(c.Start)
	return l, nil
}

// Sample hands one report to the analyzer.
func (l *Loop) Sample(now time.Time, s *trimtab.Sample) { l.Observe(now, s) }

// Observe passes a sample or a sketch to the analyzer, and an alert to the planner.
func (l *Loop) Observe(now time.Time, v trimtab.Value) {
	if v.Kind() == trimtab.KindAlert {
		l.carry(now, l.planner.Step(now, v))
		return
	}
	l.analyzer.Step(now, v)
}

// Tick ends the analyzer's interval, and passes its estimates to the planner.
func (l *Loop) Tick(now time.Time) {
	for _, v := range l.analyzer.Step(now, nil) {
		if e, ok := v.(*trimtab.Estimate); ok {
			l.estimates[e.Workload] = e
			l.carry(now, l.planner.Step(now, e))
		}
	}
}

// Round makes the planner decide, and carries out its plans, all at the time now.
func (l *Loop) Round(now time.Time) {
	l.publish(now)
	l.carry(now, l.planner.Step(now, nil))
}

// Set changes the knobs of a workload as another program would, unknown to the planner: each
// instance gets an equal part.
func (l *Loop) Set(now time.Time, target string, amount float64) {
	knobs, changed := l.Knobs(target), false
	for i := range knobs {
		k := &knobs[i]
		if part := trimtab.Units(amount / float64(len(knobs))); k.Now != part {
			k.Now, k.Since, changed = part, now, true
		}
	}
	if changed {
		l.publish(now)
	}
}

// Held returns the sum of the allocations of all instances of the workload.
func (l *Loop) Held(target string) float64 {
	sum := 0.0
	for _, k := range l.Knobs(target) {
		sum += k.Now.Value
	}
	return sum
}

// Limit returns how many requests of a workload may be in service at most, in each of its instances;
// 0: no limit is set.
func (l *Loop) Limit(target string) int {
	for _, k := range l.all(target) {
		if k.Resource == trimtab.Concurrency && !k.Now.Unlimited {
			return int(k.Now.Value)
		}
	}
	return 0
}

// Knobs returns the knobs of the pool's resource of a workload, by host and instance.
func (l *Loop) Knobs(target string) []trimtab.KnobState {
	all := l.all(target)
	for len(all) > 0 && all[0].Resource != l.resource {
		all = all[1:]
	}
	n := 0
	for n < len(all) && all[n].Resource == l.resource {
		n++
	}
	return all[:n:n]
}

// all returns all knobs of a workload.
func (l *Loop) all(target string) []trimtab.KnobState {
	of := func(k trimtab.KnobState, t string) int { return strings.Compare(k.Workload, t) }
	i, _ := slices.BinarySearchFunc(l.knobs, target, of)
	n := 0
	for i+n < len(l.knobs) && l.knobs[i+n].Workload == target {
		n++
	}
	return l.knobs[i : i+n : i+n]
}

// Estimate returns the latest estimate of a workload; nil: none yet.
func (l *Loop) Estimate(target string) *trimtab.Estimate { return l.estimates[target] }

// Plan returns the first step of the latest plan; nil before any.
func (l *Loop) Plan() *trimtab.Plan { return l.plan }

// Plans returns the plans since the last call, each step by itself, in order.
func (l *Loop) Plans() []*trimtab.Plan {
	out := l.plans
	l.plans = nil
	return out
}

func (l *Loop) knob(id trimtab.KnobID) *trimtab.KnobState {
	i, ok := slices.BinarySearchFunc(l.knobs, id, func(k trimtab.KnobState, id trimtab.KnobID) int { return k.Compare(id) })
	if !ok {
		return nil
	}
	return &l.knobs[i]
}

// publish publishes the state of the knobs. A published value never changes, so each holding is a new
// one.
func (l *Loop) publish(now time.Time) {
	for _, host := range l.hosts {
		h := &trimtab.Holding{Pool: l.pool, Host: host, Time: now, Epoch: l.epoch, Sequence: l.sequence, LeaseLeft: l.lease}
		if c, ok := l.capacity[host]; ok {
			h.Capacity = map[string]float64{l.resource: c}
		}
		for _, k := range l.knobs {
			if k.Host == host {
				h.Targets = append(h.Targets, k)
			}
		}
		l.analyzer.Step(now, h)
		l.carry(now, l.planner.Step(now, h))
	}
}

// carry carries out plans, and the plans that follow from their outcomes.
func (l *Loop) carry(now time.Time, values []trimtab.Value) {
	for _, v := range values {
		plan, ok := v.(*trimtab.Plan)
		if !ok {
			continue
		}
		if l.plans = append(l.plans, plan); plan.Step == 1 {
			l.plan = plan
		}
		var more []trimtab.Value
		for _, host := range l.hosts {
			more = append(more, l.planner.Step(now, l.act(now, host, plan))...)
		}
		l.publish(now)
		l.carry(now, more)
	}
}

// act sets the knobs of one host to the values in a plan.
func (l *Loop) act(now time.Time, host string, plan *trimtab.Plan) *trimtab.Outcome {
	l.epoch, l.sequence, l.lease = plan.Epoch, plan.Sequence, plan.Lease
	out := &trimtab.Outcome{Pool: l.pool, Host: host, Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step, Time: now}
	for i := range plan.Actions {
		a := &plan.Actions[i]
		k := l.knob(a.KnobID)
		if k == nil || a.Host != host {
			continue
		}
		r := trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: k.Now, Asked: a.Set, Known: true}
		switch {
		case a.Mode != trimtab.Act:
			r.Status = trimtab.Recommended
		case !k.Now.Equal(a.Expect, 1e-9):
			r.Status, r.Reason = trimtab.Refused, "the knob was changed meanwhile"
		default:
			k.Now, k.Capped, k.Since = a.Set, a.Capped, now
		}
		r.Found = k.Now
		out.Results = append(out.Results, r)
	}
	return out
}
