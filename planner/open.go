package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
)

// A group without a limit may use all that the host has, and uses what it has work for: while
// others want their limits, the kernel gives it its part by weight. Where it is not to get a
// limit in this round, because nothing is known of it, an alert on it fires or it is in mode
// recommend, it takes of the pool
//
//	takes = max(min, min(use, entitlement))    entitlement: its part of the pool by weight
//
// with its use as last measured; not known, it is the entitlement. What it uses beyond that
// others leave idle. What is left is planned for the others. One that is about to get a limit counts as
// its max, as for everything that bounds a step: until it has the limit nobody is raised for it.

// opens finds out which workloads keep no limit, and what they take.
func (r *decision) opens() {
	p := r.planner
	const at = 0
	if p.resources[at].Name != trimtab.CPU {
		return
	}
	var entitled map[string]float64
	allocations := make(map[*allocation.Workload]*allocation.Allocation, len(r.allocations))
	for _, s := range r.allocations {
		if s.Index == at {
			allocations[s.Workload] = s
		}
	}
	for _, w := range p.workloads {
		knobs := p.ledger.Of(w.Name, trimtab.CPU)
		for _, k := range knobs {
			k.Takes = nil
		}
		s := allocations[w]
		if w.States[at] == nil || s != nil && !r.keepsOpen(s) || w.States[at].JustLowered(r.now, r.planner.cfg.Lease+r.planner.cfg.Confirm) {
			continue
		}
		if entitled == nil && len(knobs) > 0 {
			entitled = r.entitlements()
		}
		each := r.takes(w, at, entitled[w.Name]) / math.Max(1, float64(len(knobs)))
		for _, k := range knobs {
			k.Takes = &each
		}
		if s != nil {
			s.Open = true
		}
	}
}

// keepsOpen reports whether an allocation has no limit and gets none in this round.
func (r *decision) keepsOpen(s *allocation.Allocation) bool {
	return s.Knobs.Unlimited() && (!s.Free || !s.Acts() || s.Firing() && !r.planner.cfg.Guard.Disabled)
}

// takes is what a workload takes of the pool that has no limit on the CPU time it may use.
// entitled is its part of the pool by weight.
func (r *decision) takes(w *allocation.Workload, resource int, entitled float64) float64 {
	takes := entitled
	if use, known := w.Used(r.now, r.planner.cfg.StaleAfter); known {
		takes = math.Min(takes, use)
	}
	return math.Max(w.States[resource].Min, takes)
}
