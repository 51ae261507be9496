package planner

import (
	"math"

	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
)

// divide shares the room of a round among seats that are to rise and cannot all
// have what they want: as the objective would, were there no more than that, and
// what that leaves in proportion to what is still wanted. nil: in proportion.
//
//	max objective(a),  now_j <= a_j <= want_j,  Σ (a_j − now_j) <= room
//
// Only an objective that weighs utilities can be asked so: what others have is a
// constant to it.
func (r *decision) divide(rising []*seat, room float64) []float64 {
	p := r.planner
	if !p.traits.Weighs {
		return nil
	}
	prob := &policy.Problem{Unit: p.cfg.Unit, Stop: p.cfg.Stop}
	asks, got := make([]float64, len(rising)), make([]float64, len(rising))
	for i, s := range rising {
		if s.in == nil || s.served || !s.free {
			return nil
		}
		asks[i] = s.want - s.now
		w := s.in.problem.Workloads[s.at]
		w.Min, w.Max = policy.UpUnits(s.now, p.cfg.Unit), policy.DownUnits(s.want, p.cfg.Unit)
		if w.Max < w.Min {
			return nil
		}
		w.Current = w.Min
		prob.Units += w.Min
		room -= float64(w.Min)*p.cfg.Unit - s.now
		prob.Workloads = append(prob.Workloads, w)
	}
	if prob.Units += policy.DownUnits(room, p.cfg.Unit); room < 0 {
		return nil
	}
	answer, err := p.cfg.Policy.Solve(prob)
	if err != nil {
		return nil
	}
	left := make([]float64, len(rising))
	for i, s := range rising {
		w := &prob.Workloads[i]
		if answer.Units[i] > w.Min {
			got[i] = math.Min(float64(answer.Units[i])*p.cfg.Unit-s.now, asks[i])
			room -= float64(answer.Units[i]-w.Min) * p.cfg.Unit
		}
		left[i] = asks[i] - got[i]
	}
	for i, more := range guard.Share(left, math.Max(room, 0), p.cfg.Unit) {
		got[i] += more
	}
	return got
}
