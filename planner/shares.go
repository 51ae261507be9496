package planner

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
)

// Where amounts are shares by weight below one limit, there is nothing to decide while the
// needs fit: everybody has its entitlement, and the kernel shares what it leaves idle. Package
// overload decides what is done otherwise.

// weigh sets the aims of the free seats that are in where all of them share by weight, and
// reports whether it did.
func (r aiming) weigh(in func(*seat) bool) bool {
	asked, fresh := r.asked(in)
	if len(asked) == 0 || r.planner.cfg.Guard.Disabled || slices.ContainsFunc(asked, func(s *seat) bool { return !s.shared() || s.resource > 0 || s.scale != nil }) {
		return false
	}
	if !fresh {
		return true
	}
	hosts := hosting(r)
	if all := hosts.berths(asked); len(all) > 1 {
		hosts.shares(all)
		return true
	}
	r.takeTurns("", r.left(asked), asked, r.entitlements())
	return true
}

// takeTurns sets the aims of all seats that share what one host has by weight, in units, by what
// each is entitled to there, by name. "": the only host.
func (r aiming) takeTurns(host string, units int, asked []*seat, entitled map[string]float64) {
	p := r.planner
	round := overload.Round{Now: r.now, Units: units, Unit: p.cfg.Unit, Groups: p.cfg.PolicyGroups(), Stop: p.cfg.Stop}
	if p.traits.Sums {
		round.Policy = p.cfg.Policy
	}
	for _, s := range asked {
		m := overload.Member{Workload: s.claim(), Turn: s.turn, Entitled: entitled[s.Name], Guaranteed: s.dial.Guarantee,
			Cost: math.Inf(1), Missed: s.missed, Unknown: s.estimate.Cost == nil && s.unserved(), Waiting: s.waiting(),
			Window: s.estimate.Window.Duration()}
		m.Min = s.least // without what an alert keeps
		if s.estimate.Cost != nil {
			m.Cost = *s.estimate.Cost
		}
		if !(math.Max(s.turn.Wants, s.turn.Held) > 0) {
			m.Need = s.needAt(-1)
		}
		round.Members = append(round.Members, m)
	}
	state, what, turns := overload.Decide(p.overload[host], round)
	if p.overload[host] = state; state == (overload.State{}) {
		delete(p.overload, host)
	}
	if what == overload.Fits {
		rested(asked, entitled, float64(units)*p.cfg.Unit)
	}
	for i, s := range asked {
		switch s.turn = turns[i]; what {
		case overload.Fits:
			s.rest(entitled[s.Name], "needs fit; the kernel shares")
		case overload.Shared:
			s.rest(entitled[s.Name], "needs do not fit; the kernel shares by entitlement")
		case overload.Chosen:
			s.serveInTurn()
		}
	}
}

// reportOf is what an estimate tells of a workload in an overload. Its load is that of the
// report: what was used since tells of a backlog that is worked off.
func reportOf(e *trimtab.Estimate, slo float64) overload.Report {
	out := overload.Report{Time: e.Time, Performance: e.Performance, SLO: slo, Costs: -1}
	load := inputOf(e, trimtab.Load)
	if load < 0 && e.Load != nil {
		load = e.Load.Now
	}
	if e.Cost != nil {
		out.Costs = *e.Cost * load
	}
	switch {
	case e.Backlog != nil:
		out.Late = *e.Backlog / drain
	case e.Stopped > 1: // what is answered is what the limit lets through
		out.Hidden = math.Min(growing*float64(e.Stopped), growth)
	}
	return out
}

// entitlements is what each workload of the pool is entitled to of its first resource, by name.
func (r *decision) entitlements() map[string]float64 {
	p, least := r.planner, map[string]float64{}
	for _, s := range r.seats {
		if s.resource == 0 {
			least[s.Name] = float64(s.lo) * s.of.Unit
		}
	}
	var members []entitlement.Member
	for _, w := range p.workloads {
		if d := w.dials[0]; d != nil {
			members = append(members, entitlement.Member{Name: w.Name, Group: w.Group, Part: entitlement.Part{Weight: w.Weight, Least: math.Max(d.Guarantee, least[w.Name])}})
		}
	}
	return entitlement.Divide(p.resources[0].Capacity, members, p.cfg.Entitled())
}

// rest has a seat keep its entitlement e, or go back to it.
func (s *seat) rest(e float64, detail string) {
	s.solved, s.served = true, true
	s.binding = trimtab.Binding{Kind: trimtab.BindingIdle, Detail: detail}
	s.aim = policy.UpUnits(s.now, s.of.Unit)
	if worth(s, s.now, e) {
		s.aim = min(max(int(math.Round(e/s.of.Unit)), s.lo), s.hi)
		s.binding = trimtab.Binding{Kind: trimtab.BindingNeed, Detail: detail}
		return
	}
	s.stays = true
}

// serveInTurn has a seat go to the share of its turn.
func (s *seat) serveInTurn() {
	s.solved, s.aim = true, s.turn.Slice
	detail := "needs do not fit; it has what those leave who are served"
	if s.turn.Rank > 0 {
		detail = fmt.Sprintf("needs do not fit; it is served, number %d in turn", s.turn.Rank)
	}
	s.binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: detail}
	if s.stays = !worth(s, s.now, float64(s.aim)*s.of.Unit); s.stays {
		s.aim = policy.UpUnits(s.now, s.of.Unit)
	}
}

// capped reports whether a share is to be a limit, too: of who is not served, while others are.
// By its weight alone it would use the limit of all up on CPUs on which those do not work.
func (s *seat) capped(k *instances.Instance) bool {
	return s.shared() && s.free && !k.Held.Reserves && (s.turn.Capped || k.Capped)
}

// reserves reports whether what it has is room on machines, too.
func reserves(s *seat) bool {
	return slices.ContainsFunc(s.knobs, func(i instances.Instance) bool { return i.Held.Reserves })
}

// largeStep is the least step of what reserves room, as a part of the larger of both amounts:
// each is a write to a server, and another sum for its scheduler.
const largeStep = 0.25

// worth reports whether a share is to go to another amount.
func worth(s *seat, from, to float64) bool {
	return math.Abs(to-from) >= s.of.Unit && !(reserves(s) && small(from, to))
}

func small(from, to float64) bool { return math.Abs(to-from) < largeStep*math.Max(from, to)-grain }

// rested has seats that reserve room be entitled to what the site gave them, as far as all have
// that: while the needs fit, nobody reserves more for them, or less.
func rested(seats []*seat, entitled map[string]float64, has float64) {
	sum, found := 0.0, map[string]float64{}
	for _, s := range seats {
		e := entitled[s.Name]
		if reserves(s) {
			e = 0
			for i := range s.knobs {
				e += s.knobs[i].Held.Baseline.Value
			}
		}
		found[s.Name], sum = e, sum+e
	}
	if sum <= has+grain {
		maps.Copy(entitled, found)
	}
}

// recaps reports whether a knob is to be capped that is not, or the other way round.
func (s *seat) recaps(k *instances.Instance) bool {
	return k.Held.Shared && k.Held.Capped != s.capped(k)
}

// bounded takes out of a wish to the guard what is meant for quotas, where the seat has a share
// by weight: a lower share takes away only what somebody else wants.
func (s *seat) bounded(w guard.Workload) guard.Workload {
	if s.shared() && s.free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.target, s.of.Unit), guard.Move{}
	}
	return w
}
