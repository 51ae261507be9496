package planner

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// mostRequests is a number of requests in service that no pool reaches: requests in service are not
// shared between workloads.
const mostRequests = 1e12

// nearBy is the relative difference between a derived limit and the current one up to which the
// limit stays as it is.
const nearBy = 0.1

// inService limits how many requests each workload has in service at once, where something before
// it can limit them: to the declared number, or to the number that its allocation serves within the
// SLO (package concurrency). A workload with too little history keeps its limit.
func (r *decision) inService() {
	allocations := map[string]*allocation.Allocation{}
	for _, s := range r.allocations {
		if s.Index == 0 {
			allocations[s.Name] = s
		}
	}
	for _, w := range r.planner.workloads {
		if w.Admit == nil || w.Mode == trimtab.Off || w.Released {
			continue
		}
		limit, why := w.Admit.Value, "its declared value"
		if limit == 0 {
			limit, why = admitted(allocations[w.Name], r.planner.admitted[w.Name])
		}
		var knobs []*ledger.Knob
		for _, k := range r.planner.ledger.Of(w.Name, trimtab.Concurrency) {
			if !k.Gone() && k.Held.Problem == "" {
				knobs = append(knobs, k)
			}
		}
		for _, k := range knobs {
			if limit > 0 {
				r.limit(w, k, math.Ceil(limit/float64(len(knobs))), why)
			}
		}
	}
}

// admitted returns the limit for the allocation that a workload is about to have, and the reason; 0
// if it is unknown. With CPU by weight a workload may reach its maximum, unless the needs of all do
// not fit.
func admitted(s *allocation.Allocation, known *concurrency.State) (limit float64, why string) {
	if s == nil || !s.Status.Free || s.Estimate == nil {
		return 0, ""
	}
	has := s.Step.Set
	if s.Shared() && !s.Aim.Divided {
		has = math.Max(has, float64(s.Range.Hi)*s.Resource.Unit)
	}
	l, ok := known.For(has, s.Estimate.Cost)
	if !ok {
		return 0, ""
	}
	return l.Requests, l.Words(s.Resource.Name)
}

// limit appends the action that sets one limit, unless the current limit is near enough.
func (r *decision) limit(w *allocation.Workload, k *ledger.Knob, to float64, why string) {
	set := math.Min(math.Max(to, k.Held.Min), k.Held.Max)
	now := k.Held.Now
	if near := math.Max(1, nearBy*now.Value); now.Unlimited && set >= k.Held.Max && w.Admit.Value == 0 ||
		!now.Unlimited && (set == now.Value || w.Admit.Value == 0 && math.Abs(set-now.Value) <= near) {
		return
	}
	list, verb, mode := &r.grows, "raised", w.Mode
	if trimtab.Units(set).Less(now) {
		list, verb = &r.shrinks, "lowered"
	}
	if mode != trimtab.Act || k.Held.ReadOnly != "" {
		list, verb, mode = &r.advice, issue.WouldBe+verb, trimtab.Recommend
	}
	if set != to {
		why += fmt.Sprintf(", within %v to %v", k.Held.Min, k.Held.Max)
	}
	*list = append(*list, trimtab.Action{KnobID: k.KnobID, Expect: now, Set: trimtab.Units(set), Mode: mode, Why: trimtab.Reason{
		Summary:   fmt.Sprintf("requests in service %s from %v to %v: %s", verb, now, set, why),
		Binding:   trimtab.Binding{Kind: codes.BindingDemand},
		NextCheck: r.planner.next,
	}})
}
