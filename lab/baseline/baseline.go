package baseline

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
)

// Job is what one job delivered in the last round.
type Job struct {
	Name string
	// Type names the kind of workload; only Quasar looks at it.
	Type string
	// Weight is its entitlement's weight, > 0.
	Weight float64
	// Min and Max bound what it may get, Units is what it had, in units.
	Min, Max, Units int
	// SLO is the performance asked for, > 0.
	SLO float64
	// Fraction tells that Performance is a share of requests, at most 1.
	Fraction bool
	// Performance, Load (requests/s) and Utility are means over the round.
	Performance, Load, Utility float64
}

// missed reports whether the SLO is missed.
func (j *Job) missed() bool { return j.Performance < j.SLO }

// strain is how far the job is from its SLO as an autoscaler sees it: the
// metric over its target. For a fraction the metric is the share of requests
// that came too late, for a rate the inverse of the rate. 1 is at the SLO.
func (j *Job) strain() float64 {
	if j.Fraction && j.SLO < 1 {
		return (1 - j.Performance) / (1 - j.SLO)
	}
	return j.SLO / math.Max(j.Performance, 1e-9)
}

// Rule says what jobs get. Rules keep what they need of earlier rounds, by
// name, and are deterministic.
type Rule interface {
	Name() string
	// Next divides units among jobs, in their order; the sum is at most units,
	// each within its Min and Max. It returns an error that is
	// trimtab.ErrInfeasible when the minimums exceed the units.
	Next(units int, jobs []Job) ([]int, error)
}

// Names returns the names of all rules.
func Names() []string {
	return []string{"greedy-egalitarian", "minerva", "miad", "parties", "ernest", "quasar", "hpa", "pid"}
}

// New returns the named rule, which has seen nothing. The error is
// trimtab.ErrInvalid for a name that is not in [Names].
func New(name string) (Rule, error) {
	switch name {
	case "greedy-egalitarian":
		return greedy{}, nil
	case "minerva":
		return minerva{}, nil
	case "miad":
		return demands{name, func(j *Job) float64 {
			if j.missed() {
				return 1.5 * float64(j.Units)
			}
			return float64(j.Units) - 1
		}}, nil
	case "parties":
		return demands{name, (&parties{wants: map[string]float64{}}).demand}, nil
	case "ernest":
		return demands{name, (&ernest{fits: map[string]*fit{}}).demand}, nil
	case "quasar":
		return &quasar{rows: map[string]*row{}}, nil
	case "hpa":
		return demands{name, (&hpa{recent: map[string][]float64{}}).demand}, nil
	case "pid":
		return demands{name, (&pid{of: map[string]*control{}}).demand}, nil
	}
	return nil, trimtab.Invalidf("baseline %.40q", name)
}

// demands is a rule that shares the capacity by what it believes each job
// demands, one job at a time.
type demands struct {
	name   string
	demand func(j *Job) float64
}

// Name returns the name of the rule.
func (d demands) Name() string { return d.name }

// Next asks for each demand, and runs the NJC procedure on them.
func (d demands) Next(units int, jobs []Job) ([]int, error) {
	wants := make([]float64, len(jobs))
	for i := range jobs {
		wants[i] = d.demand(&jobs[i])
	}
	return share(units, jobs, wants)
}

// share runs the NJC procedure on demands above everybody's minimum.
func share(units int, jobs []Job, wants []float64) ([]int, error) {
	left, weights := units, make([]float64, len(jobs))
	over := make([]float64, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		left -= j.Min
		weights[i] = j.Weight
		over[i] = bounded(wants[i], j) - float64(j.Min)
	}
	if left < 0 {
		return nil, infeasible(units, jobs)
	}
	r, err := fair.NJC(float64(left), over, weights)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		r.Allocation[i] += float64(jobs[i].Min)
	}
	return whole(units, jobs, r.Allocation), nil
}

// bounded keeps a demand within a job's bounds; what is no number asks for all.
func bounded(want float64, j *Job) float64 {
	if math.IsNaN(want) {
		return float64(j.Max)
	}
	return math.Min(math.Max(want, float64(j.Min)), float64(j.Max))
}

// whole rounds allocations down, and gives the units that are left over by it
// to the largest remainders, the first of equal ones.
func whole(units int, jobs []Job, amounts []float64) []int {
	const grain = 1e-9
	out, asked := make([]int, len(jobs)), 0.0
	sum := 0
	for i, a := range amounts {
		out[i] = min(max(int(math.Floor(a+grain)), jobs[i].Min), jobs[i].Max)
		sum += out[i]
		asked += a
	}
	for left := min(units, int(math.Floor(asked+grain))) - sum; left > 0; left-- {
		best, most := -1, grain
		for i, a := range amounts {
			if r := a - float64(out[i]); r > most && out[i] < jobs[i].Max {
				best, most = i, r
			}
		}
		if best < 0 {
			break
		}
		out[best]++
	}
	return out
}

func infeasible(units int, jobs []Job) error {
	least := 0
	for i := range jobs {
		least += jobs[i].Min
	}
	return fmt.Errorf("share %d units: the minimums need %d: %w", units, least, trimtab.ErrInfeasible)
}
