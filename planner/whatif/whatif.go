// Package whatif answers what-if questions: the targets of a pool's objective over the same
// estimates and holdings under two configurations, or for another latency, side by side
// ([planner.TargetOf]). It changes nothing and reads no clock.
package whatif

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/latency"
	"github.com/trimtab/trimtab/whatif"
)

// Question is a what-if question: two configurations of one pool over the same
// estimates and holdings.
type Question struct {
	Now time.Time
	// Before is the configuration in force, After the one with the change. They name
	// the same pool, resource and workloads.
	Before, After planner.Config
	// Estimates and Holdings are the newest. They are not changed.
	Estimates []*trimtab.Estimate
	Holdings  []*trimtab.Holding
	// Latency has, by workload, the latency SLOs before and after the change, if the change
	// concerns latency.
	Latency map[string]Threshold
}

// Threshold is a change of the latency that an SLO asks for.
type Threshold struct{ Before, After time.Duration }

// Answer answers with the target of the objective under both configurations. It runs a round of
// the planner up to the target: with the same allocations, curves, needs and policy, but without
// bounded step, guard and plan. A planner that starts now would want the same; one that runs also
// knows earlier observations and firing alerts.
//
// The error is trimtab.ErrInvalid for a configuration that [planner.New] refuses,
// trimtab.ErrUnsupported for a pool of several resources, and trimtab.ErrInfeasible if the
// minimums exceed the capacity.
func Answer(q Question) (*whatif.Answer, error) {
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
	out := &whatif.Answer{Time: q.Now, Pool: q.Before.Pool, Objective: q.Before.Policy.Name(), Resource: q.Before.Resource,
		CapacityBefore: was.Capacity, CapacityAfter: is.Capacity,
		ValueBefore: was.Value, ValueAfter: is.Value, Cut: was.Cut || is.Cut, Assumes: assumes, Workloads: []whatif.Workload{}}
	for i := range was.Workloads {
		w := compare(&was.Workloads[i], &is.Workloads[i])
		switch w.Effect {
		case whatif.Gains:
			out.Gain++
		case whatif.Pays:
			out.Pay++
		case whatif.Holds:
			out.Hold++
		}
		out.Workloads = append(out.Workloads, w)
	}
	for name, why := range was.Held {
		if !slices.ContainsFunc(was.Workloads, func(w planner.Wanted) bool { return w.Name == name }) {
			if out.Absent == nil {
				out.Absent = map[string]string{}
			}
			out.Absent[name] = why.Text
		}
	}
	return out, nil
}

// target returns what the objective wants.
func (q *Question) target(cfg planner.Config, estimates []*trimtab.Estimate, holdings []*trimtab.Holding) (*planner.Target, error) {
	t, err := planner.TargetOf(cfg, q.Now, estimates, holdings)
	if err != nil {
		return nil, fmt.Errorf("answer what-if: %w", err)
	}
	return t, nil
}

// compare puts what a workload would have before and after side by side.
func compare(was, is *planner.Wanted) whatif.Workload {
	w := whatif.Workload{Workload: was.Name, Now: was.Now, Before: outlookOf(was), After: outlookOf(is), Effect: whatif.Stays}
	switch moved := w.Moved(); {
	case !was.Free || !is.Free:
		w.Effect, w.Held = whatif.Holds, was.Held.Text
		if was.Free {
			w.Held = is.Held.Text
		}
	case moved > was.Unit/2:
		w.Effect = whatif.Gains
	case moved < -was.Unit/2:
		w.Effect = whatif.Pays
	}
	return w
}

// outlookOf returns what a workload would have at its target.
func outlookOf(w *planner.Wanted) whatif.Outlook {
	o := whatif.Outlook{Allocation: w.Aim, SLO: w.SLO, Weight: w.Weight, Binding: w.Binding}
	if c := w.Curve; c != nil && len(c.Knots) > 0 {
		b := measuredOf(w, c.Eval(o.Allocation))
		utility := func(v float64) float64 { return math.Min(math.Max(0, w.Utility(v)), 1) }
		o.Performance = &b
		o.Utility = &trimtab.Band{Lower: utility(b.Lower), Mean: utility(b.Mean), Upper: utility(b.Upper)}
	}
	o.Meets = whatif.ProspectOf(o.Performance, w.SLO)
	return o
}

// measuredOf returns the band expected at the target. If the target is the present allocation and
// the measurement lies outside, the band is extended to it.
func measuredOf(w *planner.Wanted, b trimtab.Band) trimtab.Band {
	p := w.Estimate.Performance
	if p == nil || w.Estimate.Hold != nil || math.Abs(w.Aim-w.Now) > w.Unit/2 || *p >= b.Lower && *p <= b.Upper {
		return b
	}
	return trimtab.Band{Lower: math.Min(b.Lower, *p), Mean: *p, Upper: math.Max(b.Upper, *p)}
}

// grown returns the configuration after the change and the holdings that fit it. If the pool gets
// larger, each host grows in proportion, and a maximum that is the whole pool stays the whole
// pool.
func (q *Question) grown(assumes *[]string) (planner.Config, []*trimtab.Holding) {
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
