// Package policy is the interface between the planner and the objectives, which divide a pool: the
// [Problem] of one round in whole units, its [Solution], the demand by a curve ([DemandOf]),
// and utilities.
//
//	max objective(a),  Σ_j a_j <= R,  Σ_j f_jh a_j <= C_h for every host h
//
// Source: Cilantro (OSDI'23), sections 4.1.1 and 4.1.2, equations (1) to (6);
// hosts are ours. The package solves nothing: the policies are in fair, welfare,
// dominant and endtoend.
//
// What only some policies can do is told by one method that all have,
// [Policy.Traits], and not by interfaces that some implement: a type that wraps a
// policy by embedding Policy keeps all of it, also a trait that is added later.
// Traits are values, and functions that may be nil, since the planner does
// something else where there is none.
package policy

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// Problem is one round's question, in whole units of the pool's resource.
type Problem struct {
	// Units is the capacity, >= 0.
	Units int
	// Unit is the size of one unit, in the resource's unit, > 0.
	Unit float64
	// Workloads are in order of name.
	Workloads []Workload
	// Groups are those that have a weight or a guarantee of their own, in order of path; every
	// other group that a workload names has weight 1.
	Groups []Group
	// Hosts are where the workloads run: a workload that gets x units uses Share·x of the host of
	// each of its parts. Empty: one host, which has Units.
	Hosts []Host
	// Stop, when not nil, is asked now and then; once true the solver returns
	// the best feasible answer that it has, marked Cut.
	Stop func() bool
}

// Host is one host of a problem.
type Host struct {
	Name string
	// Units is what of it may be given out, finite and >= 0.
	Units float64
}

// Part is the share of a workload's load that its instances on one host serve.
type Part struct {
	// Host is its place in [Problem.Hosts].
	Host int
	// Share is > 0.
	Share float64
}

// Group is one node of the tree of groups: its members, workloads and groups,
// share what it gets as the groups of the first level share the pool.
type Group struct {
	// Path names it from the root down, parts joined by "/": "shop/web".
	Path string
	// Weight is its entitlement's weight among its siblings, > 0.
	Weight float64
	// Guarantee is what its members get before sharing by weight begins, in units, as far as they
	// demand it.
	Guarantee int
	// Others are its guarantees of the further resources of a [Question], in
	// their order; nil: none.
	Others []int
}

// Workload is a policy's input for one workload.
type Workload struct {
	Name string
	// Group is the path of the group that it belongs to; "": the root.
	Group string
	// Guarantee is what it gets before sharing by weight begins, in units, as far as it demands
	// it.
	Guarantee int
	// Weight is its entitlement's weight, > 0.
	Weight float64
	// Min and Max bound the answer, in units, 0 <= Min <= Max.
	Min, Max int
	// Current is what it has now, in units.
	Current int
	// Parts are its load shares by host, in order of host, with a sum of at most 1: the rest runs
	// on no host of the problem. Empty without hosts.
	Parts []Part
	// Curve is its performance over the allocation in the resource's unit;
	// nil while unknown.
	Curve *trimtab.Curve
	// Reports is how many observations the curve rests on.
	Reports int
	// SLO is the performance asked for, > 0.
	SLO float64
	// Utility maps performance to [0, 1], not decreasing.
	Utility func(performance float64) float64
	// Worth is the value that the operator's own objective sums, or minimises over, in [0, 1],
	// not decreasing; nil: Utility.
	Worth func(performance float64) float64
	// Demand is the recommended demand in units, kept by the planner over rounds (Cilantro,
	// equation 6).
	Demand int
}

// Solution is a policy's target, before the bound per step and the guard.
type Solution struct {
	// Units per workload, in the order of the problem; the sum is at most
	// Problem.Units, each within its Min and Max.
	Units []int
	// Value is the objective at Units, under the bound that the policy plans
	// with.
	Value float64
	// Bound is an upper bound on the value of all allocations, with the costs of moving: equal to
	// Value if the answer is proven to be the optimum.
	Bound float64
	// Binding says, per workload, what stopped more.
	Binding []trimtab.Binding
	// Cut says that Stop ended the search early.
	Cut bool
}

// Gap returns by how much Value may be below the optimum, relative to the bound on it: 0 if it is
// proven to be the optimum.
func (s *Solution) Gap() float64 {
	if !(s.Bound > s.Value) {
		return 0
	}
	return 1 - math.Max(s.Value, 0)/s.Bound
}

// Policy solves rounds. Implementations are pure and deterministic, exact or with a bound on
// their gap, and break ties by fewest units moved, then by name.
type Policy interface {
	// Name is the objective, as the configuration names it: "njc",
	// "egalitarian", "social", "nash", "resource-fair", "drf", or the
	// operator's own expression.
	Name() string
	// Solve returns an error that is trimtab.ErrInfeasible when the minimums
	// exceed the capacity, and trimtab.ErrInvalid for a malformed problem.
	Solve(p *Problem) (Solution, error)
	// Traits are the same at every call.
	Traits() Traits
}

