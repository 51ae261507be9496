package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/alternative"
	"github.com/trimtab/trimtab/planner/policy"
)

// demand updates the recommended demand (equation 6).
func (s *seat) demand(beta float64) {
	u := s.of.Unit
	s.need = policy.DemandOf(s.curve, s.SLO, u, min(s.least, s.hi), s.hi)
	before := s.dial.demand
	if !s.dial.knowsDemand {
		before = int(math.Round(s.now / u))
	}
	s.dial.demand = min(max(s.need.Recommend(beta, before, s.of.Step), s.lo), s.hi)
	s.dial.knowsDemand = true
}

// problem is what the policy is asked about the seats, without hosts.
func (r aiming) problem(asked []*seat) *policy.Problem {
	p := r.planner
	prob := &policy.Problem{Units: r.left(asked), Unit: p.cfg.Unit, Groups: p.cfg.PolicyGroups(), Stop: p.cfg.Stop}
	for _, s := range asked {
		w := s.claim()
		w.Demand = r.demanded(s)
		prob.Workloads = append(prob.Workloads, w)
	}
	return prob
}

// claim is what a policy is told of the seat, but for its demand.
func (s *seat) claim() policy.Workload {
	return policy.Workload{Name: s.Name, Group: s.Group, Guarantee: policy.DownUnits(s.dial.Guarantee, s.of.Unit), Weight: s.Weight, Min: s.lo, Max: s.hi,
		Current: int(math.Round(s.now / s.of.Unit)), Curve: s.curve, Reports: s.estimate.Reports, SLO: s.SLO, Utility: s.Utility, Worth: s.Worth}
}

// left is what the pool has for the seats, in units.
func (r *decision) left(asked []*seat) int {
	return max(0, policy.DownUnits(r.idle(0, r.others(asked, 0)), r.planner.cfg.Unit))
}

// solve asks the policy about the free workloads that are in; all others keep
// what they may hold. It sets the aim of those that were not asked about yet.
func (r aiming) solve(in func(*seat) bool) {
	p := r.planner
	asked, fresh := r.asked(in)
	if !fresh {
		return
	}
	prob := r.problem(asked)
	r.locate(prob, asked, r.others(asked, 0))
	answer, err := p.cfg.Policy.Solve(prob)
	if err != nil && len(prob.Hosts) > 0 {
		// It knows no hosts: the pool goes on, and what a host cannot hold is cut there.
		prob.Hosts = nil
		for j := range prob.Workloads {
			prob.Workloads[j].Parts = nil
		}
		answer, err = p.cfg.Policy.Solve(prob)
	}
	if err != nil {
		r.unsolved(asked, err)
		return
	}
	sol := &alternative.Solution{Problem: prob, Answer: answer}
	if score := p.traits.Scorer; score != nil && len(asked) <= maxExplained {
		sol.Score = score(prob)
	}
	for i, s := range asked {
		if !s.solved {
			s.solved, s.in, s.at, s.aim, s.binding = true, sol, i, answer.Units[i], answer.Binding[i]
		}
	}
	gap := answer.Gap()
	r.value, r.gap, r.cut = &answer.Value, &gap, r.cut || answer.Cut
}

// demanded returns the demand that the policy is told: what the workload needs
// at its mean load, where the pool is planned for by need. A demand that is
// certain to be enough is of no use at a few requests per second, where no
// bound ever meets the SLO.
func (r aiming) demanded(s *seat) int {
	if r.planner.serves() && s.estimate.Cost != nil {
		return min(s.needAt(-1)+s.waiting(), s.hi)
	}
	return s.dial.demand
}

// asked returns the free seats that are in, and whether any of them has no aim
// yet.
func (r *decision) asked(in func(*seat) bool) (asked []*seat, fresh bool) {
	for _, s := range r.seats {
		if s.free && in(s) && (s.kept == "" || s.countsUp()) {
			asked = append(asked, s)
			fresh = fresh || !s.solved
		}
	}
	return asked, fresh
}

