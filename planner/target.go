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
	// Capacity is what the pool has, Value the objective's value of the target, nil: not known.
	// Cut: the search was stopped early.
	Capacity float64
	Value    *float64
	Cut      bool
	// Workloads are in order of name; Held says why others, or some of them, are not planned for.
	Workloads []Wanted
	Held      map[string]trimtab.Held
}

// Wanted is what the objective wants for one workload.
type Wanted struct {
	WorkloadConfig
	// Now is what it has and Aim its target, both in the resource's unit; Unit is the size of one.
	Now, Aim, Unit float64
	// Free: it is planned for; Held says why not, and Aim is then what it has.
	Free    bool
	Held    trimtab.Held
	Binding trimtab.Binding
	// Curve is what it is planned by, nil: nothing is learnt; Estimate is the newest.
	Curve    *trimtab.Curve
	Estimate *trimtab.Estimate
}

// TargetOf runs a round of the planner up to the target: with the same allocations, curves, needs
// and policy, but without bounded step, guard and plan. The error is that of [New], or
// trimtab.ErrInfeasible if the minimums exceed the capacity.
func TargetOf(cfg Config, now time.Time, estimates []*trimtab.Estimate, holdings []*trimtab.Holding) (*Target, error) {
	cfg.Step = policy.MaxUnits // where the pool ends up, not how far it gets in one round
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
		if s.Held.Code == codes.HeldUnsolved {
			return nil, fmt.Errorf("%s (a unit is %v of %s): %w", s.Held.Text, cfg.Unit, cfg.Resource, trimtab.ErrInfeasible)
		}
		w := Wanted{WorkloadConfig: s.Config, Now: s.Now, Aim: s.Now, Unit: s.Of.Unit, Free: s.Free, Held: s.Held, Binding: s.Binding, Curve: s.Curve, Estimate: s.Estimate}
		if s.Free {
			w.Aim = float64(s.Aim) * s.Of.Unit
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out, nil
}
