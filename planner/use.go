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
		if s.Index != 0 || s.Resource.Name != trimtab.CPU || s.Mode != trimtab.Recommend || !s.Status.Free {
			continue
		}
		none := s.Knobs.Unlimited()
		if none {
			s.Step.Set = s.Now // its performance below this was never observed
		}
		seen := s.History.Use.Day(r.now)
		if !seen.Advises(s.SLO, s.Estimate.Performance) {
			if none {
				s.Notes.Without = seen.Awaits(s.SLO)
			}
			continue
		}
		units := max(policy.UpUnits(seen.Limit(s.Coming()), s.Resource.Unit), s.Range.Lo)
		limit, stays := float64(units)*s.Resource.Unit, math.Abs(s.Step.Set-s.Now) < s.Resource.Unit/2
		switch {
		case none && stays && units < s.Range.Hi:
			s.Step.Set, s.Notes.Limit = limit, limit
		case !none && s.Step.Set > s.Now && limit <= s.Now:
			s.Step.Set = s.Now
		}
	}
}