// Traits is how the planner treats a policy. The zero value fits a policy that divides one
// resource, at the load's upper bound, by something other than what workloads gain from it.
type Traits struct {
	// Weighs: the objective weighs the utility of each workload separately: what others have is a
	// constant to it, and the worse off come first. False if entitlements count, or if all serve
	// the same requests.
	Weighs bool
	// Sums: the objective is a sum over workloads: if not all can be served, it gains by serving
	// some in full.
	Sums bool
	// Serves says that the objective has no use for more than every SLO.
	Serves bool
	// Caution is the weight of the load's upper bound over its mean in the load that is planned
	// for, in (0, 1]; 0: curves are used unchanged, at the bound.
	Caution float64
	// Expect returns the performance that the policy counts on, for a model with that many
	// reports; nil: the mean.
	Expect func(b trimtab.Band, reports int) float64
	// Scorer returns the objective as a function of units, in the order of the
	// problem's workloads, under the bound that the policy plans with: for the
	// alternatives in the reasons of a plan. What can be prepared is prepared
	// once. nil: it has none.
	Scorer func(p *Problem) func(units []int) float64
	// Share shares several resources at once. It returns an error as Policy.Solve
	// does. nil: the policy shares one.
	Share func(q *Question) (Shares, error)
}

// Validate returns an error that is trimtab.ErrInvalid for a problem that no
// planner makes, trimtab.ErrInfeasible when the minimums exceed the units, and
// trimtab.ErrUnsupported for one with hosts: a policy that solves with hosts asks
// [Problem.ValidateHosts].
func (p *Problem) Validate() error {
	if len(p.Hosts) > 0 {
		return fmt.Errorf("solve for %d hosts: the objective knows none: %w", len(p.Hosts), trimtab.ErrUnsupported)
	}
	return p.ValidateHosts()
}

// ValidateHosts is Validate for a policy that solves with hosts. The minimums
// exceed the units also where they do on a host.
func (p *Problem) ValidateHosts() error {
	if p.Units < 0 || p.Units > MaxUnits || !positive(p.Unit) {
		return trimtab.Invalidf("problem: %d units of %v: want 0 to %d of a size > 0", p.Units, p.Unit, MaxUnits)
	}
	least := 0
	for i := range p.Workloads {
		w := &p.Workloads[i]
		switch {
		case w.Min < 0 || w.Min > w.Max || w.Max > MaxUnits || w.Current < 0:
			return trimtab.Invalidf("problem: workload %s has %d units, bounds %d to %d", w.Name, w.Current, w.Min, w.Max)
		case !positive(w.Weight):
			return trimtab.Invalidf("problem: workload %s has weight %v", w.Name, w.Weight)
		case i > 0 && p.Workloads[i-1].Name >= w.Name:
			return trimtab.Invalidf("problem: workload %s is not in order of name", w.Name)
		case w.Curve != nil && len(w.Curve.Knots) == 0:
			return trimtab.Invalidf("problem: workload %s has a curve without knots", w.Name)
		}
		if err := p.checkParts(w); err != nil {
			return err
		}
		least += w.Min
	}
	if least > p.Units {
		return fmt.Errorf("solve for %d units: the minimums need %d: %w", p.Units, least, trimtab.ErrInfeasible)
	}
	return p.checkHosts()
}

// partGrain is the rounding error of shares and of their sums on a host.
const partGrain = 1e-9

// checkParts refuses shares that are no shares.
func (p *Problem) checkParts(w *Workload) error {
	sum := 0.0
	for i, part := range w.Parts {
		if part.Host < 0 || part.Host >= len(p.Hosts) || i > 0 && part.Host <= w.Parts[i-1].Host {
			return trimtab.Invalidf("problem: workload %s runs on host %d of %d, which is unknown or not in order", w.Name, part.Host, len(p.Hosts))
		}
		sum += part.Share
		if !positive(part.Share) || sum > 1+partGrain {
			return trimtab.Invalidf("problem: workload %s has load shares that add up to %v: want numbers > 0 with a sum of at most 1", w.Name, sum)
		}
	}
	return nil
}

// checkHosts refuses hosts whose capacity is below the minimums.
func (p *Problem) checkHosts() error {
	if len(p.Hosts) == 0 {
		return nil
	}
	least := make([]float64, len(p.Hosts))
	for i := range p.Workloads {
		for _, part := range p.Workloads[i].Parts {
			least[part.Host] += part.Share * float64(p.Workloads[i].Min)
		}
	}
	for h, host := range p.Hosts {
		if !(host.Units >= 0) || host.Units > MaxUnits {
			return trimtab.Invalidf("problem: host %s has %v units: want 0 to %d", host.Name, host.Units, MaxUnits)
		}
		if least[h] > host.Units*(1+partGrain)+partGrain {
			return fmt.Errorf("solve for %v units of host %s: the minimums need %v: %w", host.Units, host.Name, least[h], trimtab.ErrInfeasible)
		}
	}
	return nil
}
