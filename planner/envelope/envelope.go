// Package envelope says within what a host may move the quota of one instance between two
// rounds, around what the plan sets:
//
//	floor   = max(floor · target, what it must have)     at most the target
//	ceiling = min(ceiling · target, what it may have)    at least the target
//	late    = 0.6 · error budget, at most 5%             the time beyond the stall budget
//
// The loop that moves quotas inside is in package local.
package envelope

import (
	"cmp"
	"math"

	"github.com/trimtab/trimtab"
)

// Rules are those of a pool. Zero values mean the defaults.
type Rules struct {
	// Floor is the least of a workload's target that is never lent, in (0, 1]. Default 0.3.
	Floor float64
	// Ceiling is the most of its target that it may borrow up to, >= 1. Default 4.
	Ceiling float64
	// Budget is the longest time that a workload may stand still in a period of 100 ms, in
	// seconds. A smaller budget reserves more, and costs more. Default 0.07.
	Budget float64
	// Burst is how much of its target a workload may save in the kernel, in [0, 1].
	Burst float64
}

const (
	floor, ceiling, budget = 0.3, 4.0, 0.07
	// lateShare of the error budget is what stalls beyond the budget may take.
	lateShare = 0.6
	// same is the relative difference that is not worth an envelope.
	same = 0.04
)

// Instance is the instance of a workload, in the resource's unit.
type Instance struct {
	// Target is what it is to have, Least what it must and Most what it may have.
	Target, Least, Most float64
	// Stall is how long it may stand still in a period, in seconds, and SLO that of its workload.
	Stall, SLO float64
}

// Of returns the envelope of an instance.
func (r Rules) Of(i Instance) *trimtab.Envelope {
	return &trimtab.Envelope{
		Floor: math.Min(i.Target, math.Max(i.Least, cmp.Or(r.Floor, floor)*i.Target)), Target: i.Target,
		Ceiling: math.Max(i.Target, math.Min(i.Most, cmp.Or(r.Ceiling, ceiling)*i.Target)),
		Budget:  trimtab.Seconds(math.Min(i.Stall, cmp.Or(r.Budget, budget))), Late: late(i.SLO),
		Lend: true, Borrow: true, Burst: r.Burst * i.Target,
	}
}

// Back raises the ceiling of an instance that had more: what is taken from it can be borrowed
// back at once, until the next round.
func (r Rules) Back(e *trimtab.Envelope, had, most float64) {
	if e.Borrow {
		e.Ceiling = math.Max(e.Ceiling, math.Min(most, cmp.Or(r.Ceiling, ceiling)*had))
	}
}

// late returns the share of the time in which a workload may stand still beyond its budget.
func late(slo float64) float64 {
	if slo >= 1 {
		return lateShare / 100
	}
	return math.Min(0.05, lateShare*(1-slo))
}

// Alike reports whether a host loses nothing by keeping the envelope that it has.
func Alike(a, b *trimtab.Envelope) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= same*math.Max(x, y)+1e-9 }
	return a.Lend == b.Lend && a.Borrow == b.Borrow && near(a.Floor, b.Floor) && near(a.Target, b.Target) && near(a.Ceiling, b.Ceiling) &&
		near(float64(a.Budget), float64(b.Budget)) && near(a.Late, b.Late) && near(a.Burst, b.Burst)
}
