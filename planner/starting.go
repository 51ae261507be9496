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

// An instance of a cluster starts with what its template says, and may run long before it serves.
// Until then it does not count for its workload, but gets what the others have as soon as it
// runs, since starting often takes more than serving. That comes from idle capacity, and no
// workload is lowered for it. If the amount is a reservation, the template's value is the site's,
// and stays while the needs fit.

// starting raises instances that run and do not serve yet.
func (r *decision) starting(resource int) {
	var rest *ledger.Rest
	for _, s := range r.allocations {
		if s.Index != resource || !s.Writes() || !s.Free && s.Held.Code == codes.HeldKnob || allocation.Reserves(s) && !s.Divided {
			continue
		}
		usual, ok := s.Knobs.Median()
		if !ok {
			continue
		}
		for _, k := range r.planner.ledger.Of(s.Name, s.Of.Name) {
			if !r.starts(k) {
				continue
			}
			if rest == nil {
				rest = r.leftover(resource)
			}
			i := instances.Of(k, false)
			goal := math.Min(math.Min(usual, i.High), i.Has+math.Max(0, rest.Idle))
			if i.Bounded(rest.Room) {
				goal = math.Min(goal, i.Has+math.Max(0, rest.Room[i.Site()]))
			}
			goal = s.Of.Down(goal)
			if goal <= i.Has+s.Of.Quantum()/2 {
				continue
			}
			rest.Take(i.Site(), goal-i.Has)
			show := func(v float64) string { return trimtab.AmountOf(s.Of.Name, trimtab.Units(v)) }
			r.begun = append(r.begun, trimtab.Action{KnobID: k.KnobID, Expect: i.Found, Set: trimtab.Units(goal), Mode: s.ActionMode(), Why: trimtab.Reason{
				Summary:   fmt.Sprintf("raised from %s to %s: it starts, and gets the median of what the other instances have", show(i.Has), show(goal)),
				NextCheck: r.planner.next, Binding: s.Binding,
			}})
		}
	}
}

// starts reports whether an instance runs, can be turned and does not serve yet.
func (r *decision) starts(k *ledger.Knob) bool {
	st := k.Held.Standing
	return !k.Gone() && st != nil && st.Phase == trimtab.Unready && k.Held.Problem == "" && k.Held.Barred == "" && !k.Held.Now.Unlimited &&
		r.unheard(k) == 0
}

// unheard ranks a knob that serves nothing by its host, as unfit does.
func (r *decision) unheard(k *ledger.Knob) int {
	if r.planner.ledger.Lost(k, r.now) || r.planner.ledger.Twins(k, r.now) || r.now.Sub(k.Heard()) > r.planner.cfg.Lease {
		return 1
	}
	return 0
}

// leftover returns what pool and hosts have left once this plan is carried out.
func (r *decision) leftover(resource int) *ledger.Rest {
	rest := r.believed(resource).Rest(r.planner.capacity(resource))
	rest.Room = slices.Clone(rest.Room)
	for _, s := range r.allocations {
		if s.Index != resource || !s.Acts() {
			continue
		}
		for i := range s.Knobs {
			if k := &s.Knobs[i]; k.Set > k.Has {
				rest.Take(k.Site(), k.Set-k.Has)
			}
		}
		if more := s.Replicas.To - s.Replicas.From; more > 0 && s.Scale != nil {
			rest.Idle -= float64(more) * r.planner.starts(s.Workload, s.Scale, s.Of.Name)
		}
	}
	return rest
}
