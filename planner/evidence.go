package planner

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/verdict"
)

// utility returns the utility that is expected at an allocation.
func (s *seat) utility(allocation float64) float64 {
	return s.clamped(s.curve.Eval(allocation).Mean)
}

// clamped is its utility at a performance.
func (s *seat) clamped(performance float64) float64 {
	v := s.Utility(performance)
	if !(v > 0) {
		return 0
	}
	return min(v, 1)
}

// misses reports whether the reports miss the SLO beyond their noise: two in a
// row, since requests fail together, or one where work waits or where a report is
// of a longer time.
func (s *seat) misses() bool {
	e := s.estimate
	if s.starves() {
		return true
	}
	if e == nil || e.Backlog == nil || *e.Backlog > waits*s.now {
		return s.missed > 0
	}
	return s.missed > 1
}

// starves reports whether its limit starves the workload: it uses all that it has and waits,
// whatever its spans tell. A share by weight is no limit.
func (s *seat) starves() bool {
	return s.resource == 0 && s.estimate != nil && s.estimate.Starved > 0 && !s.shared()
}

// hungry is what a workload that starves is guessed to need beyond what it has, in units.
func (s *seat) hungry() int {
	return policy.UpUnits(math.Min(growing*float64(s.estimate.Starved), growth)*s.now, s.of.Unit)
}

// waits is how many seconds of its allocation must wait to tell of a queue.
const waits = 0.2

// firing reports whether an alert on the workload fires that keeps what it has. In an overload whose
// turns are decided all have their alerts: none decides.
func (s *seat) firing() bool { return s.loan.Fires() && !(s.turn.Slice > 0 && s.shared()) }

// changed reports whether the workload is not where it was expected to be when
// it last moved: its load left the band of that forecast, or it misses its SLO.
func (s *seat) changed() bool {
	before, e := s.dial.load, s.estimate
	if before == nil && s.dial.move.Direction == 0 || s.misses() {
		return true
	}
	if before == nil || e == nil || e.Load == nil {
		return false // nobody knows
	}
	return !verdict.Within(e.Load, before)
}

// inputOf returns an input of an estimate; -1: missing.
func inputOf(e *trimtab.Estimate, q trimtab.Quantity) float64 {
	for _, in := range e.Inputs {
		if in.Name == string(q) && in.Missing == "" {
			return in.Value
		}
	}
	return -1
}
