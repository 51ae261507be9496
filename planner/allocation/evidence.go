package allocation

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/verdict"
	"github.com/trimtab/trimtab/quantity"
)

// UtilityAt returns the utility that is expected at an allocation.
func (s *Allocation) UtilityAt(allocation float64) float64 {
	return s.UtilityOf(s.Curve.Eval(allocation).Mean)
}

// UtilityOf returns the utility of a performance, clamped to [0, 1].
func (s *Allocation) UtilityOf(performance float64) float64 {
	v := s.Utility(performance)
	if !(v > 0) {
		return 0
	}
	return min(v, 1)
}

// Misses reports whether the workload misses its SLO beyond the noise of its reports: in two
// reports in a row, since requests fail in bursts, or in one if requests wait or reports cover a
// longer time.
func (s *Allocation) Misses() bool {
	e := s.Estimate
	if s.Starves() {
		return true
	}
	if e == nil || e.Backlog == nil || *e.Backlog > waits*s.Now {
		return s.Missed > 0
	}
	return s.Missed > 1
}

// Starves reports whether its limit starves the workload: it uses all that it has and its requests
// wait, whatever its spans say. A share by weight is no limit.
func (s *Allocation) Starves() bool {
	return s.Index == 0 && s.Estimate != nil && s.Estimate.Starved > 0 && !s.Shared()
}

// hungry returns how many more units a starved workload is assumed to need.
func (s *Allocation) hungry() int {
	return policy.UpUnits(math.Min(growing*float64(s.Estimate.Starved), growth)*s.Now, s.Resource.Unit)
}

// waits is the backlog, in seconds of its allocation, from which on a workload counts as having a
// queue.
const waits = 0.2

// Firing reports whether an alert fires that keeps the workload from being lowered. During an
// overload with ranks all workloads have alerts, and none is respected.
func (s *Allocation) Firing() bool { return s.Loan.Fires() && !(s.Overload.Slice > 0 && s.Shared()) }

// Changed reports whether the workload differs from what was expected when it last moved: its load
// left the band of that forecast, or it misses its SLO.
func (s *Allocation) Changed() bool {
	before, e := s.State.load, s.Estimate
	if before == nil && s.State.Move.Direction == 0 || s.Misses() {
		return true
	}
	if before == nil || e == nil || e.Load == nil {
		return false // unknown
	}
	return !verdict.Within(e.Load, before)
}

// inputOf returns one input of an estimate, or nil if it is missing.
func inputOf(e *trimtab.Estimate, q quantity.Quantity) *trimtab.Input {
	for i := range e.Inputs {
		if in := &e.Inputs[i]; in.Name == string(q) && in.Missing == "" {
			return in
		}
	}
	return nil
}
