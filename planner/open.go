package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
)

// A control group without a limit may use the whole host, and uses as much as it has work for; when
// others compete, the kernel gives it its share by weight. If it gets no limit in this round (it
// has no estimate, an alert on it fires, or its mode is recommend), the pool counts it as
//
//	takes = max(min, min(use, entitlement))    entitlement: its share of the pool by weight
//
// use is the last measured use; if it is unknown, the entitlement stands in for it. Whatever it
// uses beyond takes is capacity that others leave idle. The remaining capacity is planned for the
// other workloads. A group that is about to get a limit counts as its max, as in all bounds of a
// step: no workload is raised on its account before the limit is in force.

// opens finds the workloads that stay without a limit in this round, and sets what the pool counts
// for them.
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
			s.Status.Open = true
		}
	}
}

// keepsOpen reports whether an allocation has no limit and gets none in this round.
func (r *decision) keepsOpen(s *allocation.Allocation) bool {
	return s.Knobs.Unlimited() && (!s.Status.Free || !s.Acts() || s.Firing() && !r.planner.cfg.Guard.Disabled)
}

// takes returns what the pool counts for a workload without a CPU limit. entitled is its share of
// the pool by weight.
func (r *decision) takes(w *allocation.Workload, resource int, entitled float64) float64 {
	takes := entitled
	if use, known := w.Used(r.now, r.planner.cfg.StaleAfter); known {
		takes = math.Min(takes, use)
	}
	return math.Max(w.States[resource].Min, takes)
}
