package cilantro

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// wanted is what stands for a learner where a job says what it demands instead
// of how it performs: utility is taken to grow linearly up to that (section 5
// of the paper, the third fallback). What is observed is not looked at.
type wanted struct {
	learn.Plain

	demand, slo float64
}

// Name returns "demand/1".
func (wanted) Name() string { return "demand/1" }

// Observe keeps nothing.
func (wanted) Observe(learn.Observation) error { return nil }

// Predict grows to the SLO at the demand, without a band.
func (d wanted) Predict(allocation, _ float64) trimtab.Band {
	p := d.slo * math.Min(1, allocation/d.demand)
	return trimtab.Band{Lower: p, Mean: p, Upper: p}
}

// Reports is 1: the demand.
func (wanted) Reports() int { return 1 }

// Snapshot is refused.
func (wanted) Snapshot() ([]byte, error) { return nil, trimtab.ErrUnsupported }

// Restore is refused.
func (wanted) Restore([]byte) error { return trimtab.ErrInvalid }

// demandAtMedian is what a job would demand at the median load of the run: the
// best that its owner could say beforehand.
func (w *world) demandAtMedian(i int) float64 {
	loads := make([]float64, 0, w.env.Rounds*Windows)
	for k := range cap(loads) {
		loads = append(loads, w.env.Load(i, k))
	}
	slices.Sort(loads)
	p := &w.jobs[i]
	return loads[len(loads)/2] * p.profile.Least(p.SLO)
}
