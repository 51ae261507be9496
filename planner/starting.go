package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
)

// An instance in a cluster starts with the amount in its template, and may run long before it
// serves. Until then it does not count for its workload's allocation. As soon as it runs it gets as
// much as the other instances have, since starting often takes more CPU than serving. This uses
// only idle capacity; no workload is lowered for it. If the amount is a reservation, the template's
// value is the site's, and stays while all needs fit.

// starting raises instances that run and do not serve yet.
func (r *decision) starting(resource int) {
	var rest *ledger.Rest
	for _, s := range r.allocations {
		if s.Index != resource || !s.Writes() || !s.Status.Free && s.Status.Held.Code == codes.HeldKnob || allocation.Reserves(s) && !s.Aim.Divided {
			continue
		}
		usual, ok := s.Knobs.Median()
		if !ok {
			continue
		}
		for _, k := range r.planner.ledger.Of(s.Name, s.Resource.Name) {
			if !r.starts(k) {
				continue
			}
			if rest == nil {
				rest = r.leftover(resource)
			}
			i := instances.Of(k, false)
			goal := math.Min(math.Min(usual, i.High), i.Has+math.Max(0, rest.Idle))
			if i.Bounded(rest.Headroom) {
				goal = math.Min(goal, i.Has+math.Max(0, rest.Headroom[i.Site()]))
			}
			goal = s.Resource.Down(goal)
			if goal <= i.Has+s.Resource.Quantum()/2 {
				continue
			}
			rest.Subtract(i.Site(), goal-i.Has)
			show := func(v float64) string { return trimtab.AmountOf(s.Resource.Name, trimtab.Units(v)) }
			r.begun = append(r.begun, trimtab.Action{KnobID: k.KnobID, Expect: i.Found, Set: trimtab.Units(goal), Mode: s.ActionMode(), Why: trimtab.Reason{
				Summary:   fmt.Sprintf("raised from %s to %s: it starts, and gets the median of what the other instances have", show(i.Has), show(goal)),
				NextCheck: r.planner.next, Binding: s.Aim.Binding,
			}})
		}
	}
}

// starts reports whether an instance runs, can be set and does not serve yet.
func (r *decision) starts(k *ledger.Knob) bool {
	st := k.Held.Status
	return !k.Gone() && st != nil && st.Phase == trimtab.Unready && k.Held.Problem == "" && k.Held.ReadOnly == "" && !k.Held.Now.Unlimited &&
		r.hostLost(k) == 0
}

// hostLost returns 1 if the host of a knob is lost, silent for a lease, or claimed by two agents,
// else 0. Unlike unfit it ignores whether the instance serves.
func (r *decision) hostLost(k *ledger.Knob) int {
	if r.planner.ledger.Lost(k, r.now) || r.planner.ledger.Duplicate(k, r.now) || r.now.Sub(k.ReportedAt()) > r.planner.cfg.Lease {
		return 1
	}
	return 0
}

// leftover returns what the pool and each host have left once this plan is carried out.
func (r *decision) leftover(resource int) *ledger.Rest {
	rest := r.believed(resource).Rest(r.planner.capacity(resource))
	rest.Headroom = slices.Clone(rest.Headroom)
	for _, s := range r.allocations {
		if s.Index != resource || !s.Acts() {
			continue
		}
		for i := range s.Knobs {
			if k := &s.Knobs[i]; k.Set > k.Has {
				rest.Subtract(k.Site(), k.Set-k.Has)
			}
		}
		if more := s.Replicas.To - s.Replicas.From; more > 0 && s.Scale != nil {
			rest.Idle -= float64(more) * r.planner.starts(s.Workload, s.Scale, s.Resource.Name)
		}
	}
	return rest
}
