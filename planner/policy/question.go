package policy

import (
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
)

// Question is one round's question about several resources.
type Question struct {
	// Resources are those of the pool, in its order.
	Resources []Pooled
	// Workloads are in order of name.
	Workloads []Claim
	// Groups are as in [Problem]; with guarantees of each resource.
	Groups []Group
	// Stop is as in [Problem].
	Stop func() bool
}

// Pooled is one resource of a question.
type Pooled struct {
	Name string
	// Unit is the size of one unit, in the resource's unit, > 0.
	Unit float64
	// Capacity is the whole pool's, in units, > 0, and Units how much of it may be given out, >=
	// 0: the rest is held by workloads outside of the question.
	Capacity float64
	Units    int
	// Hosts are where the workloads have their knobs for it, as in [Problem].
	Hosts []Host
}

// Claim is a policy's input for one workload.
type Claim struct {
	Name string
	// Group is the path of the group that it belongs to; "": the root.
	Group string
	// Weight is its entitlement's weight, > 0.
	Weight float64
	// Wants are by the index of the resource.
	Wants []Want
}

// Want is one workload's demand for one resource, in units. The zero Want is that of a workload
// without a knob for it.
type Want struct {
	// Min and Max bound the answer, Current is what it has now.
	Min, Max, Current int
	// Demand is the least that meets the SLO, as far as is known: see
	// [Workload].
	Demand int
	// Guarantee is what it gets before sharing by weight begins, as far as it demands it.
	Guarantee int
	// Parts are its load shares by host of [Pooled.Hosts], as in [Workload].
	Parts []Part
}

// Of returns the problem of one of the resources by itself, without groups.
func (q *Question) Of(resource int) *Problem {
	of := &q.Resources[resource]
	p := &Problem{Units: of.Units, Unit: of.Unit, Hosts: of.Hosts, Stop: q.Stop, Workloads: make([]Workload, len(q.Workloads))}
	for i := range q.Workloads {
		w, v := &q.Workloads[i], &q.Workloads[i].Wants[resource]
		p.Workloads[i] = Workload{Name: w.Name, Weight: w.Weight, Min: v.Min, Max: v.Max,
			Current: v.Current, Demand: v.Demand, Guarantee: v.Guarantee, Parts: v.Parts}
	}
	return p
}

// Unlocate removes the hosts from a question and reports whether it had any.
func (q *Question) Unlocate() (had bool) {
	for r := range q.Resources {
		had = had || len(q.Resources[r].Hosts) > 0
		q.Resources[r].Hosts = nil
	}
	for i := range q.Workloads {
		for r := range q.Workloads[i].Wants {
			q.Workloads[i].Wants[r].Parts = nil
		}
	}
	return had
}

// Shares is a policy's target for several resources.
type Shares struct {
	// Units and Binding are as in [Solution], by workload and resource.
	Units   [][]int
	Binding [][]trimtab.Binding
	// Value is the objective at Units, in [0, 1].
	Value float64
	Cut   bool
}

// Validate is [Problem.ValidateHosts] of a question.
func (q *Question) Validate() error {
	least := make([]int, len(q.Resources))
	for _, r := range q.Resources {
		if r.Units < 0 || r.Units > MaxUnits || !positive(r.Unit) || !positive(r.Capacity) {
			return trimtab.Invalidf("problem: %d of %v units of %v of %s: want 0 to %d of a size > 0", r.Units, r.Capacity, r.Unit, r.Name, MaxUnits)
		}
	}
	for i := range q.Workloads {
		w := &q.Workloads[i]
		if len(w.Wants) != len(q.Resources) || !positive(w.Weight) {
			return trimtab.Invalidf("problem: workload %s has weight %v and wants %d of %d resources", w.Name, w.Weight, len(w.Wants), len(q.Resources))
		}
		if i > 0 && q.Workloads[i-1].Name >= w.Name {
			return trimtab.Invalidf("problem: workload %s is not in order of name", w.Name)
		}
		for r, v := range w.Wants {
			if v.Min < 0 || v.Min > v.Max || v.Max > MaxUnits || v.Current < 0 || v.Demand < 0 || v.Guarantee < 0 {
				return trimtab.Invalidf("problem: workload %s wants %+v of %s", w.Name, v, q.Resources[r].Name)
			}
			least[r] += v.Min
		}
	}
	for r, n := range least {
		if n > q.Resources[r].Units {
			return fmt.Errorf("solve for %d units of %s: the minimums need %d: %w", q.Resources[r].Units, q.Resources[r].Name, n, trimtab.ErrInfeasible)
		}
		if err := q.checkHosts(r); err != nil {
			return fmt.Errorf("share %s: %w", q.Resources[r].Name, err)
		}
	}
	return nil
}

// checkHosts checks parts and hosts of one resource as [Problem.ValidateHosts] does.
func (q *Question) checkHosts(resource int) error {
	located := func(w Claim) bool { return len(w.Wants[resource].Parts) > 0 }
	if len(q.Resources[resource].Hosts) == 0 && !slices.ContainsFunc(q.Workloads, located) {
		return nil
	}
	p := q.Of(resource)
	for i := range p.Workloads {
		if err := p.checkParts(&p.Workloads[i]); err != nil {
			return err
		}
	}
	return p.checkHosts()
}
