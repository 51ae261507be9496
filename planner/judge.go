package planner

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/audit"
	"github.com/trimtab/trimtab/planner/ledger"
)

// fairness audits the current allocations, and the targets of the solver.
func fairness(r *decision) *trimtab.Audit {
	p := r.planner
	now, target := &audit.Pool{}, &audit.Pool{}
	for i, of := range p.resources {
		capacity := of.Capacity
		if has := p.capacity(i); has > 0 {
			capacity = has
		}
		now.Resources = append(now.Resources, audit.Resource{Name: of.Name, Capacity: capacity})
	}
	target.Resources = now.Resources
	most := len(r.allocations) + 1 // one more for the workloads that are not planned for
	now.Tenants, target.Tenants = make([]audit.Tenant, 0, most), make([]audit.Tenant, 0, most)
	members := make([]audit.Member, 0, most)
	for _, s := range r.allocations {
		n := len(now.Tenants)
		if n == 0 || now.Tenants[n-1].Name != s.Name {
			t := audit.Tenant{Name: s.Name, Has: make([]float64, len(p.resources))}
			if s.Status.Free {
				t.Demand = make([]float64, len(p.resources))
			}
			now.Tenants = append(now.Tenants, t)
			t.Has = make([]float64, len(p.resources))
			target.Tenants = append(target.Tenants, t)
			members = append(members, audit.Member{Group: s.Group, Weight: s.Weight})
			n++
		}
		now.Tenants[n-1].Has[s.Index], target.Tenants[n-1].Has[s.Index] = s.Now, s.Now
		if s.Status.Free {
			now.Tenants[n-1].Demand[s.Index] = float64(s.State.Demand) * s.Resource.Unit
			target.Tenants[n-1].Has[s.Index] = float64(s.Aim.Units) * s.Resource.Unit
		}
	}
	if len(members) == 0 {
		return nil
	}
	weights := map[string]float64{}
	for _, g := range p.cfg.PolicyGroups() {
		weights[g.Path] = g.Weight
	}
	for i, e := range audit.Entitlements(members, weights) {
		now.Tenants[i].Entitlement, target.Tenants[i].Entitlement = e, e
	}
	// Capacity used by workloads that are not planned for counts as used, not as slack.
	others := audit.Tenant{Has: make([]float64, len(p.resources))}
	rest := make([]*ledger.Counts, len(p.resources))
	for i := range rest {
		rest[i] = r.believed(i).Clone()
	}
	for _, s := range r.allocations {
		for i := range s.Knobs {
			rest[s.Index].LeaveOut(s.Knobs[i].Index())
		}
	}
	for i := range rest {
		others.Has[i] = rest[i].Sum()
		rooms(r, i, rest[i].Headroom(), now.Tenants, target.Tenants)
	}
	now.Tenants, target.Tenants = append(now.Tenants, others), append(target.Tenants, others)
	out := audit.Of(now)
	f := audit.FairnessOf(target)
	out.Target = &f
	return out
}

// rooms sets for each tenant how much more of a resource its hosts can give it: in now with the
// current allocations, in target with the targets. wanted is, by host, what all other knobs leave;
// nil with one host.
func rooms(r *decision, resource int, wanted []float64, now, target []audit.Tenant) {
	left := r.believed(resource).Headroom()
	if left == nil {
		return
	}
	var allocations []*allocation.Allocation
	for _, s := range r.allocations {
		if s.Index != resource {
			continue
		}
		allocations = append(allocations, s)
		for i := range s.Knobs {
			if k := &s.Knobs[i]; s.Status.Free && !k.Stuck {
				wanted[k.Site()] -= k.Share * float64(s.Aim.Units) * s.Resource.Unit
			} else {
				wanted[k.Site()] -= r.believed(resource).Of(k.Index())
			}
		}
	}
	at := 0
	for _, s := range allocations {
		for now[at].Name != s.Name {
			at++
		}
		for _, tenant := range []*audit.Tenant{&now[at], &target[at]} {
			if tenant.Room == nil {
				tenant.Room = make([]float64, len(r.planner.resources))
			}
		}
		now[at].Room[resource], target[at].Room[resource] = s.Knobs.Headroom(left), s.Knobs.Headroom(wanted)
	}
}
