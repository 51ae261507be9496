package planner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/latency"
	"github.com/trimtab/trimtab/planner/policy"
)

// Question is a what-if question: two configurations of one pool over the same
// estimates and holdings.
type Question struct {
	Now time.Time
	// Before is the configuration in force, After the one with the change. They name
	// the same pool, resource and workloads.
	Before, After Config
	// Estimates and Holdings are the newest. They are not changed.
	Estimates []*trimtab.Estimate
	Holdings  []*trimtab.Holding
	// Latency has, by workload, the latencies within which requests are to be
	// answered before and after the change, where the change is one of latency.
	Latency map[string]Threshold
}

// Threshold is a change of the latency that an SLO asks for.
type Threshold struct{ Before, After time.Duration }

// WhatIf answers with the target of the objective under both configurations. It is
// a round of the planner without its end: the same seats, curves, needs and policy,
// and neither bounded step, guard nor plan. A planner that starts now would want the
// same; one that runs also knows what it saw before and which alerts fire.
//
// The error is trimtab.ErrInvalid for a configuration that [New] refuses,
// trimtab.ErrUnsupported for a pool of several resources, and trimtab.ErrInfeasible
// where the capacity does not hold the minimums.
func WhatIf(q Question) (*trimtab.WhatIf, error) {
	if len(q.Before.Others) > 0 || len(q.After.Others) > 0 {
		return nil, fmt.Errorf("answer what-if: the pool shares several resources: %w", trimtab.ErrUnsupported)
	}
	after, assumes, err := q.changed()
	if err != nil {
		return nil, err
	}
	was, err := q.target(q.Before, q.Estimates, q.Holdings)
	if err != nil {
		return nil, err
	}
	cfg, holdings := q.grown(&assumes)
	is, err := q.target(cfg, after, holdings)
	if err != nil {
		return nil, err
	}
	out := &trimtab.WhatIf{Time: q.Now, Pool: q.Before.Pool, Objective: q.Before.Policy.Name(), Resource: q.Before.Resource,
		CapacityBefore: was.planner.capacity(0), CapacityAfter: is.planner.capacity(0),
		ValueBefore: was.value, ValueAfter: is.value, Cut: was.cut || is.cut, Assumes: assumes, Workloads: []trimtab.WhatIfWorkload{}}
	for i, s := range was.seats {
		w := compare(s, is.seats[i])
		switch w.Effect {
		case trimtab.Gains:
			out.Gain++
		case trimtab.Pays:
			out.Pay++
		case trimtab.Holds:
			out.Hold++
		}
		out.Workloads = append(out.Workloads, w)
	}
	for name, why := range was.heldBack {
		if !slices.ContainsFunc(was.seats, func(s *seat) bool { return s.Name == name }) {
			if out.Absent == nil {
				out.Absent = map[string]string{}
			}
			out.Absent[name] = why.Text
		}
	}
	return out, nil
}

// target runs a round up to the policy's target.
func (q *Question) target(cfg Config, estimates []*trimtab.Estimate, holdings []*trimtab.Holding) (*decision, error) {
	cfg.Step = policy.MaxUnits // where the pool ends up, not how far it gets in one round
	p, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("answer what-if: %w", err)
	}
	for _, h := range holdings {
		if h.Of(cfg.Pool) {
			p.ledger.Hold(q.Now, p.own(h))
		}
	}
	for _, e := range estimates {
		p.learn(q.Now, e)
	}
	r := &decision{planner: p, now: q.Now, heldBack: map[string]trimtab.Held{}}
	r.believe()
	r.aim()
	for _, s := range r.seats {
		if s.held.Code == trimtab.HeldUnsolved {
			return nil, fmt.Errorf("answer what-if: %s (a unit is %v of %s): %w", s.held.Text, cfg.Unit, cfg.Resource, trimtab.ErrInfeasible)
		}
	}
	return r, nil
}

