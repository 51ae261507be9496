package cilantro

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// Job is one tenant of the cluster.
type Job struct {
	Name string
	// Type names its profile.
	Type string
	// Fraction tells that performance is a share of requests, in [0, 1], told
	// with their number; otherwise it is a rate, told without its noise.
	Fraction bool
	// SLO is the performance asked for, > 0.
	SLO float64
	// Shape is "linear", "quadratic" or "sqrt" (figure 4).
	Shape string
	// Scale multiplies the trace; 0: the load is always 1.
	Scale float64
	// Weight is that of its entitlement, in (0, 1e6].
	Weight float64
}

// maxWeight is that of a configuration.
const maxWeight = 1e6

// shape returns the utility over performance.
func (j *Job) utility() func(float64) float64 {
	switch j.Shape {
	case "quadratic":
		return policy.Quadratic(j.SLO)
	case "sqrt":
		return policy.SquareRoot(j.SLO)
	}
	return policy.Linear(j.SLO)
}

func (j *Job) validate() error {
	switch {
	case j.Name == "" || len(j.Name) > 253:
		return trimtab.Invalidf("job %.40q: want a name of 1 to 253 bytes", j.Name)
	case !(j.SLO > 0) || math.IsInf(j.SLO, 0) || j.Fraction && j.SLO > 1:
		return trimtab.Invalidf("job %s: slo %v: want a number > 0, a fraction at most 1", j.Name, j.SLO)
	case j.Shape != "linear" && j.Shape != "quadratic" && j.Shape != "sqrt":
		return trimtab.Invalidf("job %s: utility shape %.20q: want linear, quadratic or sqrt", j.Name, j.Shape)
	case !(j.Scale >= 0 && j.Scale <= MostLoad):
		return trimtab.Invalidf("job %s: trace_scale %v: want 0 to %g", j.Name, j.Scale, MostLoad)
	case !(j.Weight > 0 && j.Weight <= maxWeight):
		return trimtab.Invalidf("job %s: weight %v: want more than 0, at most %g", j.Name, j.Weight, maxWeight)
	}
	return nil
}
