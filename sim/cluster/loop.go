package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/planner"
)

// Config says what the loop is made of.
type Config struct {
	Analyzer analyzer.Config
	Planner  planner.Config
	// Start is the time of the first round.
	Start time.Time
	// Held is what each workload of the planner has at the start, in the
	// pool's resource.
	Held map[string]float64
}

// Loop is one closed loop. It is not safe for concurrent use.
type Loop struct {
	analyzer  *analyzer.Analyzer
	planner   *planner.Planner
	resource  string
	pool      string
	knobs     []trimtab.KnobState // in order of target
	epoch     uint64
	sequence  uint64
	lease     trimtab.Seconds
	estimates map[string]*trimtab.Estimate
	plan      *trimtab.Plan
	plans     []*trimtab.Plan
}

// host names the one host that there is.
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
	l := &Loop{analyzer: a, planner: p, resource: c.Planner.Resource, pool: c.Planner.Pool, estimates: map[string]*trimtab.Estimate{}}
	for _, w := range c.Planner.Workloads {
		most := w.Max
		if most == 0 {
			most = c.Planner.Capacity
		}
		now := trimtab.Units(c.Held[w.Name])
		l.knobs = append(l.knobs, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: l.pool, Host: host, Workload: w.Name, Resource: l.resource}, Knob: "simulated " + w.Name,
			Now: now, Since: c.Start, Baseline: now, Min: w.Min, Max: most})
	}
	slices.SortFunc(l.knobs, func(a, b trimtab.KnobState) int { return strings.Compare(a.Workload, b.Workload) })
	p.Step(c.Start, &trimtab.Leader{Pool: l.pool, Epoch: 1})
	l.tell(c.Start)
	return l, nil
}

// Sample hands one report to the analyzer.
func (l *Loop) Sample(now time.Time, s *trimtab.Sample) { l.Take(now, s) }

// Take hands a sample or a sketch to the analyzer, and an alert to the planner.
func (l *Loop) Take(now time.Time, v trimtab.Value) {
	if v.Kind() == trimtab.KindAlert {
		l.carry(now, l.planner.Step(now, v))
		return
	}
	l.analyzer.Step(now, v)
}

// Tick lets the analyzer close its intervals; what it estimates goes to the
// planner.
func (l *Loop) Tick(now time.Time) {
	for _, v := range l.analyzer.Step(now, nil) {
		if e, ok := v.(*trimtab.Estimate); ok {
			l.estimates[e.Workload] = e
			l.carry(now, l.planner.Step(now, e))
		}
	}
}

// Round makes the planner decide and carries out what it does, all of it at
// now.
func (l *Loop) Round(now time.Time) {
	l.tell(now)
	l.carry(now, l.planner.Step(now, nil))
}

// Set changes a knob behind the planner's back, as its owner may.
func (l *Loop) Set(now time.Time, target string, amount float64) {
	if k := l.knob(target); k != nil && k.Now != trimtab.Units(amount) {
		k.Now, k.Since = trimtab.Units(amount), now
		l.tell(now)
	}
}

// Held returns what the workload has.
func (l *Loop) Held(target string) float64 {
	if k := l.knob(target); k != nil {
		return k.Now.Value
	}
	return 0
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

func (l *Loop) knob(target string) *trimtab.KnobState {
	i, ok := slices.BinarySearchFunc(l.knobs, target, func(k trimtab.KnobState, t string) int { return strings.Compare(k.Workload, t) })
	if !ok {
		return nil
	}
	return &l.knobs[i]
}

// tell publishes what the knobs hold. Values that were handed over never
// change, so each holding has its own.
func (l *Loop) tell(now time.Time) {
	h := &trimtab.Holding{Pool: l.pool, Host: host, Time: now, Epoch: l.epoch, Sequence: l.sequence, LeaseLeft: l.lease, Targets: slices.Clone(l.knobs)}
	l.analyzer.Step(now, h)
	l.carry(now, l.planner.Step(now, h))
}

// carry carries out plans, and those that their outcomes bring forth.
func (l *Loop) carry(now time.Time, values []trimtab.Value) {
	for _, v := range values {
		plan, ok := v.(*trimtab.Plan)
		if !ok {
			continue
		}
		if l.plans = append(l.plans, plan); plan.Step == 1 {
			l.plan = plan
		}
		more := l.planner.Step(now, l.act(now, plan))
		l.tell(now)
		l.carry(now, more)
	}
}

// act sets the knobs that a plan names.
func (l *Loop) act(now time.Time, plan *trimtab.Plan) *trimtab.Outcome {
	l.epoch, l.sequence, l.lease = plan.Epoch, plan.Sequence, plan.Lease
	out := &trimtab.Outcome{Pool: l.pool, Host: host, Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step, Time: now}
	for i := range plan.Actions {
		a := &plan.Actions[i]
		k := l.knob(a.Workload)
		if k == nil || a.Resource != l.resource {
			continue
		}
		r := trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: k.Now, Asked: a.Set, Known: true}
		switch {
		case a.Mode != trimtab.Act:
			r.Status = trimtab.Recommended
		case !k.Now.Equal(a.Expect, 1e-9):
			r.Status, r.Reason = trimtab.Refused, "the knob was changed meanwhile"
		default:
			k.Now, k.Since = a.Set, now
		}
		r.Found = k.Now
		out.Results = append(out.Results, r)
	}
	return out
}
