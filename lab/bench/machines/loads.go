package machines

import (
	"math"

	filter "github.com/trimtab/trimtab/planner/machines"
)

// dimensions are those of ROSE's table 2.
func dimensions() []filter.Dimension {
	value := func(v float64) *float64 { return &v }
	return []filter.Dimension{
		{Name: "cpu", Bounded: true, Threshold: value(0.9), Load: value(1)},
		{Name: "memory", Bounded: true, Threshold: value(0.95), Load: value(1)},
		{Name: "load1", Load: value(0.5)},
		{Name: "disk service", Load: value(0.5)},
		{Name: "disk utilization", Bounded: true, Threshold: value(0.9), Load: value(1)},
		{Name: "disk usage", Bounded: true, Threshold: value(0.9), Load: value(0.5)},
		{Name: "network received", Bounded: true, Load: value(0.5)},
		{Name: "network transmitted", Bounded: true, Load: value(0.5)},
		{Name: "running containers", Queue: value(0.5)},
		{Name: "waiting speculative", Threshold: value(50), Queue: value(1)},
		{Name: "running speculative", Queue: value(0.5)},
	}
}

func newReport() filter.Report {
	n := len(dimensions())
	return filter.Report{Load: make([]float64, n), Capacity: make([]float64, n)}
}

// draw fills a report: loads uniform up to the capacity, queues up to 20.
func (t *trial) draw(r *filter.Report) {
	r.CPI, r.MPKI = 0.5+2*t.rng.Float64(), 20*t.rng.Float64()
	for d := range r.Load {
		r.Load[d], r.Capacity[d] = float64(t.rng.IntN(20)), math.NaN()
		if d < 8 { // not a queue
			r.Capacity[d] = float64(int(16) << t.rng.IntN(3))
			r.Load[d] = r.Capacity[d] * t.rng.Float64()
		}
	}
}
