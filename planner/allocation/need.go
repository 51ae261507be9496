package allocation

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/measured"
	"github.com/trimtab/trimtab/planner/need"
	"github.com/trimtab/trimtab/planner/policy"
)

// drain is the time, in seconds, within which a backlog is to be worked off.
const drain = 10.0

// Asks returns its input for package need.
func (s *Allocation) Asks() need.Workload {
	floor, _ := s.History.Judge.Floor()
	return need.Workload{Curve: s.Estimate.Curve, Load: s.Estimate.Load, SLO: s.SLO, Has: s.Now, Unit: s.Resource.Unit, Min: s.Range.Lo, Max: s.Range.Hi, Easy: s.Range.easy,
		Least: floor, Starves: s.Starves(), Waiting: s.Waiting(), Enough: s.slack(), Known: s.Estimate.Reports >= FewReports || s.Misses()}
}

// NeedAt returns its need at a confidence in [−1, 1], in units and without its backlog: see package
// need.
func (s *Allocation) NeedAt(confidence float64) int {
	asks := s.Asks()
	return asks.At(confidence)
}

// Unserved reports whether no amount is known to be enough: by its curve none is expected to meet
// the SLO, and the cost of a request is unknown. If the cost is known and the SLO is never met,
// something else than this resource is missing.
func (s *Allocation) Unserved() bool {
	return s.Estimate.Cost == nil && s.Curve.Eval(float64(s.Range.Hi)*s.Resource.Unit).Mean < s.SLO
}

// Waiting returns the units that drain its backlog within the time drain. If the backlog is not
// measured and its limit has stopped it for some time, Waiting guesses from how long that was.
func (s *Allocation) Waiting() int {
	e := s.Estimate
	switch b := e.Backlog; {
	case s.Starves() && b != nil:
		return max(policy.UpUnits(*b/drain, s.Resource.Unit), s.hungry())
	case s.Starves():
		return s.hungry()
	case b != nil:
		return policy.UpUnits(*b/drain, s.Resource.Unit)
	case e.Allocation != nil && e.Stopped > 1:
		return policy.UpUnits(math.Min(growing*float64(e.Stopped), growth)**e.Allocation, s.Resource.Unit)
	}
	return 0
}

// growing is the guess by which fraction of its allocation a workload needs more for each second
// that its limit stops it. growth is the largest fraction that is guessed.
const growing, growth = 0.1, 0.5

// WhyIdle returns why no allocation changes, if by the curves all workloads have what they need.
func WhyIdle(asked []*Allocation) string {
	switch { // a workload that lacks something explains it
	case slices.ContainsFunc(asked, (*Allocation).Starves):
		return "there is no more for who waits"
	case slices.ContainsFunc(asked, func(s *Allocation) bool { return measured.Late(s.Estimate, s.SLO) != "" }):
		return "nobody is expected to gain from more"
	}
	return "everybody has what it needs"
}

// FewReports is the number of reports from which a need must be learned before it may move capacity
// while all SLOs are met.
const FewReports = 8

// slack is the fraction of its need at which a workload counts as having enough. Without a
// measured backlog, load and need come from rates over longer windows, and their noise must
// cause no moves: 85%, tuned with `trimtab-lab sim services`. While it misses its SLO or an
// alert fires, it is the whole need.
func (s *Allocation) slack() float64 {
	if s.Estimate.Backlog == nil && !s.Misses() && !s.Firing() {
		return 0.85
	}
	return 1
}

// Demand updates the demand as the policy sees it (Cilantro, equation 6).
func (s *Allocation) Demand(beta float64) {
	u := s.Resource.Unit
	s.Range.Need = policy.DemandOf(s.Curve, s.SLO, u, min(s.Range.least, s.Range.Hi), s.Range.Hi)
	before := s.State.Demand
	if !s.State.knowsDemand {
		before = int(math.Round(s.Now / u))
	}
	s.State.Demand = min(max(s.Range.Need.Recommend(beta, before, s.Resource.Step), s.Range.Lo), s.Range.Hi)
	s.State.knowsDemand = true
}

// Claim returns its input for a policy, without its demand.
func (s *Allocation) Claim() policy.Workload {
	return policy.Workload{Name: s.Name, Group: s.Group, Guarantee: policy.DownUnits(s.State.Guarantee, s.Resource.Unit), Weight: s.Weight, Min: s.Range.Lo, Max: s.Range.Hi,
		Current: int(math.Round(s.Now / s.Resource.Unit)), Curve: s.Curve, Reports: s.Estimate.Reports, SLO: s.SLO, Utility: s.Utility, Worth: s.Worth}
}

// Coming returns the upper bound of its expected load, in requests per second; 0: unknown.
func (s *Allocation) Coming() float64 {
	if l := s.Estimate.Load; l != nil {
		return l.Upper
	}
	return 0
}
