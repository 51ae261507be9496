package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Planned returns the plan of [Model.LastPlan] as the API has it; nil before the first.
func (v *Model) Planned() *Planned {
	p := v.LastPlan()
	if p == nil {
		return nil
	}
	out := &Planned{ID: p.ID(), Plan: p}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Mode != trimtab.Recommend {
			continue
		}
		out.Applicable = true
		if why := v.fleet.readOnly(a.KnobID); why != "" {
			if out.ReadOnly == nil {
				out.ReadOnly = map[string]string{}
			}
			out.ReadOnly[a.Workload] = why
		}
	}
	out.Applicable = out.Applicable && len(out.ReadOnly) == 0
	out.Exceeds = v.fleet.exceeds(p, &v.config, time.Now())
	return out
}

// readOnly returns why a plan for a knob, or for any of a pool if it names none, could not be
// applied; "": it could.
func (f *fleet) readOnly(id trimtab.KnobID) string {
	h := f.Host(id.Pool, id.Host)
	if h == nil {
		return ""
	}
	for i := range h.Knobs {
		k := &h.Knobs[i]
		if k.Workload == id.Workload && k.Resource == id.Resource && k.Instance == id.Instance {
			return cmp.Or(k.Problem, k.ReadOnly)
		}
	}
	return ""
}

// Newest returns the newest estimates of the declared workloads and the holdings of the hosts that
// count at now, as a planner would receive them. Callers must not change them.
func (v *Model) Newest(now time.Time) (estimates []*trimtab.Estimate, holdings []*trimtab.Holding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.workloads.all {
		if s.declared && s.estimate.Value != nil {
			estimates = append(estimates, s.estimate.Value)
		}
	}
	for h := range v.fleet.All() {
		if !h.Gone(now) {
			holdings = append(holdings, &trimtab.Holding{Pool: h.Pool, Host: h.Name, Time: h.Time, LeaseLeft: h.Lease(now), Paused: h.Paused,
				Capacity: h.Capacity, Divided: h.Divided, Targets: slices.Clone(h.Knobs)})
		}
	}
	slices.SortFunc(estimates, func(a, b *trimtab.Estimate) int { return strings.Compare(a.Workload, b.Workload) })
	slices.SortFunc(holdings, func(a, b *trimtab.Holding) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Pool, b.Pool))
	})
	return estimates, holdings
}
