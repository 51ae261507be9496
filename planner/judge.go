package planner

import (
	"cmp"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"slices"

	"github.com/trimtab/trimtab/planner/audit"
)

// groupsOf returns the declared groups in order of path.
func (p *Planner) groupsOf() []policy.Group {
	out := make([]policy.Group, 0, len(p.cfg.Groups))
	for _, g := range p.cfg.Groups {
		weight := g.Weight
		if weight == 0 {
			weight = 1
		}
		group := policy.Group{Path: g.Path, Weight: weight, Guarantee: policy.DownUnits(g.Guarantee, p.cfg.Unit)}
		if len(g.Others) > 0 {
			for _, r := range p.resources[1:] {
				group.Others = append(group.Others, policy.DownUnits(g.Others[r.Name], r.Unit))
			}
		}
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b policy.Group) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// judge audits what the workloads have, and what the solver wants for them.
func (r *decision) judge() {
	p := r.planner
	now, target, seated := &audit.Pool{}, &audit.Pool{}, map[*ledger.Knob]bool{}
	for i, of := range p.resources {
		capacity := of.Capacity
		if has := p.capacity(i); has > 0 {
			capacity = has
		}
		now.Resources = append(now.Resources, audit.Resource{Name: of.Name, Capacity: capacity})
	}
	target.Resources = now.Resources
	var members []audit.Member
	for _, s := range r.seats {
		for i := range s.knobs {
			seated[s.knobs[i].Knob] = true
		}
		n := len(now.Tenants)
		if n == 0 || now.Tenants[n-1].Name != s.Name {
			t := audit.Tenant{Name: s.Name, Has: make([]float64, len(p.resources))}
			if s.free {
				t.Demand = make([]float64, len(p.resources))
			}
			now.Tenants = append(now.Tenants, t)
			t.Has = make([]float64, len(p.resources))
			target.Tenants = append(target.Tenants, t)
			members = append(members, audit.Member{Group: s.Group, Weight: s.Weight})
			n++
		}
		now.Tenants[n-1].Has[s.resource], target.Tenants[n-1].Has[s.resource] = s.now, s.now
		if s.free {
			now.Tenants[n-1].Demand[s.resource] = float64(s.dial.demand) * s.of.Unit
			target.Tenants[n-1].Has[s.resource] = float64(s.aim) * s.of.Unit
		}
	}
	if len(members) == 0 {
		return
	}
	weights := map[string]float64{}
	for _, g := range p.groupsOf() {
		weights[g.Path] = g.Weight
	}
	for i, e := range audit.Entitlements(members, weights) {
		now.Tenants[i].Entitlement, target.Tenants[i].Entitlement = e, e
	}
	// What the others hold is nobody's slack.
	others := audit.Tenant{Has: make([]float64, len(p.resources))}
	for _, e := range p.ledger.Knobs() {
		if !seated[e] {
			others.Has[p.index(e.Resource)] += p.ledger.Believed(e, r.now)
		}
	}
	now.Tenants, target.Tenants = append(now.Tenants, others), append(target.Tenants, others)
	r.audit = audit.Of(now)
	f := audit.FairnessOf(target)
	r.audit.Target = &f
}
