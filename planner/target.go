package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/policy"
)

// Target is the final allocation that the objective wants for a pool.
type Target struct {
	// Capacity is what the pool has; Value is the objective's value at the target, nil if unknown.
	// Cut: the search was stopped early.
	Capacity float64
	Value    *float64
	Cut      bool
	// Workloads are in order of name. Held says why a workload is not planned for; it need not be
	// in Workloads.
	Workloads []Wanted
	Held      map[string]trimtab.Held
}

// Wanted is the target of one workload.
type Wanted struct {
	WorkloadConfig
	// Now is its current allocation and Aim its target, both in the resource's unit (cores, bytes).
	// Unit is the smallest step of the solver.
	Now, Aim, Unit float64
	// Free: it is planned for. Otherwise Held says why not, and Aim equals Now.
	Free    bool
	Held    trimtab.Held
	Binding trimtab.Binding
	// Curve is the curve that it is planned by, nil if none is learned. Estimate is its latest.
	Curve    *trimtab.Curve
	Estimate *trimtab.Estimate
}

// TargetOf runs a round of the planner up to the targets: with the same allocations, curves, needs
// and policy, but without the bounded step, the guard and the plan. It returns the errors of [New],
// and trimtab.ErrInfeasible if the minimums exceed the capacity.
func TargetOf(cfg Config, now time.Time, estimates []*trimtab.Estimate, holdings []*trimtab.Holding) (*Target, error) {
	cfg.Step = policy.MaxUnits // the final targets, not those of one round
	p, err := New(cfg)
	if err != nil {
		return nil, err
	}
	for _, h := range holdings {
		if h.Of(cfg.Pool) {
			p.ledger.Hold(now, p.own(h))
		}
	}
	for _, e := range estimates {
		p.learn(now, e)
	}
	r := &decision{planner: p, now: now, heldBack: map[string]trimtab.Held{}}
	r.believe()
	r.aim()
	out := &Target{Capacity: p.capacity(0), Value: r.value, Cut: r.cut, Held: r.heldBack}
	for _, s := range r.allocations {
		if s.Status.Held.Code == codes.HeldUnsolved {
			return nil, fmt.Errorf("%s (a unit is %v of %s): %w", s.Status.Held.Text, cfg.Unit, cfg.Resource, trimtab.ErrInfeasible)
		}
		w := Wanted{WorkloadConfig: s.Config, Now: s.Now, Aim: s.Now, Unit: s.Resource.Unit, Free: s.Status.Free, Held: s.Status.Held, Binding: s.Aim.Binding, Curve: s.Curve, Estimate: s.Estimate}
		if s.Status.Free {
			w.Aim = float64(s.Aim.Units) * s.Resource.Unit
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out, nil
}
