package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/alternative"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/reason"
)

// problem returns the policy's problem for the allocations, without their hosts.
func (r aiming) problem(asked []*allocation.Allocation) *policy.Problem {
	p := r.planner
	prob := &policy.Problem{Units: r.left(asked), Unit: p.cfg.Unit, Groups: p.cfg.PolicyGroups(), Stop: p.cfg.Stop}
	for _, s := range asked {
		w := s.Claim()
		w.Demand = r.demanded(s)
		prob.Workloads = append(prob.Workloads, w)
	}
	return prob
}

// left returns how many units of the first resource the pool has for the allocations.
func (r *decision) left(asked []*allocation.Allocation) int {
	return max(0, policy.DownUnits(r.idle(0, r.others(asked, 0)), r.planner.cfg.Unit))
}

// solve asks the policy for targets of the free allocations selected by in; all others keep what
// they have. It sets only targets that are not set yet.
func (r aiming) solve(in func(*allocation.Allocation) bool) {
	p := r.planner
	asked, fresh := r.asked(in)
	if !fresh {
		return
	}
	prob := r.problem(asked)
	r.locate(prob, asked, r.others(asked, 0))
	answer, err := p.cfg.Policy.Solve(prob)
	if err != nil && len(prob.Hosts) > 0 {
		// This policy cannot handle hosts. Solve for the whole pool; spread cuts what exceeds a
		// host.
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
		if !s.Aim.Solved {
			s.Aim.Solved, s.Aim.Solution, s.Aim.At, s.Aim.Units, s.Aim.Binding = true, sol, i, answer.Units[i], answer.Binding[i]
		}
	}
	gap := answer.Gap()
	r.value, r.gap, r.cut = &answer.Value, &gap, r.cut || answer.Cut
}

// demanded returns the demand that the policy sees. If the pool serves needs first, this is the
// need at the mean load plus the backlog. A demand with a confidence bound is useless at a few
// requests per second, where no bound ever meets the SLO.
func (r aiming) demanded(s *allocation.Allocation) int {
	if r.planner.serves() && s.Estimate.Cost != nil {
		return min(s.NeedAt(-1)+s.Waiting(), s.Range.Hi)
	}
	return s.State.Demand
}

// asked returns the free allocations selected by in, and whether any of them has no target yet.
func (r *decision) asked(in func(*allocation.Allocation) bool) (asked []*allocation.Allocation, fresh bool) {
	for _, s := range r.allocations {
		if s.Status.Free && in(s) && (s.Aim.Kept == "" || s.CountsUp()) {
			asked = append(asked, s)
			fresh = fresh || !s.Aim.Solved
		}
	}
	return asked, fresh
}

// unsolved holds the workloads that still wait for a target, with the reason.
func (r aiming) unsolved(asked []*allocation.Allocation, err error) {
	r.planner.counts.unsolved++
	why := err.Error()
	for i := range r.planner.resources {
		if short := r.shortOf(asked, i); short != "" {
			why = short
			break
		}
	}
	whole := map[*allocation.Workload]bool{} // if one resource is unsolved, the workload is held in all
	for _, s := range asked {
		whole[s.Workload] = whole[s.Workload] || !s.Aim.Solved
	}
	for _, s := range r.allocations {
		if whole[s.Workload] {
			s.Status.Free, s.Status.Held = false, trimtab.Held{Code: codes.HeldUnsolved, Text: why}
			r.heldBack[s.Name] = s.Status.Held
		}
	}
}

// share does the same as solve for a policy that shares several resources at once.
func (r aiming) share(in func(*allocation.Allocation) bool) {
	p := r.planner
	asked, fresh := r.asked(in)
	if !fresh {
		return
	}
	q := &policy.Question{Stop: p.cfg.Stop, Groups: p.cfg.PolicyGroups()}
	at := make([]int, len(asked)) // index in q.Workloads of each allocation's workload
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
		// As in solve: ignore the hosts; spread cuts what exceeds a host.
		answer, err = p.traits.Share(q)
	}
	if err != nil {
		r.unsolved(asked, err)
		return
	}
	for i, s := range asked {
		if !s.Aim.Solved {
			s.Aim.Solved, s.Aim.Units, s.Aim.Binding = true, answer.Units[at[i]][s.Index], answer.Binding[at[i]][s.Index]
		}
	}
	r.value, r.cut = &answer.Value, r.cut || answer.Cut
}

// pooled returns the part of the problem for one resource, and sets the wants of its allocations in
// claims; at[i] is the index of asked[i]'s workload there.
func (r aiming) pooled(resource int, asked []*allocation.Allocation, at []int, claims []policy.Claim) policy.Pooled {
	of := &r.planner.resources[resource]
	others := r.others(asked, resource)
	prob := &policy.Problem{Unit: of.Unit}
	var allocations []*allocation.Allocation
	var places []int
	for i, s := range asked {
		if s.Index == resource {
			allocations, places = append(allocations, s), append(places, at[i])
			prob.Workloads = append(prob.Workloads, policy.Workload{Min: s.Range.Lo})
		}
	}
	r.locate(prob, allocations, others)
	for j, s := range allocations {
		claims[places[j]].Wants[resource] = policy.Want{Min: s.Range.Lo, Max: s.Range.Hi, Current: int(math.Round(s.Now / s.Resource.Unit)), Demand: s.State.Demand,
			Guarantee: policy.DownUnits(s.State.Guarantee, s.Resource.Unit), Parts: prob.Workloads[j].Parts}
	}
	capacity := of.Capacity
	if has := r.planner.capacity(resource); has > 0 {
		capacity = has
	}
	return policy.Pooled{Name: of.Name, Unit: of.Unit, Capacity: capacity / of.Unit,
		Units: max(0, policy.DownUnits(r.idle(resource, others), of.Unit)), Hosts: prob.Hosts}
}

// shortOf explains a shortage: it names the workloads that cannot be moved and leave less of a
// resource than the minimums of asked. "": they leave enough.
func (r aiming) shortOf(asked []*allocation.Allocation, resource int) string {
	p, of := r.planner, &r.planner.resources[resource]
	others := r.others(asked, resource)
	left := policy.DownUnits(math.Max(0, r.idle(resource, others)), of.Unit)
	var holders []reason.Holder
	for _, w := range p.workloads {
		h := reason.Holder{Name: w.Name, Open: true, Why: r.heldBack[w.Name].Text}
		for _, k := range p.ledger.Of(w.Name, of.Name) {
			h.Has += others.Of(k.Index())
			h.Open = h.Open && k.Held.Now.Unlimited
		}
		if h.Has > 0 {
			holders = append(holders, h)
		}
	}
	return reason.OfShortage(asked, of, left, p.capacity(resource), holders)
}

// maxExplained is the largest number of workloads for which actions list rejected alternatives:
// computing those of one action takes time in proportion to it.
const maxExplained = 200
