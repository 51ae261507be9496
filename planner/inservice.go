package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// mostRequests is the capacity of each pool for requests in service. No pool reaches it, since
// workloads do not share requests in service.
const mostRequests = 1e12

// nearBy is the relative difference between a derived limit and the current one up to which the
// limit stays as it is.
const nearBy = 0.1

// inService limits how many requests each workload has in service at once, where something before
// it can limit them: to the declared number, or to the number that its allocation serves within the
// SLO (package concurrency). A workload with too little history keeps its limit.
func (r limiting) inService() {
	allocations, entitled := map[string]*allocation.Allocation{}, map[string]float64(nil)
	for _, s := range r.allocations {
		if s.Index == 0 {
			allocations[s.Name] = s
		}
	}
	for _, w := range r.planner.workloads {
		if w.Admit == nil || w.Mode == trimtab.Off || w.Released {
			continue
		}
		s := allocations[w.Name]
		silent := w.Admit.Value == 0 && (s == nil || !s.Status.Free || s.Estimate == nil)
		limit, why := w.Admit.Value, "its declared value"
		switch {
		case silent:
			if entitled == nil {
				entitled = r.entitlements()
			}
			limit, why = r.entitledTo(w, entitled[w.Name])
		case limit == 0:
			limit, why = r.admitted(s)
		}
		knobs := r.limits(w)
		for _, k := range knobs {
			if to := math.Ceil(limit / float64(len(knobs))); limit > 0 && !(silent && !k.Held.Now.Less(trimtab.Units(to))) {
				r.limit(w, k, to, why)
			}
		}
	}
}

// limits returns the knobs by which the requests of a workload can be limited.
func (r limiting) limits(w *allocation.Workload) (knobs []*ledger.Knob) {
	for _, k := range r.planner.ledger.Of(w.Name, trimtab.Concurrency) {
		if !k.Gone() && k.Held.Problem == "" {
			knobs = append(knobs, k)
		}
	}
	return knobs
}

// limitable reports whether trimtab limits a workload's requests to what its share of CPU serves, so
// that the gate before it refuses the others.
func (r limiting) limitable(s *allocation.Allocation) bool {
	if s.Admit == nil || s.Admit.Value > 0 || s.Mode != trimtab.Act {
		return false
	}
	knobs := r.limits(s.Workload)
	readOnly := slices.ContainsFunc(knobs, func(k *ledger.Knob) bool { return k.Held.ReadOnly != "" })
	_, known := r.planner.admitted[s.Name].For(s.Resource.Capacity, s.Estimate.Cost)
	return known && len(knobs) > 0 && !readOnly
}

// admitted returns the limit for the allocation that a workload is about to have, and the reason; 0
// if it is unknown. With CPU by weight a workload may reach its maximum, unless the needs of all do
// not fit.
func (r limiting) admitted(s *allocation.Allocation) (limit float64, why string) {
	has, about := s.Step.Set, ""
	switch {
	case !s.Shared():
	case s.Overload.Partial:
		has = float64(s.Overload.Slice) * s.Resource.Unit
		about = fmt.Sprintf("needs do not fit, and %s gives it %s of the %s that its requests want: ", r.planner.cfg.Policy.Name(), s.Amount(has), s.Amount(s.Wants()))
	case s.Overload.Admitted, !s.Aim.Divided:
		has = math.Max(has, float64(s.Range.Hi)*s.Resource.Unit)
	}
	l, ok := r.planner.admitted[s.Name].For(has, s.Estimate.Cost)
	switch {
	case ok:
	case s.Overload.Partial && l.Time > 0:
		return 1, about + "at least one request is in service"
	default:
		return 0, ""
	}
	return l.Requests, about + l.Words(s.Resource.Name)
}

// entitledTo returns the least limit of a workload without a current estimate: as many requests as its
// entitlement serves. 0: unknown.
func (r limiting) entitledTo(w *allocation.Workload, entitled float64) (limit float64, why string) {
	l, ok := r.planner.admitted[w.Name].For(entitled, nil)
	if !ok {
		return 0, ""
	}
	return l.Requests, "nothing is known of it now, so it may serve what it is entitled to: " + l.Words(r.planner.cfg.Resource)
}

// limit appends the action that sets one limit, unless the current limit is near enough.
func (r limiting) limit(w *allocation.Workload, k *ledger.Knob, to float64, why string) {
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
