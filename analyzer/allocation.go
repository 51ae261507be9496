package analyzer

import (
	"time"

	"github.com/trimtab/trimtab/analyzer/report"
)

// allocation is what a workload has of its first resource.
type allocation struct {
	report.History
	config *Config
	spec   *Workload
	// loads are those of its instances; nil: not known.
	loads report.Loads
	// transients counts reports set aside in a row.
	transients int
}

// during returns the allocation in force over [from, to).
func (a *allocation) during(from, to time.Time, settle time.Duration) report.InForce {
	return a.During(from, to, settle, a.loads)
}

// most is the largest allocation that the workload can have: that of its instances
// together, where there are several.
func (a *allocation) most() float64 { return max(a.spec.Max, a.Most(a.loads)) }

// endure sets r aside when the allocation changed, unless it did in all of the
// latest reports too: then the mean over the interval has to do.
func (a *allocation) endure(r *report.Report, f report.InForce) {
	if !f.Transient {
		a.transients = 0
		return
	}
	if a.transients++; a.transients <= patience || f.Amount.Unlimited || !(f.Mean > 0) {
		r.Aside = "transient"
		return
	}
	mean := f.Mean
	r.Allocation, r.AllocFrom = &mean, "actuator: mean"
}
