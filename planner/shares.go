package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
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
	hosts, units, scale := hosting(r), r.left(asked), 1.0
	all := hosts.berths(asked)
	switch {
	case len(all) > 1:
		hosts.shares(all)
		return true
	case len(all) == 1 && all[0].told && all[0].has < all[0].node:
		units, scale = policy.DownUnits(all[0].node, r.planner.cfg.Unit), all[0].scale()
	}
	r.takeTurns("", units, scale, asked, r.entitlements())
	return true
}

// unweighed says why seats cannot be planned by weight; "": they can.
func (r aiming) unweighed(asked []*seat) string {
	if r.planner.cfg.Guard.Disabled {
		return "the guard is off"
	}
	for _, s := range asked {
		switch {
		case s.resource > 0:
			return "the pool has several resources"
		case s.scale != nil:
			return "the number of instances of " + s.Name + " is planned"
		case !s.shared():
			return s.Name + " has no share by weight"
		}
	}
	return ""
}

// keepReserved has seats that reserve room, and whose shares cannot be planned, keep what the site
// gave them: as a limit it would be too small whenever others leave something idle.
func (r aiming) keepReserved(asked []*seat, why string) {
	for _, s := range asked {
		if !reserves(s) || s.solved {
			continue
		}
		if s.kept = "it keeps what the site set, since " + why; !s.countsUp() { // else its number is planned with that
			s.asSet(s.kept)
		}
	}
}

// asSet has the instances of a seat that reserves room be as the site set them.
func (s *seat) asSet(detail string) {
	s.solved, s.served, s.stays, s.byHost = true, true, true, true
	s.aim, s.binding = policy.UpUnits(s.now, s.of.Unit), trimtab.Binding{Kind: trimtab.BindingIdle, Detail: detail}
	for i := range s.knobs {
		k := &s.knobs[i]
		if k.Hosted = (instances.Hosted{Aim: k.Has}); k.Held.Reserves {
			k.Aim = k.Before()
		}
	}
}

// back has the instances of a seat go back to what the site set, once there is as much.
func (s *seat) back(rest *ledger.Rest) {
	for i := range s.knobs {
		k := &s.knobs[i]
		more := k.Before() - k.Has
		if !k.Held.Reserves || k.Stuck || more > rest.Idle+grain && more > 0 || k.Bounded(rest.Room) && more > math.Max(0, rest.Room[k.Site()])+grain {
			continue
		}
		rest.Take(k.Site(), math.Max(0, more))
		k.Set, k.Fresh = k.Before(), false
	}
	if len(s.knobs) == 1 && s.byHost {
		s.grant.Set = s.knobs[0].Set
	}
}

// returns is how much more its instances have once they are as the site set them.
func (s *seat) returns() (more float64) {
	for i := range s.knobs {
		if k := &s.knobs[i]; k.Held.Reserves {
			more += math.Max(0, k.Before()-k.Has)
		}
	}
	return more
}

// takeTurns sets the aims of all seats that share what one host has by weight, in units, by what
// each is entitled to there, by name. scale is the part of the units that may be given. "": the
// only host.
func (r aiming) takeTurns(host string, units int, scale float64, asked []*seat, entitled map[string]float64) {
	p := r.planner
	round := overload.Round{Now: r.now, Units: units, Unit: p.cfg.Unit, Groups: p.cfg.PolicyGroups(), Stop: p.cfg.Stop, Counted: true}
	if p.traits.Sums {
		round.Policy = p.cfg.Policy
	}
	for _, s := range asked {
		m := overload.Member{Workload: s.claim(), Turn: s.turn, Entitled: entitled[s.Name] / scale, Guaranteed: s.dial.Guarantee,
			Cost: math.Inf(1), Missed: s.missed, Unknown: s.estimate.Cost == nil && s.unserved(), Waiting: s.waiting(),
			Window: s.estimate.Window.Duration()}
		m.Min = max(s.least, policy.UpUnits(s.floor(), s.of.Unit)) // without what an alert keeps
		if s.estimate.Cost != nil {
			m.Cost = *s.estimate.Cost
		}
		if !(math.Max(s.turn.Wants, s.turn.Held) > 0) {
			m.Need = s.needAt(-1)
		}
		stopped, use := s.kernel(r.now, trimtab.Throttled), s.kernel(r.now, trimtab.Usage)
		m.Stopped = stopped > 0.5
		round.Counted, round.Used = round.Counted && stopped >= 0 && use >= 0, round.Used+math.Max(use, 0)
		round.Members = append(round.Members, m)
	}
	state, what, turns := overload.Decide(p.overload[host], round)
	if p.overload[host] = state; state == (overload.State{}) {
		delete(p.overload, host)
	}
	for i, s := range asked {
		s.turn, s.divided = turns[i], what != overload.Fits
		switch {
		case what == overload.Shared:
			s.rest(entitled[s.Name], "needs do not fit; the kernel shares by entitlement")
		case what == overload.Chosen:
			s.serveInTurn(scale)
		case reserves(s):
			s.asSet("needs fit; the kernel shares")
		default:
			s.rest(entitled[s.Name], "needs fit; the kernel shares")
		}
	}
}

// kernel is what the kernel counted last of a workload; -1: it is not known of the last seconds.
func (w *workload) kernel(now time.Time, q trimtab.Quantity) float64 {
	const latest = 10 * time.Second // reports may be 5 s apart
	for _, in := range w.estimate.Inputs {
		if in.Name == string(q) && in.Missing == "" && now.Sub(w.estimate.Time)+in.Age.Duration() <= latest {
			return in.Value
		}
	}
	return -1
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
			least[s.Name] = math.Max(float64(s.lo)*s.of.Unit, s.floor())
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
func (s *seat) serveInTurn(scale float64) {
	s.solved, s.aim = true, max(int(math.Round(float64(s.turn.Slice)*scale)), min(s.turn.Slice, max(s.least, policy.UpUnits(s.floor(), s.of.Unit))))
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

// floor is the least that it is given of room that it reserves, whatever it needs; 0: it reserves
// none.
func (s *seat) floor() (sum float64) {
	for i := range s.knobs {
		if k := &s.knobs[i]; k.Held.Reserves {
			sum += k.Low
		}
	}
	return sum
}

// worth reports whether a share is to go to another amount.
func worth(s *seat, from, to float64) bool {
	return math.Abs(to-from) >= s.of.Unit && !(reserves(s) && instances.Small(from, to))
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
