package cilantro

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trimtab/trimtab/lab"
)

// Report is what a job tells of one window; a job that is not there, or says
// nothing, has Silent set.
type Report struct {
	Silent bool
	// Load is in requests/s. Performance is noisy; Requests is what it is a
	// fraction of, 0 for a rate.
	Load, Performance, Requests float64
}

// world is one run of an environment under one seed. What a job reports in a
// window depends on nothing but seed, job, window and its own performance, so
// that policies are compared on the same noise.
type world struct {
	env  *Environment
	opt  Options
	seed uint64
	jobs []place
}

// place is the state of one job.
type place struct {
	*Job
	profile *Profile
	utility func(float64) float64
	// share is its entitlement, in units.
	share float64
	// arrives and leaves are windows of the run.
	arrives, leaves float64
	drift, lie      float64
	// given is its allocation, before what it had until this round, and delay
	// after how many seconds of the round the difference serves.
	given, before, delay float64
	// backlog is how many requests wait.
	backlog float64
}

func newWorld(e *Environment, o Options, seed uint64) *world {
	w := &world{env: e, opt: o, seed: seed}
	weights := 0.0
	for i := range e.Jobs {
		weights += e.Jobs[i].Weight
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		p := place{Job: j, profile: e.Profiles[j.Type], utility: j.utility(), drift: 1, lie: 1,
			share: float64(e.Capacity) * j.Weight / weights, leaves: math.Inf(1)}
		if v, ok := o.Lies[j.Name]; ok {
			p.lie = v
		}
		if slices.Contains(o.Drift.Jobs, j.Name) {
			p.drift = o.Drift.Factor
		}
		p.arrives = o.Arrive[j.Name] * Windows
		if v, ok := o.Leave[j.Name]; ok {
			p.leaves = v * Windows
		}
		w.jobs = append(w.jobs, p)
	}
	return w
}

// rand returns the stream of one use, job and time.
func (w *world) rand(use, job, at int) *rand.Rand {
	return rand.New(rand.NewPCG(lab.Seed(w.seed, uint64(use), uint64(job), uint64(at))))
}

// The uses of randomness.
const (
	forReports = iota
	forNeighbours
	forStartup
	forRules
)

// begin puts the allocation of round r in force.
func (w *world) begin(r int, units []int) {
	for i := range w.jobs {
		p := &w.jobs[i]
		p.before, p.given, p.delay = p.given, float64(units[i]), 0
		if r == 0 {
			p.before = p.given
		}
		if p.given > p.before && w.opt.Startup > 0 {
			p.delay = w.opt.Startup.Seconds() * (0.5 + w.rand(forStartup, i, r).Float64())
		}
	}
}

// there reports whether a job is there in all of window k.
func (p *place) there(k int) bool { return float64(k) >= p.arrives && float64(k+1) <= p.leaves }

// serving returns the units that serve in window k, on average over it.
func (w *world) serving(i, k int) float64 {
	p := &w.jobs[i]
	a := p.given
	if p.delay > 0 {
		late := min(max(p.delay-float64(k%Windows*WindowSeconds), 0), WindowSeconds) / WindowSeconds
		a -= late * (p.given - p.before)
	}
	if w.opt.Interference > 0 && w.rand(forNeighbours, i, k/Windows).Float64() < w.opt.Interference {
		a *= 0.8
	}
	return a
}

// factor is what drift does to the performance in window k.
func (w *world) factor(i, k int) float64 {
	if k < w.env.Rounds/2*Windows {
		return 1
	}
	return w.jobs[i].drift
}

// window runs window k: what was true and what is told.
func (w *world) window(k int, truths []truth, reports []Report) {
	for i := range w.jobs {
		truths[i] = w.truth(i, k)
		reports[i] = w.report(i, k, &truths[i])
	}
}

// truth runs job i through window k.
func (w *world) truth(i, k int) truth {
	p := &w.jobs[i]
	if !p.there(k) {
		p.backlog = 0
		return truth{absent: true}
	}
	load, factor := w.env.Load(i, k), w.factor(i, k)
	serving, felt := w.serving(i, k), load
	if w.opt.Queues && p.Fraction {
		felt += p.backlog / WindowSeconds
		// At most what arrives in a round waits; the rest has given up.
		p.backlog = min(max(0, p.backlog+WindowSeconds*(load-serving/p.profile.work())), load*Windows*WindowSeconds)
	}
	performance := factor * p.profile.At(serving/felt)
	return truth{
		allocation: p.given, demand: load * p.profile.Least(p.SLO/factor), load: load, performance: performance,
		utility: p.utility(performance), entitled: p.utility(factor * p.profile.At(p.share/load)),
	}
}

// report is what job i tells of window k (section 4 of the environment): a
// fraction is counted over the requests of the window, a rate has 3% of noise.
func (w *world) report(i, k int, t *truth) Report {
	p := &w.jobs[i]
	if t.absent {
		return Report{Silent: true}
	}
	rnd := w.rand(forReports, i, k)
	r := Report{Load: t.load}
	if p.Fraction {
		r.Requests = math.Round(WindowSeconds * t.load)
		r.Performance = distuv.Binomial{N: r.Requests, P: min(t.performance, 1), Src: rnd}.Rand() / r.Requests
	} else {
		r.Performance = t.performance * (1 + 0.03*rnd.NormFloat64())
	}
	r.Performance = max(0, r.Performance*p.lie*(1+w.opt.Noise*rnd.NormFloat64()))
	if p.Fraction {
		r.Performance = min(r.Performance, 1)
	}
	return r
}
