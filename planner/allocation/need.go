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

// Asks is what is known of what it needs.
func (s *Allocation) Asks() need.Workload {
	floor, _ := s.Judge.Floor()
	return need.Workload{Curve: s.Estimate.Curve, Load: s.Estimate.Load, SLO: s.SLO, Has: s.Now, Unit: s.Of.Unit, Min: s.Lo, Max: s.Hi, Easy: s.easy,
		Least: floor, Starves: s.Starves(), Waiting: s.Waiting(), Enough: s.slack(), Known: s.Estimate.Reports >= FewReports || s.Misses()}
}

// NeedAt is what it needs at a confidence, in units, but for its backlog.
func (s *Allocation) NeedAt(confidence float64) int {
	asks := s.Asks()
	return asks.At(confidence)
}

// Unserved reports whether nothing is known of what would be enough: no
// allocation is expected to meet the SLO by what was seen alone. What a request
// costs tells more: with it, one that never meets its SLO lacks something else.
func (s *Allocation) Unserved() bool {
	return s.Estimate.Cost == nil && s.Curve.Eval(float64(s.Hi)*s.Of.Unit).Mean < s.SLO
}

// Waiting returns the units that drain the backlog in time. Where nobody knows
// what waits and its limit has stopped it for some time, so much is asked of it
// beyond what it had as is guessed from how long that was.
func (s *Allocation) Waiting() int {
	e := s.Estimate
	switch b := e.Backlog; {
	case s.Starves() && b != nil:
		return max(policy.UpUnits(*b/drain, s.Of.Unit), s.hungry())
	case s.Starves():
		return s.hungry()
	case b != nil:
		return policy.UpUnits(*b/drain, s.Of.Unit)
	case e.Allocation != nil && e.Stopped > 1:
		return policy.UpUnits(math.Min(growing*float64(e.Stopped), growth)**e.Allocation, s.Of.Unit)
	}
	return 0
}

// growing is by what part of what it has a workload is guessed to need more for
// each second that its limit stops it, and growth the most that is guessed.
const growing, growth = 0.1, 0.5

// WhyIdle is why nobody is moved where nobody has less than it needs by the curves.
func WhyIdle(asked []*Allocation) string {
	switch { // who lacks something says what
	case slices.ContainsFunc(asked, (*Allocation).Starves):
		return "there is no more for who waits"
	case slices.ContainsFunc(asked, func(s *Allocation) bool { return measured.Late(s.Estimate, s.SLO) != "" }):
		return "nobody is expected to gain from more"
	}
	return "everybody has what it needs"
}

// FewReports is how many reports a need must be learnt from before it may move capacity
// while every SLO is met.
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

// Demand updates the recommended demand (equation 6).
func (s *Allocation) Demand(beta float64) {
	u := s.Of.Unit
	s.Need = policy.DemandOf(s.Curve, s.SLO, u, min(s.least, s.Hi), s.Hi)
	before := s.State.Demand
	if !s.State.knowsDemand {
		before = int(math.Round(s.Now / u))
	}
	s.State.Demand = min(max(s.Need.Recommend(beta, before, s.Of.Step), s.Lo), s.Hi)
	s.State.knowsDemand = true
}

// Claim is what a policy is told of it, but for its demand.
func (s *Allocation) Claim() policy.Workload {
	return policy.Workload{Name: s.Name, Group: s.Group, Guarantee: policy.DownUnits(s.State.Guarantee, s.Of.Unit), Weight: s.Weight, Min: s.Lo, Max: s.Hi,
		Current: int(math.Round(s.Now / s.Of.Unit)), Curve: s.Curve, Reports: s.Estimate.Reports, SLO: s.SLO, Utility: s.Utility, Worth: s.Worth}
}

// Coming is the load to come, by its upper bound; 0: not known.
func (s *Allocation) Coming() float64 {
	if l := s.Estimate.Load; l != nil {
		return l.Upper
	}
	return 0
}
