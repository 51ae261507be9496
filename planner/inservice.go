package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
)

// mostRequests is the capacity of each pool for limits of requests, which workloads do not share.
const mostRequests = 1e12

// requests limits the requests to each workload, where something before it can: those in service, and
// those admitted per second. A limit is the declared one, or what its allocation serves within the SLO
// (package concurrency). A workload with too little history keeps its limits.
func (r limiting) requests() {
	allocations, entitled := map[string]*allocation.Allocation{}, map[string]float64(nil)
	for _, s := range r.allocations {
		if s.Index == 0 {
			allocations[s.Name] = s
		}
	}
	for _, w := range r.planner.workloads {
		s := allocations[w.Name]
		silent := s == nil || !s.Status.Free || s.Estimate == nil
		if w.Admit == nil || w.Mode == trimtab.Off || w.Released {
			continue
		}
		if silent && entitled == nil {
			entitled = r.entitlements()
		}
		for _, resource := range concurrency.Resources() {
			limit, why, fixed := w.Admit[resource].Value, "its declared value", w.Admit[resource].Value > 0
			switch {
			case fixed:
			case silent:
				limit, why = r.entitledTo(w, resource, entitled[w.Name])
			default:
				limit, why = r.admitted(s, resource)
			}
			knobs, declared := r.limits(w, resource)
			for _, k := range declared {
				r.limit(w, k, w.Admit[resource].Declared[k.Instance], "its declared value", true)
			}
			for _, k := range knobs {
				if to := concurrency.Round(resource, limit/float64(len(knobs))); limit > 0 && (fixed || !silent || k.Held.Now.Less(trimtab.Units(to))) {
					r.limit(w, k, to, why, fixed)
				}
			}
		}
	}
}

// limits returns the knobs by which the requests to a workload can be limited: those that are to have
// its limit together, and those with declared limits of their own.
func (r limiting) limits(w *allocation.Workload, resource string) (knobs, declared []*ledger.Knob) {
	for _, k := range r.planner.ledger.Of(w.Name, resource) {
		switch {
		case k.Gone() || k.Held.Problem != "":
		case w.Admit[resource].Declared[k.Instance] > 0:
			declared = append(declared, k)
		default:
			knobs = append(knobs, k)
		}
	}
	return knobs, declared
}

// limitable reports whether trimtab limits a workload's requests to what its share of CPU serves, so
// that the gate before it refuses the others.
func (r limiting) limitable(s *allocation.Allocation) bool {
	return s.Admit != nil && s.Mode == trimtab.Act && slices.ContainsFunc(concurrency.Resources(), func(resource string) bool {
		knobs, _ := r.limits(s.Workload, resource)
		readOnly := slices.ContainsFunc(knobs, func(k *ledger.Knob) bool { return k.Held.ReadOnly != "" })
		_, known := r.planner.admitted[s.Name].For(resource, s.Resource.Capacity, s.Admit[resource].Within, s.Estimate.Cost)
		return known && s.Admit[resource].Value == 0 && len(knobs) > 0 && !readOnly
	})
}

// admitted returns the limit for the allocation that a workload is about to have, and the reason; 0
// if it is unknown. With CPU by weight a workload may reach its maximum, unless the needs of all do
// not fit.
func (r limiting) admitted(s *allocation.Allocation, resource string) (limit float64, why string) {
	has, about := s.Step.Set, ""
	switch {
	case !s.Shared():
	case s.Overload.Partial:
		has = float64(s.Overload.Slice) * s.Resource.Unit
		about = fmt.Sprintf("needs do not fit, and %s gives it %s of the %s that its requests want: ", r.planner.cfg.Policy.Name(), s.Amount(has), s.Amount(math.Round(s.Overload.Wants/s.Resource.Unit)*s.Resource.Unit))
	case s.Overload.Admitted, !s.Aim.Divided:
		has = math.Max(has, float64(s.Range.Hi)*s.Resource.Unit)
	}
	l, ok := r.planner.admitted[s.Name].For(resource, has, s.Admit[resource].Within, s.Estimate.Cost)
	switch {
	case ok:
	case s.Overload.Partial && l.Allocation > 0:
		return 1, about + "at least one request"
	default:
		return 0, ""
	}
	return l.Amount, about + l.Words(s.Resource.Name)
}

// entitledTo returns the least limit of a workload without a current estimate: as many requests as its
// entitlement serves. 0: unknown.
func (r limiting) entitledTo(w *allocation.Workload, resource string, entitled float64) (limit float64, why string) {
	l, ok := r.planner.admitted[w.Name].For(resource, entitled, w.Admit[resource].Within, nil)
	if !ok {
		return 0, ""
	}
	return l.Amount, "nothing is known of it now, so it may serve what it is entitled to: " + l.Words(r.planner.cfg.Resource)
}

// limit appends the action that sets one limit, unless the current limit is near enough. declared: the
// file has the number.
func (r limiting) limit(w *allocation.Workload, k *ledger.Knob, to float64, why string, declared bool) {
	set := math.Min(math.Max(to, k.Held.Min), k.Held.Max)
	list, verb, mode, now := &r.grows, "raised", w.Mode, k.Held.Now
	if now == trimtab.Units(set) || !declared && (now.Unlimited && set >= k.Held.Max || !now.Unlimited && concurrency.Near(k.Resource, now.Value, set)) {
		return
	}
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
		Summary:   fmt.Sprintf("%s %s from %v to %v: %s", concurrency.Counted(k.Resource), verb, now, set, why),
		Binding:   trimtab.Binding{Kind: codes.BindingDemand},
		NextCheck: r.planner.next,
	}})
}
