package fast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/lab"
)

// Learnt says whether a curve that is learnt with the loop on is right (goal G8): a
// learner sees rounds of the load diurnal at targets drawn at random, and its band is held
// against rounds of other seeds at fixed targets.
type Learnt struct {
	Seed uint64
	// Cells are parts of the load, each at one of the fixed targets. Setting and Granted are
	// the shares of them whose mean performance is in the band, of a curve taught at the
	// target and of one taught at the mean of what was granted.
	Cells            int
	Setting, Granted float64
	// Frozen is that share of the rounds whose quotas stayed at the target, of a curve that
	// such rounds taught. Before each there is one with loans at the same target, so that
	// it begins with nothing that waits.
	Frozen float64
	// Slope is that of least squares: performance over a doubling of the target per load.
	Slope float64
}

const (
	learnLevel  = 0.9
	frozenEvery = 20
	// frozenSeeds apart are the seeds of the rounds that teach the curve of frozen ones.
	frozenSeeds = 500
	// Targets are drawn from so many times the goal, on a logarithmic scale.
	leastTimes, mostTimes = 0.15, 1.5
	loadParts             = 4
	// leastLearning is how many seconds of a run teach enough.
	leastLearning = 1800
)

// fixedTimes are the targets at which bands are checked.
func fixedTimes() []float64 { return []float64{0.2, 0.3, 0.45, 0.7, 1, 1.4} }

// round is what a round came to.
type round struct {
	setting, granted, load, inTime, requests float64
	frozen                                   bool
	// from and to are its steps.
	from, to int
}

// rounded plays the loop, draws a target for each round, and notes what came.
type rounded struct {
	*fast
	draw   func(n int) (times float64, frozen bool)
	rounds []round
	sum    float64
}

func (p *rounded) step(c *cluster) {
	const length = roundSeconds * ticks
	if c.at%length == 0 {
		p.note(c)
		p.times, p.frozen = p.draw(c.at / length)
		p.sum = 0
	}
	p.fast.step(c)
	for _, g := range c.groups {
		p.sum += g.quota
	}
	if c.at%length == 0 {
		r := round{frozen: p.frozen}
		for _, g := range c.groups {
			r.setting += p.times * goal(g, c.at)
		}
		p.rounds = append(p.rounds, r)
	}
}

// note finishes the round that ended.
func (p *rounded) note(c *cluster) {
	if len(p.rounds) == 0 {
		return
	}
	const length = roundSeconds * ticks
	a, r := c.apps[0], &p.rounds[len(p.rounds)-1]
	r.from, r.to = (c.at-length)*steps, c.at*steps
	for _, n := range a.n[r.from:r.to] {
		r.requests += float64(n)
	}
	r.load, r.granted = r.requests/roundSeconds, p.sum/length
}

// learning plays rounds with targets that draw gives, and returns those after the first ten.
func (x *Experiment) learning(seed uint64, draw func(int) (float64, bool)) []round {
	l, _ := Named(Diurnal, x.Seconds, seed) // it is built in
	c := newCluster([]*App{NewApp(l, seed)}, x.Pool, true, seed)
	p := &rounded{fast: newFast(c, x.Now), draw: draw}
	c.play(p, x.Stop)
	if len(p.rounds) < 12 || x.Stopped() {
		return nil
	}
	out := p.rounds[10 : len(p.rounds)-1]
	for i := range out { // what waited at the end of its round is known now
		r := &out[i]
		r.inTime = 1 - c.apps[0].late(r.from, r.to)
	}
	return out
}

// learn is the goal's experiment with one seed.
func (x *Experiment) learn(seed uint64) []Learnt {
	a, b := lab.Seed(seed, 0x6c6561726e)
	r := rand.New(rand.NewPCG(a, b))
	rounds := x.learning(seed, func(n int) (float64, bool) {
		return leastTimes * math.Pow(mostTimes/leastTimes, r.Float64()), n%frozenEvery == frozenEvery-1
	})
	if len(rounds) < frozenEvery {
		return nil
	}
	rounds = without(rounds, true)
	target, granted := taught(rounds, atTarget), taught(rounds, atGranted)
	times := 0.0
	still := taught(without(x.learning(seed+frozenSeeds, func(n int) (float64, bool) {
		if n%2 == 0 {
			times = leastTimes * math.Pow(mostTimes/leastTimes, r.Float64())
		}
		return times, n%2 == 1
	}), false), atTarget)
	out := Learnt{Seed: seed}
	var xs, ys []float64
	for i := range rounds {
		xs, ys = append(xs, math.Log2(rounds[i].setting/rounds[i].load)), append(ys, rounds[i].inTime)
	}
	out.Slope = slope(xs, ys)
	for k, times := range fixedTimes() {
		for _, cell := range x.cells(seed+uint64(k+1)*1000, times, false) {
			out.Cells++
			if within(target, cell, atTarget) {
				out.Setting++
			}
			if within(granted, cell, atGranted) {
				out.Granted++
			}
		}
	}
	n := 0
	for k, times := range fixedTimes() {
		for _, cell := range x.cells(seed+uint64(k+1)*1000, times, true) {
			if n++; within(still, cell, atTarget) {
				out.Frozen++
			}
		}
	}
	out.Setting, out.Granted, out.Frozen = out.Setting/float64(out.Cells), out.Granted/float64(out.Cells), out.Frozen/float64(max(1, n))
	return []Learnt{out}
}

// without drops the rounds that are frozen, or those that are not.
func without(rounds []round, frozen bool) []round {
	return slices.DeleteFunc(slices.Clone(rounds), func(r round) bool { return r.frozen == frozen })
}

// cells are rounds at a fixed target, with loans or every other one without, by their load.
func (x *Experiment) cells(seed uint64, times float64, frozen bool) (out [][]round) {
	all := without(x.learning(seed, func(n int) (float64, bool) { return times, frozen && n%2 == 1 }), !frozen)
	slices.SortFunc(all, func(a, b round) int { return cmp.Compare(a.load, b.load) })
	for part := range loadParts {
		if cell := all[part*len(all)/loadParts : (part+1)*len(all)/loadParts]; len(cell) > 0 {
			out = append(out, cell)
		}
	}
	return out
}

func atTarget(r *round) float64  { return r.setting }
func atGranted(r *round) float64 { return r.granted }

// taught is a learner of all rounds, as in production.
func taught(rounds []round, at func(*round) float64) *gp.Process {
	p, _ := gp.New(learnLevel) // the level is right
	for i := range rounds {
		r := &rounds[i]
		_ = p.Observe(learn.Observation{Allocation: at(r), Load: r.load, Performance: r.inTime, Requests: r.requests}) // all are numbers
	}
	return p
}

// within reports whether the mean of rounds is in the mean of the bands at them.
func within(p *gp.Process, rounds []round, at func(*round) float64) bool {
	lower, upper, mean := 0.0, 0.0, 0.0
	for i := range rounds {
		b := p.Predict(at(&rounds[i]), rounds[i].load)
		lower, upper, mean = lower+b.Lower, upper+b.Upper, mean+rounds[i].inTime
	}
	return mean >= lower && mean <= upper
}

// slope is that of least squares.
func slope(x, y []float64) float64 {
	mx, my, xy, xx := lab.Mean(x), lab.Mean(y), 0.0, 0.0
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	return xy / xx
}
