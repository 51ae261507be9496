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

// AsSet makes what is due the targets of an allocation's reservations; other instances stay.
func (s *Allocation) AsSet(detail string) {
	s.Aim.Solved, s.Aim.Served, s.Aim.Stays, s.Aim.ByHost = true, true, true, true
	s.Aim.Units, s.Aim.Binding = policy.UpUnits(s.Now, s.Resource.Unit), trimtab.Binding{Kind: codes.BindingIdle, Detail: DueSince(s, detail, true)}
	for i := range s.Knobs {
		k := &s.Knobs[i]
		if k.Hosted = (instances.Hosted{Aim: k.Has}); k.Held.Reserves {
			k.Aim = Due(s, k)
		}
	}
}

// Due returns what a reservation is to be while the needs fit: the site's amount, and without load the
// least that it may have.
func Due(s *Allocation, k *instances.Instance) float64 {
	if unasked(s) {
		return math.Min(k.Before(), math.Max(s.State.Min, k.Low))
	}
	return k.Before()
}

// DueSince returns why an allocation has what is due, if the needs fit.
func DueSince(s *Allocation, fits string, fit bool) string {
	if fit && Reserves(s) && unasked(s) {
		return "it has no load"
	}
	return fits
}

// unasked reports whether its load is measured as 0, and that decides what its reservations are.
func unasked(s *Allocation) bool {
	return s.Status.Free && s.Aim.Kept == "" && s.Estimate.Fallback == codes.ByIdleness && s.Estimate.Hold == nil
}

// Unknown reports whether nothing was known of the workload for a time.
func Unknown(s *Allocation, now time.Time, long time.Duration) bool {
	return !s.Status.Free && s.Knobs[0].Held.Problem == "" && now.Sub(s.Fresh) >= long && !s.Knobs.Unlimited()
}

// Regain has reservations go back up to what the site set, if nothing was known of the workload for a
// time.
func Regain(s *Allocation, now time.Time, long time.Duration) {
	if Reserves(s) && Unknown(s, now, long) && s.Returns() > 0 {
		s.Aim.Kept = "what the site set comes back, since nothing is known of it"
	}
}

// GoBack sets the instances of an allocation back to the site's amounts, as far as rest has
// capacity for that.
func (s *Allocation) GoBack(rest *ledger.Rest) {
	for i := range s.Knobs {
		k := &s.Knobs[i]
		more := k.Before() - k.Has
		if !k.Held.Reserves || k.Stuck || more < 0 && !s.Status.Free || more > rest.Idle+policy.Grain && more > 0 || k.Bounded(rest.Headroom) && more > math.Max(0, rest.Headroom[k.Site()])+policy.Grain {
			continue
		}
		rest.Subtract(k.Site(), math.Max(0, more))
		k.Set, k.Fresh = k.Before(), false
	}
	if len(s.Knobs) == 1 && s.Aim.ByHost {
		s.Step.Set = s.Knobs[0].Set
	}
}

// Returns returns how much more its instances will have once they are back at the site's amounts.
func (s *Allocation) Returns() (more float64) {
	for i := range s.Knobs {
		if k := &s.Knobs[i]; k.Held.Reserves {
			more += math.Max(0, k.Before()-k.Has)
		}
	}
	return more
}

// Member returns the allocation as package overload sees it. entitled is its entitlement in cores.
// Counts of the kernel that are older than stale count as unknown.
func (s *Allocation) Member(now time.Time, stale time.Duration, entitled float64) overload.Member {
	latest := func(q quantity.Quantity) float64 {
		if in := inputOf(s.Estimate, q); in != nil && now.Sub(s.Estimate.Time)+in.Age.Duration() <= stale {
			return in.Value
		}
		return -1
	}
	m := overload.Member{Workload: s.Claim(), State: s.Overload, Entitled: entitled,
		Cost: math.Inf(1), Missed: s.Missed, Unknown: s.Estimate.Cost == nil && s.Unserved(), Waiting: s.Waiting(),
		Window: s.Estimate.Window.Duration(), Used: latest(quantity.Usage)}
	// Even where no limit stops it, others on the host may use the CPU that the pool was promised.
	// Its threads then wait for a CPU longer than they run.
	if stopped := latest(quantity.Throttled); stopped < 0 {
		m.Used = -1
	} else {
		m.Stopped = stopped > 0.5 || stopped < 0.02 && latest(quantity.Waited) > m.Used
	}
	// Like a quota, a gate that refuses its requests hides how much it wants.
	m.Stopped = m.Stopped || s.Estimate.Shed() > 0 || s.Overload.Partial && m.Used > limited*float64(s.Overload.Slice)*s.Resource.Unit
	m.Min = max(s.Range.least, policy.UpUnits(s.Floor(), s.Resource.Unit)) // without the part that a firing alert keeps
	if s.Estimate.Cost != nil {
		m.Cost = *s.Estimate.Cost
	}
	if !(math.Max(s.Overload.Wants, s.Overload.Held) > 0) {
		m.Need = s.NeedAt(-1)
	}
	return m
}

