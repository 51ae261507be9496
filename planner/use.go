package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// advise changes two recommendations of the policy by what workloads were seen to
// use: a workload without a limit is recommended one, and a workload that uses
// little of its limit is not recommended a higher one.
func (r *decision) advise() {
	for _, s := range r.seats {
		if s.resource != 0 || s.of.Name != trimtab.CPU || s.Mode != trimtab.Recommend || !s.free {
			continue
		}
		none := s.knobs.Unlimited()
		if none {
			s.grant.Set = s.now // how it does with less was never seen
		}
		seen := s.use.Day(r.now)
		if !seen.Advises(s.SLO, s.estimate.Performance) {
			if none {
				s.without = seen.Awaits(s.SLO)
			}
			continue
		}
		units := max(policy.UpUnits(seen.Limit(s.coming()), s.of.Unit), s.lo)
		limit, stays := float64(units)*s.of.Unit, math.Abs(s.grant.Set-s.now) < s.of.Unit/2
		switch {
		case none && stays && units < s.hi:
			s.grant.Set, s.limit = limit, limit
		case !none && s.grant.Set > s.now && limit <= s.now:
			s.grant.Set = s.now
		}
	}
}

// coming is the load to come, by its upper bound; 0: not known.
func (s *seat) coming() float64 {
	if l := s.estimate.Load; l != nil {
		return l.Upper
	}
	return 0
}

// limitReason says why a workload without a limit is recommended one.
func (r telling) limitReason(s *seat, why trimtab.Reason) trimtab.Reason {
	seen := s.use.Day(r.now)
	why.Target, why.Binding.Kind = &s.limit, trimtab.BindingUse
	why.Summary = seen.Why(s.limit, s.coming(), s.SLO)
	return why
}
