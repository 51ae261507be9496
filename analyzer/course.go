package analyzer

import (
	"cmp"
	"math"
	"slices"
)

// course estimates the load of a workload and its slope. A load is constant, rises or falls
// steadily for some time, and then changes its course: it jumps to another level, or its slope
// changes. The time of the change is unknown, so all possible times are followed side by side, as
// in Adams and MacKay, "Bayesian Online Changepoint Detection" (2007), each by a Kalman filter with
// state (load, slope),
//
//	x_t = [1 T; 0 1] x_{t−1},    n_t/T = load_t + N(0, load_t/T)
//
// n_t, the number of requests in T seconds, is Poisson, and its likelihood is that of a Poisson
// variable: with few requests, many more than expected come by chance more often than a normal
// distribution says. Each report starts a new run for each combination
//
//	jump or bend × level (slope 0) or ramp (slope N(0, (σ load)²))
//
// and a run is weighted by the likelihood of the reports since. While nothing changes, the mean
// over the runs averages over a long time; once a change is told from noise, it averages over the
// latest reports only. The same holds for the slope.
type course struct{ runs []run }

// run is the course since one possible change: mean, variance and covariance of load and slope.
type run struct {
	load, slope float64
	vl, vls, vs float64
	weight      float64
}

const (
	// jumps and bends are the probabilities of such a change before a report. steep is σ, per
	// second. wide is the standard deviation of a jump, relative to the load. By `trimtab-lab sim
	// services --seeds 10`, half or twice of each makes results worse by at most half a point.
	jumps, bends, steep, wide = 1.0 / 60, 1.0 / 20, 0.04, 1.0
	// maxRuns is the largest number of runs. A run whose relative weight is below lost is dropped:
	// if the load returns to it, a new jump is far more likely.
	maxRuns, lost = 32, 1e-9
	// huge is more than any load. A report covers shortest to longest seconds.
	huge, shortest, longest = 1e15, 1e-3, 60
)

// start restarts with the given load and its variance.
func (c *course) start(load, variance float64) {
	s := steep * load
	c.runs = append(c.runs[:0], run{load: load, vl: variance, weight: 0.5}, run{load: load, vl: variance, vs: s * s, weight: 0.5})
}

// see updates the runs with the load during the next seconds. Each observed request stands for each
// requests (sampling).
func (c *course) see(load, seconds, each float64) {
	if !(load >= 0 && load < huge) || !(seconds >= shortest && seconds <= longest) || !(each >= 1 && each < huge) {
		return
	}
	if len(c.runs) == 0 {
		c.start(load, each*math.Max(load, 1/seconds)/seconds)
		return
	}
	for i := range c.runs {
		r := &c.runs[i]
		r.load += r.slope * seconds
		r.vl += seconds * (2*r.vls + seconds*r.vs)
		r.vls += seconds * r.vs
	}
	// A new run starts from the mixture of all runs.
	mean, spread := c.load(), 0.0
	for _, r := range c.runs {
		spread += r.weight * (r.vl + (r.load-mean)*(r.load-mean))
	}
	// A run with a very low load must not claim very low noise, which its own load would imply.
	noise := func(at float64) float64 { return each * math.Max(at, math.Max(0.5*mean, 1/seconds)) / seconds }
	s := steep * math.Max(mean, 1/seconds)
	far := wide * math.Max(math.Max(mean, load), 1/seconds)
	for i := range c.runs {
		c.runs[i].weight *= 1 - jumps - bends
	}
	c.runs = append(c.runs,
		run{load: mean, vl: far * far, weight: jumps / 2}, run{load: mean, vl: far * far, vs: s * s, weight: jumps / 2},
		run{load: mean, vl: spread, weight: bends / 2}, run{load: mean, vl: spread, vs: s * s, weight: bends / 2})
	most := math.Inf(-1)
	for i := range c.runs {
		r := &c.runs[i]
		n := noise(r.load)
		v, miss := r.vl+n, load-r.load
		r.weight = math.Log(r.weight) - (n/v*deviance(load*seconds/each, n*seconds*seconds/each/each)+math.Log(r.vl+noise(load)))/2
		most = math.Max(most, r.weight)
		gain, turn := r.vl/v, r.vls/v
		r.load, r.slope = r.load+gain*miss, r.slope+turn*miss
		r.vs -= turn * r.vls
		r.vl, r.vls = r.vl*(1-gain), r.vls*(1-gain)
	}
	sum := 0.0
	for i := range c.runs {
		c.runs[i].weight = math.Exp(c.runs[i].weight - most)
		sum += c.runs[i].weight
	}
	if !(sum > 0) {
		c.start(load, noise(load)) // all weights have underflowed
		return
	}
	c.runs = slices.DeleteFunc(c.runs, func(r run) bool { return r.weight < lost*sum })
	slices.SortFunc(c.runs, func(a, b run) int { return cmp.Compare(b.weight, a.weight) })
	c.runs = c.runs[:min(len(c.runs), maxRuns)]
	sum = 0
	for _, r := range c.runs {
		sum += r.weight
	}
	for i := range c.runs {
		c.runs[i].weight /= sum
	}
}

// deviance returns the deviance of n requests from a Poisson distribution with the given mean:
// twice the log of the likelihood ratio to one with mean n. For large numbers it is (n −
// mean)²/mean; for small ones it allows for the Poisson distribution's longer upper tail.
func deviance(n, mean float64) float64 {
	if n == 0 {
		return 2 * mean
	}
	return 2 * (n*math.Log(n/mean) - (n - mean))
}

// load returns the load at the end of the latest report; 0 before the first.
func (c *course) load() float64 { return c.in(0) }

// in returns the expected load after the given number of seconds, at least 0.
func (c *course) in(seconds float64) float64 {
	mean := 0.0
	for _, r := range c.runs {
		mean += r.weight * math.Max(0, r.load+r.slope*seconds)
	}
	return mean
}
