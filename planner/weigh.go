package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
)

// Where amounts are shares by weight below one limit, the kernel gives each workload its share
// at every instant at which it wants that, and what others leave idle besides. So there is
// nothing to decide while the needs fit: everybody has its entitlement, a fixed one. The same
// holds where they do not fit and the objective is about entitlements: who stays within its own
// is served whatever others want, and who asks for more has what they leave.
//
// An objective that weighs utilities decides where needs do not fit: whoever it serves has a
// share of at least its need, and whoever it does not has a crumb and what is left over. Each
// change of who is served costs a whole backlog, so one that gains little is not made.
//
// Source: the domination of quotas by weights in proportion to the same amounts, for a weighted
// max-min fair scheduler; docs/weights.md.

const (
	// worthwhile is by what part of its value an objective must gain by a change of shares.
	worthwhile = 0.15
	// crumb is the part of its entitlement that a workload keeps which is not served: enough
	// for its probes.
	crumb = 0.1
)

// weigh sets the aims of the free seats that are in where all of them share by weight, and
// reports whether it did.
func (r *decision) weigh(in func(*seat) bool) bool {
	asked, fresh := r.asked(in)
	if len(asked) == 0 || r.planner.cfg.Guard.Disabled || slices.ContainsFunc(asked, func(s *seat) bool { return !s.shared() || s.resource > 0 }) {
		return false
	}
	if !fresh {
		return true
	}
	over := r.overloaded(asked)
	if r.planner.overloaded = over; !over {
		r.planner.chosen = nil
	}
	if !over || !r.planner.traits.Weighs {
		detail := "needs fit; the kernel shares"
		if over {
			detail = "needs do not fit; the kernel shares by entitlement"
		}
		for _, s := range asked {
			s.rest(r.planner.entitlement(s), detail)
		}
		return true
	}
	r.solve(in)
	r.choose(asked)
	return true
}

// overloaded reports whether the needs of the seats are more than the pool has, by the most
// hopeful reading. An overload ends when they fit by the expected one; what waits is worked off
// by what others leave.
func (r *decision) overloaded(asked []*seat) bool {
	if slices.ContainsFunc(asked, (*seat).unserved) {
		return false // nobody knows what would be enough
	}
	others := r.others(asked, 0)
	units := max(0, policy.DownUnits(r.idle(0, others), r.planner.cfg.Unit))
	fits := r.fitter(asked, others, units)
	if !r.planner.overloaded {
		need, _ := needsAt(asked, -1)
		return !fits(need, nil)
	}
	need, _ := needsAt(asked, 0)
	return !fits(need, nil)
}

// entitlement is what a workload is guaranteed, or its part of the pool by weight, in cores.
func (p *Planner) entitlement(of *seat) float64 {
	if of.dial.Guarantee > 0 {
		return of.dial.Guarantee
	}
	all := 0.0
	for _, w := range p.workloads {
		if len(w.dials) > 0 && w.dials[0] != nil {
			all += cmp.Or(w.Weight, 1)
		}
	}
	return of.of.Capacity * cmp.Or(of.Weight, 1) / all
}

// rest has a seat keep its entitlement e, or go back to it.
func (s *seat) rest(e float64, detail string) {
	s.solved, s.served = true, true
	s.binding = trimtab.Binding{Kind: trimtab.BindingIdle, Detail: detail}
	s.aim = policy.UpUnits(s.now, s.of.Unit)
	if math.Abs(e-s.now) >= s.of.Unit {
		s.aim = min(max(int(math.Round(e/s.of.Unit)), s.lo), s.hi)
		s.binding = trimtab.Binding{Kind: trimtab.BindingNeed, Detail: detail}
		return
	}
	s.stays = true
}

// choose turns what the policy gives into shares: whoever has its need by that shares what the
// others cannot use, unless the objective loses by it. Where the gain over what they have is
// small, all stay.
func (r *decision) choose(asked []*seat) {
	sol := asked[0].in
	if sol == nil || sol.score == nil {
		return
	}
	aims := slices.Clone(sol.answer.Units)
	free, served := 0, 0
	for _, s := range asked {
		i := s.at
		if aims[i] >= s.needAt(-1) {
			served += aims[i]
			continue
		}
		least := min(max(s.lo, int(math.Ceil(crumb*r.planner.entitlement(s)/s.of.Unit))), aims[i])
		free += aims[i] - least
		aims[i] = least
	}
	free += max(0, sol.problem.Units-sum(sol.answer.Units))
	if served > 0 {
		for _, s := range asked {
			if i := s.at; sol.answer.Units[i] >= s.needAt(-1) {
				aims[i] = min(aims[i]+free*aims[i]/served, s.hi)
			}
		}
	}
	best := sol.score(sol.answer.Units)
	if value := sol.score(aims); served == 0 || value < best-1e-3*math.Abs(best) {
		aims = sol.answer.Units
	}
	if last := r.lastChoice(asked); last != nil && sol.score(last) >= best-worthwhile*math.Abs(best) {
		aims = last
	} else {
		r.planner.chosen = map[string]int{}
	}
	for _, s := range asked {
		r.planner.chosen[s.Name] = aims[s.at]
		if s.aim = aims[s.at]; math.Abs(float64(s.aim)*s.of.Unit-s.now) < s.of.Unit {
			s.stays, s.binding = true, trimtab.Binding{Kind: trimtab.BindingIdle, Detail: "needs do not fit; another division would gain little"}
		}
	}
}

// lastChoice is what was decided for these seats in this overload; nil: nothing.
func (r *decision) lastChoice(asked []*seat) []int {
	last := make([]int, len(asked))
	for _, s := range asked {
		aim, ok := r.planner.chosen[s.Name]
		if !ok {
			return nil
		}
		last[s.at] = aim
	}
	return last
}

// bounded takes from the guard what is about limits where a seat has a share by weight: a lower
// share takes nothing away that nobody else wants, and weigh changes it seldom enough.
func (s *seat) bounded(w guard.Workload) guard.Workload {
	if s.shared() && s.free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.target, s.of.Unit), guard.Move{}
	}
	return w
}
