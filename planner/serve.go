package planner

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/need"
	"github.com/trimtab/trimtab/planner/policy"
)

// If the pool has enough for all, every workload gets what it needs and a share of the leftover
// capacity (package need). While all have what they need, nothing moves. Otherwise the policy
// decides.

// urgentRound starts an early round for a workload that has less than it needs, if it misses its
// SLO, its load left the band of the forecast, or the shortfall exceeds the noise of its load. The
// first early round starts at once. While early rounds change nothing, the wait for the next one
// starts at Urgent and doubles up to a whole round.
func (p *Planner) urgentRound(now time.Time, w *allocation.Workload) []trimtab.Value {
	if w == nil || w.Estimate == nil || !p.leading || p.issue.Waits() || !p.serves() || w.Mode != trimtab.Act {
		return nil
	}
	if p.cfg.Urgent <= 0 || now.Sub(p.last) < max(p.backoff, p.cfg.Urgent) || p.issue.Paused() {
		return nil
	}
	r := &decision{planner: p, now: now}
	if r.doubt(w).Code != "" || w.Estimate.Curve == nil {
		return nil
	}
	s := r.allocationOf(w, 0)
	if len(s.Knobs) == 0 || s.Status.Held.Code != "" {
		return nil
	}
	if s.Shared() && !s.Misses() {
		return nil // it also has what others leave idle
	}
	asks := s.Asks()
	if asks.Deficit() <= 1 && (!s.Changed() || s.Now >= float64(min(asks.At(s.History.Confidence)+asks.Waiting, s.Range.Hi))*s.Resource.Unit-policy.Grain) {
		return nil
	}
	next := p.next
	p.backoff = min(max(2*p.backoff, p.cfg.Urgent), p.cfg.Round)
	out := p.round(now, trimtab.Cause{Kind: codes.CauseNeed, Workload: w.Name})
	p.next = next
	return out
}

// serves reports whether workloads get what they need before the policy is asked. It needs a policy
// that allows it, the guard, and a pool of one resource.
func (p *Planner) serves() bool {
	return p.traits.Serves && !p.cfg.Guard.Disabled && len(p.resources) == 1
}

// serve sets the targets of the free allocations selected by in from their needs, and reports
// whether the pool has enough for them.
func (r aiming) serve(in func(*allocation.Allocation) bool) bool {
	asked, fresh := r.asked(in)
	if !fresh {
		return true
	}
	if slices.ContainsFunc(asked, (*allocation.Allocation).Unserved) {
		return false
	}
	others := r.others(asked, 0)
	units := max(0, policy.DownUnits(r.idle(0, others), r.planner.cfg.Unit))
	asks := make([]need.Workload, len(asked))
	for i, s := range asked {
		asks[i] = s.Asks()
	}
	answer, enough := need.Divide(asks, units, r.fitter(asked, others, units))
	if !enough {
		return false
	}
	for i, s := range asked {
		s.Aim.Safe, s.History.Confidence = float64(answer.Need[i])*s.Resource.Unit, answer.Confidence
		s.Aim.Short, s.Aim.Deficit = answer.Short[i], asks[i].Deficit()
	}
	for i, s := range asked {
		if s.Aim.Solved {
			continue
		}
		s.Aim.Solved, s.Aim.Served, s.Aim.Units, s.Aim.Binding = true, true, answer.Aim[i], trimtab.Binding{Kind: codes.BindingNeed}
		if answer.Stays {
			s.Aim.Units, s.Aim.Binding = policy.UpUnits(s.Now, s.Resource.Unit), trimtab.Binding{Kind: codes.BindingIdle, Detail: allocation.WhyIdle(asked)}
			if lent := s.Lent(0, s.Now); lent > 0 && r.now.Sub(s.Returned) >= r.planner.cfg.Guard.Reversals() {
				back := max(policy.UpUnits(s.Now-lent, s.Resource.Unit), policy.UpUnits(s.Aim.Safe, s.Resource.Unit))
				s.Aim.Units, s.Aim.Binding = min(s.Aim.Units, back), trimtab.Binding{Kind: codes.BindingReturned, Detail: "what was lent is given back"}
			}
		}
	}
	return true
}

// fitter returns a function that reports whether the needs plus the shares of backlogs (late) fit
// into the units of the pool and of each host.
func (r aiming) fitter(asked []*allocation.Allocation, others *ledger.Counts, units int) func(need, late []int) bool {
	prob := &policy.Problem{Units: units, Unit: r.planner.cfg.Unit, Workloads: make([]policy.Workload, len(asked))}
	for i, s := range asked {
		prob.Workloads[i].Max = s.Range.Hi
	}
	r.locate(prob, asked, others)
	room := hosts.New(prob)
	return func(need, late []int) bool {
		if sum(need)+sum(late) > units || !room.Hosts() {
			return sum(need)+sum(late) <= units
		}
		left := room.Clone()
		for j, n := range need {
			left.Subtract(j, n)
		}
		for j, n := range late {
			left.Subtract(j, n)
		}
		return left.Holds()
	}
}

func sum(units []int) int {
	total := 0
	for _, u := range units {
		total += u
	}
	return total
}
