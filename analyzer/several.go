package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
)

// Axis is a further resource of the pool that the workload has a knob for, besides
// Workload.Resource.
type Axis struct {
	// Resource is its name: "memory", "llc".
	Resource string
	// Min and Max bound the allocation, in its unit, 0 <= Min < Max.
	Min, Max float64
	// Stock: the need of it is a stock that does not grow in proportion to the load, such as memory
	// or a part of a cache. Its curve does not depend on the load.
	Stock bool
}

// axis is one further resource of one workload.
type axis struct {
	Axis
	learner learn.Learner
	held    report.History
	// allocation is the amount in force in the latest report; nil: unknown.
	allocation *float64
}

const (
	// A resource is idle if at most idleUsage of the allocation is used, as measured, or idleFloor
	// of it, by a floor that includes a margin.
	idleUsage, idleFloor = 0.7, 0.85
	// idleThrottled is the fraction of periods that may be throttled even so.
	idleThrottled = 0.02
)

// idle reports whether the measured use of a shows that more of it would not be used. Without a
// measurement it is not idle.
func (a *axis) idle(loads report.Loads) bool {
	used := a.held.Floor(loads)
	return a.allocation != nil && used > 0 && used <= idleFloor**a.allocation
}

// most returns the largest allocation of the resource that the workload can have.
func (a *axis) most(loads report.Loads) float64 { return max(a.Max, a.held.Most(loads)) }

// scaled maps an allocation to (0, 1]: learners expect numbers of the size of cores, and bytes are
// far from that.
func (a *axis) scaled(allocation float64) float64 { return allocation / a.Max }

// load returns the load that the curve depends on; a constant for a stock.
func (a *axis) load(load float64) float64 {
	if a.Stock {
		return 1
	}
	return load
}

// report sets the amounts in force of each further resource. If any of them changed, the report is
// ignored for all, since the effects cannot be told apart.
func (k *curves) report(r *report.Report, end time.Time, loads report.Loads) {
	for _, a := range k.axes {
		a.allocation = nil
		f := a.held.During(end.Add(-k.config.Report), end, k.config.Settle, loads)
		switch {
		case !f.Known:
		case f.Amount.Unlimited:
			v := a.most(loads)
			a.allocation = &v
		default:
			v := f.Amount.Value
			a.allocation = &v
		}
		if f.Known && f.Transient && r.Aside == "" {
			if k.disturbed++; k.disturbed <= patience {
				r.Aside = "transient"
			}
			return
		}
	}
	k.disturbed = 0
}

// view is one resource in a report, with its learner, to tell which resource a missed SLO is due to.
type view struct {
	learner learn.Learner
	// at is its allocation in the report, most its maximum, load the load, all as the learner
	// scales them.
	at, most, load float64
	// idle: much of it was unused, by measurement.
	idle bool
}

// views returns the resources in order of the axes after the first. One whose allocation is unknown
// has at 0.
func (k *curves) views(r *report.Report, held *allocation, spare bool) []view {
	out := []view{{k.learner, *r.Allocation, held.most(), *r.Load, spare}}
	for _, a := range k.axes {
		v := view{learner: a.learner}
		if a.allocation != nil && *a.allocation > 0 {
			v = view{a.learner, a.scaled(*a.allocation), a.scaled(a.most(held.loads)), a.load(*r.Load), a.idle(held.loads)}
		}
		out = append(out, v)
	}
	return out
}

// excused reports whether another resource explains why the performance p is worse than what
// resource i is known to suffice for:
//
//	p < L_i(a_i)  and, for some q:
//	L_q(a_q) <= p  or  U_q(a_q) < L_i(a_i),   and   U_q(max_q) >= L_i(a_i)
//
// where [L, U] are the bounds before the report: q may be short, or is known to be, and more of it
// may help. Once more of q is known not to help, U_q(max_q) has fallen, and the report counts
// against i again. A report that is low by chance, while nothing is short, counts for all
// resources, since L_q(a_q) > p.
func excused(views []view, i int, p float64) bool {
	v := views[i]
	own := v.learner.Predict(v.at, v.load).Lower
	if p >= own {
		return false
	}
	for q, o := range views {
		if q == i || o.at <= 0 {
			continue
		}
		here := o.learner.Predict(o.at, o.load)
		if (here.Lower <= p || here.Upper < own) && o.learner.Predict(o.most, o.load).Upper >= own {
			return true
		}
	}
	return false
}

// says returns the performance that resource i is to learn from a report of performance p: p
// itself, or enough if the target is missed because of another resource and i is measured to be
// idle. ok is false if i is to learn nothing.
func says(views []view, i int, p, target, enough float64) (performance float64, ok bool) {
	busy := slices.ContainsFunc(views, func(v view) bool { return v.at > 0 && !v.idle })
	switch {
	case views[i].at <= 0:
		return 0, false
	case views[i].idle && busy && p < target:
		return enough, true
	}
	return p, !excused(views, i, p)
}

// teachFurther gives r to the learners of further resources, as far as they are to learn from it,
// and returns what the first resource is to learn.
func (k *curves) teachFurther(r *report.Report, held *allocation, spare bool, c *counts) (performance float64, ok bool) {
	if len(k.axes) == 0 {
		return *r.Performance, true
	}
	views := k.views(r, held, spare)
	target, enough := k.spec.Target, k.spec.enough(r)
	performance, ok = says(views, 0, *r.Performance, target, enough)
	told := make([]learn.Observation, len(views))
	for i, v := range views {
		if p, ok := says(views, i, *r.Performance, target, enough); ok {
			told[i] = learn.Observation{Time: r.At, Allocation: v.at, Load: v.load, Performance: p, Requests: r.Fresh, Sigma: r.Sigma}
		} else if v.at > 0 && i > 0 {
			c.excused++
		}
	}
	// All resources are judged by their bounds before the report.
	for i, o := range told[1:] {
		if o.Allocation > 0 && views[i+1].learner.Observe(o) != nil {
			c.refused++
		}
	}
	return performance, ok
}

// estimate adds the curves and allocations of further resources.
func (k *curves) estimate(e *trimtab.Estimate, loads report.Loads) {
	for _, a := range k.axes {
		if a.allocation != nil {
			if e.Allocations == nil {
				e.Allocations = map[string]float64{}
			}
			e.Allocations[a.Resource] = *a.allocation
		}
		if e.Load == nil || e.Load.Upper <= 0 {
			continue
		}
		c := learn.CurveOf(a.learner, a.load(e.Load.Upper), a.scaled(a.Min), a.scaled(a.most(loads)), k.config.Level)
		if c == nil {
			continue
		}
		c.Load = e.Load.Upper
		for i := range c.Knots {
			c.Knots[i].Allocation *= a.Max
		}
		if e.Curves == nil {
			e.Curves = map[string]*trimtab.Curve{}
		}
		e.Curves[a.Resource] = c
	}
}

// savedAxis is the state of one further resource.
type savedAxis struct {
	Learner string `json:"learner"`
	Curve   []byte `json:"curve"`
	// Max is the maximum by which allocations were scaled.
	Max float64 `json:"max"`
}

func (a *Axis) validate(workload string) error {
	if a.Resource == "" || len(a.Resource) > 253 || !(a.Min >= 0) || !(a.Max > a.Min) || math.IsInf(a.Max, 0) || a.Max > 1e15 {
		return trimtab.Invalidf("workload %s: %.40q from %v to %v", workload, a.Resource, a.Min, a.Max)
	}
	return nil
}
