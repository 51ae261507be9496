package replicas

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// The factors of a fit: so many, from least to greatest, evenly on a log scale.
	factors               = 64
	leastFit, greatestFit = 0.6, 1.8
	// drifts is the standard deviation of the log of the factor from one report to the
	// next, jumps the share of reports at which it may be any.
	drifts, jumps = 0.01, 1e-3
	// vague is by what share of itself a share of late requests is off beside the noise of
	// counts: load and size vary within a report.
	vague = 0.15
)

// Fit is by which factor r a workload needs more than its curve says, now: a curve over
// the allocation per load knows nothing of how many instances share it, nor of what
// changed since it was learnt. With L the share of late requests that was seen of N,
//
//	L ~ N(ℓ(r), ℓ(r) (1 − ℓ(r)) / N + (v ℓ(r))²),   ℓ(r) = 1 − curve(e / r)
//	ln r' = ln r + N(0, s²), at times anything
//
// its posterior is kept over a grid and goes on with each report. The zero value knows
// nothing, which is 1.
//
// Source: the forward algorithm of a hidden Markov model (L. Rabiner, 1989).
type Fit struct {
	Weights []float64 `json:"weights,omitempty"`
}

// fitAt is the k-th factor.
func fitAt(k float64) float64 {
	return leastFit * math.Pow(greatestFit/leastFit, k/(factors-1))
}

// Observe takes in a report of so many requests, of which a share was in time, under an
// effective allocation and a load. What makes no sense is ignored.
func (f *Fit) Observe(c *trimtab.Curve, had, load, inTime, requests float64) {
	if c == nil || !sane(had, load, inTime, requests) || inTime > 1 || requests < 1 || had <= 0 {
		return
	}
	scale, _ := c.Scale(load)
	f.drift()
	sum, seen := 0.0, 1-inTime
	for k := range f.Weights {
		late := 1 - c.Eval(had/scale/fitAt(float64(k))).Lower
		late = math.Min(math.Max(late, 0.5/(requests+1)), 1)
		spread := late*(1-late)/requests + vague*late*vague*late + 1e-9
		f.Weights[k] *= math.Exp(-(seen-late)*(seen-late)/(2*spread))/math.Sqrt(spread) + 1e-12
		sum += f.Weights[k]
	}
	for k := range f.Weights {
		f.Weights[k] /= sum
	}
}

// drift is what may have changed since the last report.
func (f *Fit) drift() {
	if len(f.Weights) != factors {
		f.Weights = make([]float64, factors)
		for k := range f.Weights {
			d := math.Log(fitAt(float64(k))) / 0.15
			f.Weights[k] = math.Exp(-d * d / 2)
		}
		return
	}
	step := math.Log(greatestFit/leastFit) / (factors - 1)
	side := math.Min(drifts*drifts/(step*step)/2, 0.25)
	before := f.Weights[0]
	for k := range f.Weights {
		here, after := f.Weights[k], f.Weights[min(k+1, factors-1)]
		f.Weights[k] = (1-jumps)*((1-2*side)*here+side*(before+after)) + jumps/factors
		before = here
	}
}

// Factor is a quantile of the posterior.
func (f *Fit) Factor(quantile float64) float64 {
	total := 0.0
	for _, v := range f.Weights {
		total += v
	}
	sum := 0.0
	for k, v := range f.Weights {
		if sum+v >= quantile*total {
			return fitAt(math.Max(float64(k)-0.5+(quantile*total-sum)/v, 0))
		}
		sum += v
	}
	return 1
}

// least is the allocation at which the lower bound of a curve reaches a level; negative:
// nowhere.
func least(c *trimtab.Curve, level, load float64) float64 {
	scale, _ := c.Scale(load)
	return policy.LeastReaching(c, scale, level, func(b trimtab.Band) float64 { return b.Lower })
}
