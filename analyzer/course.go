package analyzer

import (
	"cmp"
	"math"
	"slices"
)

// course follows the load of a workload, which stays, rises or falls evenly for some
// time and then takes another course: it jumps to another level, or bends. When that
// was is not known, so all times are followed side by side, as in Adams and MacKay,
// "Bayesian Online Changepoint Detection" (2007), each by a Kalman filter with state
// (load, slope),
//
//	x_t = [1 T; 0 1] x_{t−1},    n_t/T = load_t + N(0, load_t/T)
//
// since n_t, the requests of T seconds, are Poisson, as which they are weighed: of few
// requests, many more come by chance sooner than of many. With every report a new run
// begins for each way to go on,
//
//	jump or bend × level (slope 0) or ramp (slope N(0, (σ load)²))
//
// and a run counts by how likely it made the reports since. The mean over the runs
// is over long where nothing changes, and over the last reports once that is told
// from noise; the same for the slope.
type course struct{ runs []run }

// run is one course since some time: the mean and covariance of load and slope.
type run struct {
	load, slope float64
	vl, vls, vs float64
	weight      float64
}

const (
	// jumps and bends are how likely a load is to do so before a report, steep is σ,
	// per second, and wide that of where it jumps to, as a part of it. By `trimtab-lab sim
	// services --seeds 10` half or twice of each is worse by at most half a point.
	jumps, bends, steep, wide = 1.0 / 60, 1.0 / 20, 0.04, 1.0
	// maxRuns bounds how many are followed; one that is less likely than lost is not:
	// where the load comes back to it, a jump is far more likely.
	maxRuns, lost = 32, 1e-9
	// huge is what no load is; a report is of shortest to longest seconds.
	huge, shortest, longest = 1e15, 1e-3, 60
)

// start begins anew with a load of so much variance.
func (c *course) start(load, variance float64) {
	s := steep * load
	c.runs = append(c.runs[:0], run{load: load, vl: variance, weight: 0.5}, run{load: load, vl: variance, vs: s * s, weight: 0.5})
}

// see enters the load of the next so many seconds, where each request that was seen
// stands for so many.
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
	// What is known by all runs together is where a new one starts from.
	mean, spread := c.load(), 0.0
	for _, r := range c.runs {
		spread += r.weight * (r.vl + (r.load-mean)*(r.load-mean))
	}
	// A run that is far off must not be all the surer.
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
		c.start(load, noise(load)) // rounding has left nothing
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

// deviance is that of n requests where mean are expected, twice the logarithm of how
// much less likely they are than if n were: (n − mean)²/mean for many. For few it
// tells that many more come by chance sooner than a normal distribution says.
func deviance(n, mean float64) float64 {
	if n == 0 {
		return 2 * mean
	}
	return 2 * (n*math.Log(n/mean) - (n - mean))
}

// load returns the load at the end of the latest report; 0 before the first.
func (c *course) load() float64 { return c.in(0) }

// in returns the load that is expected in so many seconds, at least 0.
func (c *course) in(seconds float64) float64 {
	mean := 0.0
	for _, r := range c.runs {
		mean += r.weight * math.Max(0, r.load+r.slope*seconds)
	}
	return mean
}