// unsolved holds those that wait for an aim.
func (r aiming) unsolved(asked []*seat, err error) {
	r.planner.counts.Unsolved++
	why := err.Error()
	for i := range r.planner.resources {
		if short := r.shortOf(asked, i); short != "" {
			why = short
			break
		}
	}
	for _, s := range asked {
		if !s.solved {
			s.free, s.held = false, trimtab.Held{Code: trimtab.HeldUnsolved, Text: why}
			r.heldBack[s.Name] = s.held
		}
	}
}

// share is solve for a policy that shares several resources at once.
func (r aiming) share(in func(*seat) bool) {
	p := r.planner
	asked, fresh := r.asked(in)
	if !fresh {
		return
	}
	q := &policy.Question{Stop: p.cfg.Stop, Groups: p.cfg.PolicyGroups()}
	at := make([]int, len(asked)) // the place of each seat's workload in q
	for i, s := range asked {
		if n := len(q.Workloads); n == 0 || q.Workloads[n-1].Name != s.Name {
			q.Workloads = append(q.Workloads, policy.Claim{Name: s.Name, Group: s.Group, Weight: s.Weight, Wants: make([]policy.Want, len(p.resources))})
		}
		at[i] = len(q.Workloads) - 1
	}
	for i := range p.resources {
		q.Resources = append(q.Resources, r.pooled(i, asked, at, q.Workloads))
	}
	answer, err := p.traits.Share(q)
	if err != nil && q.Unlocate() {
		// As in solve: the pool goes on, and what a host cannot hold is cut there.
		answer, err = p.traits.Share(q)
	}
	if err != nil {
		r.unsolved(asked, err)
		return
	}
	for i, s := range asked {
		if !s.solved {
			s.solved, s.aim, s.binding = true, answer.Units[at[i]][s.resource], answer.Binding[at[i]][s.resource]
		}
	}
	r.value, r.cut = &answer.Value, r.cut || answer.Cut
}

// pooled returns one resource of a question about seats, and sets what their
// workloads, at the given places, want of it.
func (r aiming) pooled(resource int, asked []*seat, at []int, claims []policy.Claim) policy.Pooled {
	of := &r.planner.resources[resource]
	others := r.others(asked, resource)
	prob := &policy.Problem{Unit: of.Unit}
	var seats []*seat
	var places []int
	for i, s := range asked {
		if s.resource == resource {
			seats, places = append(seats, s), append(places, at[i])
			prob.Workloads = append(prob.Workloads, policy.Workload{Min: s.lo})
		}
	}
	r.locate(prob, seats, others)
	for j, s := range seats {
		claims[places[j]].Wants[resource] = policy.Want{Min: s.lo, Max: s.hi, Current: int(math.Round(s.now / s.of.Unit)), Demand: s.dial.demand,
			Guarantee: policy.DownUnits(s.dial.Guarantee, s.of.Unit), Parts: prob.Workloads[j].Parts}
	}
	capacity := of.Capacity
	if has := r.planner.capacity(resource); has > 0 {
		capacity = has
	}
	return policy.Pooled{Name: of.Name, Unit: of.Unit, Capacity: capacity / of.Unit,
		Units: max(0, policy.DownUnits(r.idle(resource, others), of.Unit)), Hosts: prob.Hosts}
}

// shortOf says which workloads, that cannot be moved, leave less of a resource than those that
// are asked about must have; "": they leave enough.
func (r aiming) shortOf(asked []*seat, resource int) string {
	p, of := r.planner, &r.planner.resources[resource]
	others := r.others(asked, resource)
	left := policy.DownUnits(math.Max(0, r.idle(resource, others)), of.Unit)
	var holders []holder
	for _, w := range p.workloads {
		h := holder{name: w.Name, open: true, why: r.heldBack[w.Name].Text}
		for _, k := range p.ledger.Of(w.Name, of.Name) {
			h.has += others.Of(k.Place())
			h.open = h.open && k.Held.Now.Unlimited
		}
		if h.has > 0 {
			holders = append(holders, h)
		}
	}
	return shortage(asked, of, left, p.capacity(resource), holders)
}
