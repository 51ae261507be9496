package replay

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Course is the recorded load and allocation of one workload, to play in another world.
type Course struct {
	Workload string
	// Interval is the interval of reports; Times are their ends; Loads are in requests per second.
	Interval time.Duration
	Times    []time.Time
	Loads    []float64
	// Cost is the mean work of a request in the pool's resource times seconds; 0: unknown. Shares
	// says that performance is the share of requests that met the SLO.
	Cost   float64
	Shares bool
	// Allocation is the first recorded allocation, with Instances instances; 0: unknown.
	Allocation float64
	Instances  int
	// Changes counts the changes of the allocation.
	Changes int
	// Measured has the recorded figures; ByCurve has the same by the curve learnt in hindsight.
	Measured, ByCurve Figures
	workload          *workload
}

// Course returns the record of a workload with an SLO; false: it never reported load, performance
// and allocation.
func (h *History) Course(name string, slo float64) (*Course, bool) {
	w := h.workloads[name]
	if w == nil {
		return nil, false
	}
	first := w.first()
	if first == nil {
		return nil, false
	}
	c := &Course{Workload: name, Interval: h.config.Report, Shares: w.counted, Allocation: *first.allocation, Instances: first.instances, workload: w}
	work, requests, had := 0.0, 0.0, c.Allocation
	for i := range w.reports {
		r := &w.reports[i]
		if r.load == nil {
			continue
		}
		c.Times, c.Loads = append(c.Times, r.at), append(c.Loads, *r.load)
		if r.cost != nil {
			work, requests = work+*r.cost**r.load, requests+*r.load
		}
		if r.performance == nil || r.allocation == nil {
			continue
		}
		if *r.allocation != had {
			c.Changes++
			had = *r.allocation
		}
		p, dt := *r.performance, c.Interval.Minutes()
		count(&c.Measured, dt, had, trimtab.Band{Lower: p, Mean: p, Upper: p}, slo)
		count(&c.ByCurve, dt, had, c.Predict(had, *r.load), slo)
	}
	if requests > 0 {
		c.Cost = work / requests
	}
	return c, true
}

// Predict returns the performance at an allocation under a load by the curve learnt in hindsight.
func (c *Course) Predict(allocation, load float64) trimtab.Band {
	if !(allocation > 0) {
		return trimtab.Band{}
	}
	return c.workload.hindsight.Predict(allocation, load)
}