// compare puts what a workload would have before and after side by side.
func compare(was, is *seat) trimtab.WhatIfWorkload {
	w := trimtab.WhatIfWorkload{Workload: was.Name, Now: was.now, Before: outlookOf(was), After: outlookOf(is), Effect: trimtab.Stays}
	switch moved := w.Moved(); {
	case !was.free || !is.free:
		w.Effect, w.Held = trimtab.Holds, was.held.Text
		if was.free {
			w.Held = is.held.Text
		}
	case moved > was.of.Unit/2:
		w.Effect = trimtab.Gains
	case moved < -was.of.Unit/2:
		w.Effect = trimtab.Pays
	}
	return w
}

// outlookOf is what the seat would have at its target.
func outlookOf(s *seat) trimtab.Outlook {
	o := trimtab.Outlook{Allocation: s.now, SLO: s.SLO, Weight: s.Weight, Binding: s.binding}
	if s.free {
		o.Allocation = float64(s.aim) * s.of.Unit
	}
	if s.curve != nil && len(s.curve.Knots) > 0 {
		b := measuredOf(s, s.curve.Eval(o.Allocation), o.Allocation)
		o.Performance = &b
		o.Utility = &trimtab.Band{Lower: clampUnit(s.Utility(b.Lower)), Mean: clampUnit(s.Utility(b.Mean)), Upper: clampUnit(s.Utility(b.Upper))}
	}
	o.Meets = trimtab.ProspectOf(o.Performance, s.SLO)
	return o
}

// measuredOf is a band of what is expected at an allocation, or, at what the workload has, of what
// was measured, where that lies outside.
func measuredOf(s *seat, b trimtab.Band, allocation float64) trimtab.Band {
	p := s.estimate.Performance
	if p == nil || s.estimate.Hold != nil || math.Abs(allocation-s.now) > s.of.Unit/2 || *p >= b.Lower && *p <= b.Upper {
		return b
	}
	return trimtab.Band{Lower: math.Min(b.Lower, *p), Mean: *p, Upper: math.Max(b.Upper, *p)}
}

// grown returns the configuration after the change and the holdings that go with it.
// Where the pool would have more than it has, each host has as much more in
// proportion, and a maximum that is the whole pool stays the whole pool.
func (q *Question) grown(assumes *[]string) (Config, []*trimtab.Holding) {
	cfg, before := q.After, q.Before.Capacity
	factor := cfg.Capacity / before
	if !(factor > 1) {
		return cfg, q.Holdings
	}
	cfg.Workloads = slices.Clone(cfg.Workloads)
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Max == before {
			w.Max = cfg.Capacity
		}
	}
	out := make([]*trimtab.Holding, len(q.Holdings))
	for i, h := range q.Holdings {
		more := *h
		more.Capacity, more.Targets = maps.Clone(h.Capacity), slices.Clone(h.Targets)
		if c, ok := more.Capacity[cfg.Resource]; ok {
			more.Capacity[cfg.Resource] = c * factor
		}
		for j := range more.Targets {
			if k := &more.Targets[j]; k.Resource == cfg.Resource && k.Max == before {
				k.Max = cfg.Capacity
			}
		}
		out[i] = &more
	}
	if len(out) > 1 {
		*assumes = append(*assumes, fmt.Sprintf("every host grows alike, by a factor of %.3g", factor))
	}
	return cfg, out
}

// changed returns the estimates as they would be with other latencies.
func (q *Question) changed() ([]*trimtab.Estimate, []string, error) {
	assumes := []string{}
	if len(q.Latency) == 0 {
		return q.Estimates, assumes, nil
	}
	out := slices.Clone(q.Estimates)
	for i, e := range out {
		t, ok := q.Latency[e.Workload]
		if !ok || t.Before == t.After || e.Curve == nil {
			continue
		}
		moved, err := latency.Under(e, t.Before, t.After)
		if err != nil {
			return nil, nil, fmt.Errorf("answer what-if: %w", err)
		}
		out[i] = moved
		assumes = append(assumes, fmt.Sprintf("the latencies of %s keep the shape of the newest interval: the curve was learnt for %v", e.Workload, t.Before))
	}
	return out, assumes, nil
}