// limited is the fraction of its share above which a workload whose requests are limited counts as
// stopped by that limit.
const limited = 0.8

// ReportOf returns an estimate as a report for package overload. Its load is that of the report:
// use measured since then may come from a backlog that is worked off.
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
	if load > 0 {
		out.Refused, out.Important = math.Min(1, e.Shed()/load), math.Min(1, e.Refused[codes.MostImportant]/load)
	}
	switch {
	case e.Backlog != nil:
		out.Late = *e.Backlog / drain
	case e.Stopped > 1: // answers are only as many as the limit lets through
		out.Hidden = math.Min(growing*float64(e.Stopped), growth)
	}
	return out
}

// Rest keeps an allocation at its entitlement e, or moves it back there.
func (s *Allocation) Rest(e float64, detail string) {
	s.Aim.Solved, s.Aim.Served = true, true
	s.Aim.Binding = trimtab.Binding{Kind: codes.BindingIdle, Detail: detail}
	s.Aim.Units = policy.UpUnits(s.Now, s.Resource.Unit)
	if worth(s, s.Now, e) {
		s.Aim.Units = min(max(int(math.Round(e/s.Resource.Unit)), s.Range.Lo), s.Range.Hi)
		s.Aim.Binding = trimtab.Binding{Kind: codes.BindingNeed, Detail: detail}
		return
	}
	s.Aim.Stays = true
}

// ServeInTurn sets the target of an allocation to its share in the overload. scale is the fraction of
// the CPU that may be given.
func (s *Allocation) ServeInTurn(scale float64) {
	s.Aim.Solved, s.Aim.Units = true, max(int(math.Round(float64(s.Overload.Slice)*scale)), min(s.Overload.Slice, max(s.Range.least, policy.UpUnits(s.Floor(), s.Resource.Unit))))
	detail := "needs do not fit; it has what those leave who are served"
	switch {
	case s.Overload.Partial:
		detail = "needs do not fit; requests beyond its share are refused before it"
	case s.Overload.Admitted:
		detail = "needs do not fit; it has what its requests want, and others refuse requests"
	case s.Overload.Rank > 0:
		detail = fmt.Sprintf("needs do not fit; it is served, number %d in turn", s.Overload.Rank)
	}
	s.Aim.Binding = trimtab.Binding{Kind: codes.BindingCapacity, Detail: detail}
	if s.Aim.Stays = !worth(s, s.Now, float64(s.Aim.Units)*s.Resource.Unit); s.Aim.Stays {
		s.Aim.Units = policy.UpUnits(s.Now, s.Resource.Unit)
	}
}

// Capped reports whether the share is also to be a limit. It is for a workload that is not served while
// others are: by weight alone it would use up the common limit on CPUs on which the served workloads do
// not run.
func (s *Allocation) Capped(k *instances.Instance) bool {
	return s.Shared() && s.Status.Free && !k.Held.Reserves && (s.Overload.Capped || k.Capped)
}

// Reserves reports whether its amounts are also reservations on the nodes, as CPU requests in a
// cluster are.
func Reserves(s *Allocation) bool {
	return slices.ContainsFunc(s.Knobs, func(i instances.Instance) bool { return i.Held.Reserves })
}

// Floor returns the least that its reservations may be lowered to, whatever it needs; 0: it has
// none.
func (s *Allocation) Floor() (sum float64) {
	for i := range s.Knobs {
		if k := &s.Knobs[i]; k.Held.Reserves {
			sum += k.Low
		}
	}
	return sum
}

// worth reports whether the difference between two shares is worth a change.
func worth(s *Allocation, from, to float64) bool {
	return math.Abs(to-from) >= s.Resource.Unit && !(Reserves(s) && instances.Small(from, to))
}

// Recaps reports whether a knob has a cap and should not, or the other way round.
func (s *Allocation) Recaps(k *instances.Instance) bool {
	return k.Held.Shared && k.Held.Capped != s.Capped(k)
}

// Bounded removes the rules for quotas from the guard's input if it shares CPU by weight: a lower
// share only takes what other workloads want.
func (s *Allocation) Bounded(w guard.Workload) guard.Workload {
	if s.Shared() && s.Status.Free {
		w.Harms, w.Safe, w.Last = false, math.Max(s.Step.Target, s.Resource.Unit), guard.Move{}
	}
	return w
}

// Settle sets the amounts of its instances, if their shares were decided host by host.
func (s *Allocation) Settle() {
	s.Notes.Evens = false
	if s.Knobs.Settle(); len(s.Knobs) == 1 {
		s.Step.Set = s.Knobs[0].Set
	}
}
