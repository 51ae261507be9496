package planner

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
)

// If the amounts are weights below one common limit, nothing is decided while the needs fit: each
// workload has its entitlement, and the kernel shares what is idle. Otherwise package overload
// decides whom to serve.

// weigh sets the targets of the free allocations selected by in if all of them share CPU by weight,
// and reports whether it did.
func (r aiming) weigh(in func(*allocation.Allocation) bool) bool {
	asked, fresh := r.asked(in)
	if len(asked) == 0 {
		return false
	}
	if why := r.unweighed(asked); why != "" {
		r.keepReserved(asked, why)
		return false
	}
	if !fresh {
		return true
	}
	if slices.ContainsFunc(asked, func(s *allocation.Allocation) bool { return s.Aim.Solved }) {
		r.entitle(asked) // whom to serve was decided among the workloads in mode act
		return true
	}
	hosts, units, scale := hosting(r), r.left(asked), 1.0
	all := hosts.sharedHosts(asked)
	switch {
	case len(all) > 1, len(all) == 1 && r.besides(all[0]):
		hosts.shares(all)
		return true
	case len(all) == 1 && all[0].capacityKnown && all[0].has < all[0].node:
		units, scale = policy.DownUnits(all[0].node, r.planner.cfg.Unit), all[0].scale()
	}
	r.takeTurns("", units, scale, asked, r.entitlements())
	return true
}

// entitle advises allocations after the shares of the others were decided: each gets its
// entitlement, or with several hosts keeps what it has.
func (r aiming) entitle(asked []*allocation.Allocation) {
	entitled, several := r.entitlements(), len(hosting(r).sharedHosts(asked)) > 1
	for _, s := range asked {
		if s.Aim.Solved {
			continue
		}
		if s.Overload.End(); several || allocation.Reserves(s) {
			s.AsSet("trimtab does not set it; the kernel shares")
		} else {
			s.Rest(entitled[s.Name], "trimtab does not set it; the kernel shares")
		}
	}
}

// besides reports whether a workload of the pool that shares CPU by weight is on another host than
// b.
func (r aiming) besides(b *sharedHost) bool {
	return slices.ContainsFunc(r.allocations, func(s *allocation.Allocation) bool {
		return s.Index == 0 && s.Shared() && slices.ContainsFunc(s.Knobs, func(k instances.Instance) bool { return k.Site() != b.members[0].in.Site() })
	})
}

// unweighed returns why the allocations cannot be planned by weight, or "" if they can.
func (r aiming) unweighed(asked []*allocation.Allocation) string {
	if r.planner.cfg.Guard.Disabled {
		return "the guard is off"
	}
	for _, s := range asked {
		switch {
		case s.Index > 0:
			return "the pool has several resources"
		case s.Scale != nil:
			return "the number of instances of " + s.Name + " is planned"
		case !s.Shared():
			return s.Name + " has no share by weight"
		}
	}
	return ""
}

// keepReserved keeps the site's amounts for reservations whose shares cannot be planned by weight.
// A limit computed for them would be too small whenever others leave CPU idle.
func (r aiming) keepReserved(asked []*allocation.Allocation, why string) {
	for _, s := range asked {
		if !allocation.Reserves(s) || s.Aim.Solved {
			continue
		}
		if s.Aim.Kept = "it keeps what the site set, since " + why; !s.CountsUp() { // else the number of its instances is planned with the site's size
			s.AsSet(s.Aim.Kept)
		}
	}
}

// takeTurns sets the targets of all allocations that share CPU by weight on one host. units is the
// capacity there, scale the fraction of it that may be given, entitled the entitlement by name of
// workload. host is "" if it is the only one.
func (r aiming) takeTurns(host string, units int, scale float64, asked []*allocation.Allocation, entitled map[string]float64) {
	p := r.planner
	round := overload.Round{Now: r.now, Units: units, Unit: p.cfg.Unit, Groups: p.cfg.PolicyGroups(), Stop: p.cfg.Stop}
	if p.traits.Sums {
		round.Policy = p.cfg.Policy
	}
	if p.traits.Weighs {
		round.Weighs = p.cfg.Policy
	}
	for _, s := range asked {
		m := s.Member(r.now, p.cfg.StaleAfter, entitled[s.Name]/scale)
		m.Limited = limiting(r).limitable(s)
		round.Members = append(round.Members, m)
	}
	state, what, turns := overload.Decide(p.overload[host], round)
	if p.overload[host] = state; state == (overload.State{}) {
		delete(p.overload, host)
	}
	for i, s := range asked {
		s.Overload, s.Aim.Divided = turns[i], what != overload.Fits
		switch {
		case what == overload.Shared, what == overload.Admitted && !p.traits.Weighs:
			s.Rest(entitled[s.Name], "needs do not fit; the kernel shares by entitlement")
		case what == overload.Chosen, what == overload.Admitted:
			s.ServeInTurn(scale)
		case allocation.Reserves(s):
			s.AsSet("needs fit; the kernel shares")
		default:
			s.Rest(entitled[s.Name], "needs fit; the kernel shares")
		}
	}
}

// entitlements returns each workload's entitlement to the pool's first resource, by name.
func (r *decision) entitlements() map[string]float64 {
	p, least := r.planner, map[string]float64{}
	for _, s := range r.allocations {
		if s.Index == 0 {
			least[s.Name] = math.Max(float64(s.Range.Lo)*s.Resource.Unit, s.Floor())
		}
	}
	var members []entitlement.Member
	for _, w := range p.workloads {
		if d := w.States[0]; d != nil {
			members = append(members, entitlement.Member{Name: w.Name, Group: w.Group, Part: entitlement.Part{Weight: w.Weight, Least: math.Max(d.Guarantee, least[w.Name])}})
		}
	}
	return entitlement.Divide(p.resources[0].Capacity, members, p.cfg.Entitled())
}
