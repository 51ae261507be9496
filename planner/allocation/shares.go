package allocation

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/quantity"
)

// AsSet has the instances of an allocation that reserves room be as the site set them.
func (s *Allocation) AsSet(detail string) {
	s.Solved, s.Served, s.Stays, s.ByHost = true, true, true, true
	s.Aim, s.Binding = policy.UpUnits(s.Now, s.Of.Unit), trimtab.Binding{Kind: codes.BindingIdle, Detail: detail}
	for i := range s.Knobs {
		k := &s.Knobs[i]
		if k.Hosted = (instances.Hosted{Aim: k.Has}); k.Held.Reserves {
			k.Aim = k.Before()
		}
	}
}

// GoBack has the instances of an allocation go back to what the site set, once there is as much.
func (s *Allocation) GoBack(rest *ledger.Rest) {
	for i := range s.Knobs {
		k := &s.Knobs[i]
		more := k.Before() - k.Has
		if !k.Held.Reserves || k.Stuck || more > rest.Idle+policy.Grain && more > 0 || k.Bounded(rest.Room) && more > math.Max(0, rest.Room[k.Site()])+policy.Grain {
			continue
		}
		rest.Take(k.Site(), math.Max(0, more))
		k.Set, k.Fresh = k.Before(), false
	}
	if len(s.Knobs) == 1 && s.ByHost {
		s.Grant.Set = s.Knobs[0].Set
	}
}

// Returns is how much more its instances have once they are as the site set them.
func (s *Allocation) Returns() (more float64) {
	for i := range s.Knobs {
		if k := &s.Knobs[i]; k.Held.Reserves {
			more += math.Max(0, k.Before()-k.Has)
		}
	}
	return more
}

// Member is it as package overload sees it, by what it is entitled to. What the kernel counted
// longer ago than stale is not known.
func (s *Allocation) Member(now time.Time, stale time.Duration, entitled float64) overload.Member {
	latest := func(q quantity.Quantity) float64 {
		if in := inputOf(s.Estimate, q); in != nil && now.Sub(s.Estimate.Time)+in.Age.Duration() <= stale {
			return in.Value
		}
		return -1
	}
	m := overload.Member{Workload: s.Claim(), Turn: s.Turn, Entitled: entitled, Guaranteed: s.State.Guarantee,
		Cost: math.Inf(1), Missed: s.Missed, Unknown: s.Estimate.Cost == nil && s.Unserved(), Waiting: s.Waiting(),
		Window: s.Estimate.Window.Duration(), Used: latest(quantity.Usage)}
	// Where no limit stops it, others on the host may use what the pool was promised: its threads
	// wait for a CPU longer than they run.
	if stopped := latest(quantity.Throttled); stopped < 0 {
		m.Used = -1
	} else {
		m.Stopped = stopped > 0.5 || stopped < 0.02 && latest(quantity.Waited) > m.Used
	}
	m.Min = max(s.least, policy.UpUnits(s.Floor(), s.Of.Unit)) // without what an alert keeps
	if s.Estimate.Cost != nil {
		m.Cost = *s.Estimate.Cost
	}
	if !(math.Max(s.Turn.Wants, s.Turn.Held) > 0) {
		m.Need = s.NeedAt(-1)
	}
	return m
}

// ReportOf is what an estimate tells of a workload in an overload. Its load is that of the
// report: what was used since tells of a backlog that is worked off.
func ReportOf(e *trimtab.Estimate, slo float64) overload.Report {
	out := overload.Report{Time: e.Time, Performance: e.Performance, SLO: slo, Costs: -1}
	load := -1.0
	if in := inputOf(e, quantity.Load); in != nil && in.Value >= 0 {
		load = in.Value
	} else if e.Load != nil {
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

// Rest has an allocation keep its entitlement e, or go back to it.
func (s *Allocation) Rest(e float64, detail string) {
	s.Solved, s.Served = true, true
	s.Binding = trimtab.Binding{Kind: codes.BindingIdle, Detail: detail}
	s.Aim = policy.UpUnits(s.Now, s.Of.Unit)
	if worth(s, s.Now, e) {
		s.Aim = min(max(int(math.Round(e/s.Of.Unit)), s.Lo), s.Hi)
		s.Binding = trimtab.Binding{Kind: codes.BindingNeed, Detail: detail}
		return
	}
	s.Stays = true
}

// ServeInTurn has an allocation go to the share of its turn.
func (s *Allocation) ServeInTurn(scale float64) {
	s.Solved, s.Aim = true, max(int(math.Round(float64(s.Turn.Slice)*scale)), min(s.Turn.Slice, max(s.least, policy.UpUnits(s.Floor(), s.Of.Unit))))
	detail := "needs do not fit; it has what those leave who are served"
	if s.Turn.Rank > 0 {
		detail = fmt.Sprintf("needs do not fit; it is served, number %d in turn", s.Turn.Rank)
	}
	s.Binding = trimtab.Binding{Kind: codes.BindingCapacity, Detail: detail}
	if s.Stays = !worth(s, s.Now, float64(s.Aim)*s.Of.Unit); s.Stays {
		s.Aim = policy.UpUnits(s.Now, s.Of.Unit)
	}
}

// Capped reports whether a share is to be a limit, too: of who is not served, while others are.
// By its weight alone it would use the limit of all up on CPUs on which those do not work.
func (s *Allocation) Capped(k *instances.Instance) bool {
	return s.Shared() && s.Free && !k.Held.Reserves && (s.Turn.Capped || k.Capped)
}

// Reserves reports whether what it has is room on machines, too.
func Reserves(s *Allocation) bool {
	return slices.ContainsFunc(s.Knobs, func(i instances.Instance) bool { return i.Held.Reserves })
}

// Floor is the least that it is given of room that it reserves, whatever it needs; 0: it reserves
// none.
func (s *Allocation) Floor() (sum float64) {
	for i := range s.Knobs {
		if k := &s.Knobs[i]; k.Held.Reserves {
			sum += k.Low
		}
	}
	return sum
}

// worth reports whether a share is to go to another amount.
func worth(s *Allocation, from, to float64) bool {
	return math.Abs(to-from) >= s.Of.Unit && !(Reserves(s) && instances.Small(from, to))
}

// Recaps reports whether a knob is to be capped that is not, or the other way round.
func (s *Allocation) Recaps(k *instances.Instance) bool {
	return k.Held.Shared && k.Held.Capped != s.Capped(k)
}

// Bounded takes out of a wish to the guard what is meant for quotas, where it has a share
// by weight: a lower share takes away only what somebody else wants.
func (s *Allocation) Bounded(w guard.Workload) guard.Workload {
	if s.Shared() && s.Free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.Target, s.Of.Unit), guard.Move{}
	}
	return w
}

// Settle sets what the instances of an allocation whose shares were decided are to have.
func (s *Allocation) Settle() {
	s.Evens = false
	if s.Knobs.Settle(); len(s.Knobs) == 1 {
		s.Grant.Set = s.Knobs[0].Set
	}
}
