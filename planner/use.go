package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// advise adapts recommendations to the measured CPU use. A workload without a limit is recommended
// one. A workload that uses little of its limit is not recommended a higher one.
func (r *decision) advise() {
	for _, s := range r.allocations {
		if s.Index != 0 || s.Of.Name != trimtab.CPU || s.Mode != trimtab.Recommend || !s.Free {
			continue
		}
		none := s.Knobs.Unlimited()
		if none {
			s.Grant.Set = s.Now // its performance below this was never observed
		}
		seen := s.Use.Day(r.now)
		if !seen.Advises(s.SLO, s.Estimate.Performance) {
			if none {
				s.Without = seen.Awaits(s.SLO)
			}
			continue
		}
		units := max(policy.UpUnits(seen.Limit(s.Coming()), s.Of.Unit), s.Lo)
		limit, stays := float64(units)*s.Of.Unit, math.Abs(s.Grant.Set-s.Now) < s.Of.Unit/2
		switch {
		case none && stays && units < s.Hi:
			s.Grant.Set, s.Limit = limit, limit
		case !none && s.Grant.Set > s.Now && limit <= s.Now:
			s.Grant.Set = s.Now
		}
	}
}
