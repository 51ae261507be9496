package microservices

import (
	"math"
	"math/rand/v2"

	"github.com/trimtab/trimtab/analyzer/learn/kernel"
	"github.com/trimtab/trimtab/analyzer/learn/sojourn"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/sim"
	"github.com/trimtab/trimtab/sim/evolve"
)

// learning is the end-to-end policy: a learner of ln P99 over all allocations,
// and the allocation with the least lower bound.
type learning struct {
	vector *kernel.Vector
	now    []int
	units  int
	rand   *rand.Rand
	// curves are per service, from spans; nil: the P99 is all that is seen.
	curves []sojourn.Curve
	called []float64
	window int
}

const (
	// evaluations of the bound in a round.
	evaluations = 150
	// pointsKept bounds what the learner holds.
	pointsKept = 96
	// jointShare is the weight of the kernel that knows no components.
	jointShare = 0.5
	// level of the bounds that are planned with: at 0.9 a policy explores 19
	// dimensions for all of a run.
	level = 0.2
	// within is how many units a trial is off the allocation it starts from,
	// for each service.
	within = 3
)

func newLearning(units int, seed uint64, spans bool) (*learning, error) {
	v, err := kernel.New(kernel.Config{Dimensions: Count, MaxUnits: units, Level: level, Points: pointsKept, Joint: jointShare})
	if err != nil {
		return nil, err
	}
	a, b := sim.Seed(seed, 0x6c6561726e)
	l := &learning{vector: v, now: evolve.Equal(units, Count), units: units, rand: rand.New(rand.NewPCG(a, b))}
	if spans {
		l.curves, l.called = make([]sojourn.Curve, Count), make([]float64, Count)
	}
	return l, nil
}

func (l *learning) next() []int {
	if l.vector.Reports() == 0 {
		return l.now
	}
	p := problem(l.units, l.now)
	start, _ := l.vector.Best()
	if l.curves != nil {
		start = l.target(&p)
	}
	for i, u := range start {
		p.Min[i], p.Max[i] = max(p.Min[i], u-within), min(p.Max[i], u+within)
	}
	bound := func(u []int) float64 { return l.vector.Predict(u).Lower }
	l.now = p.Towards(p.Ascend(start, bound, evaluations, l.rand))
	return l.now
}

func (l *learning) tell(r *Report) error {
	if l.window++; l.window <= startWindows && l.curves == nil {
		return nil // services that have just started: a transient
	}
	if err := l.vector.Observe(r.CPUs, math.Log(r.P99)); err != nil {
		return err
	}
	if l.curves == nil {
		return nil
	}
	for i := range l.curves {
		s := &r.Spans[i]
		l.called[i] = s.Called
		if err := l.curves[i].Observe(sojourn.Report{Allocation: float64(r.CPUs[i]), Rate: s.Rate, Mean: s.Mean}); err != nil {
			return err
		}
	}
	return l.vector.Expect(l.expected, l.shares(r.CPUs))
}

// moments adds up the latency end to end as the spans tell it.
func (l *learning) moments(units []int) (mean, variance float64) {
	for i, v := range l.called {
		if v == 0 {
			continue
		}
		t := l.curves[i].Mean(float64(units[i]), 0)
		mean += v * t
		variance += spread(v) * t * t
	}
	return mean, variance
}

// spread is the variance of v visits on average, each exponential with mean 1:
// some requests make one, the others none.
func spread(v float64) float64 { return v * math.Max(1, 2-v) }

// tailDeviations is how many standard deviations the P99 of a sum of
// exponential times is above its mean: between 2.3 (many) and 3.6 (one).
const tailDeviations = 3

// expected is ln P99 by the spans.
func (l *learning) expected(units []int) float64 {
	mean, variance := l.moments(units)
	return math.Log(floor + mean + tailDeviations*math.Sqrt(variance))
}

// shares are the parts of the components in the variance of the latency, which
// weigh what is left to learn of each; none has less than a hundredth of the
// mean share.
func (l *learning) shares(units []int) []float64 {
	_, all := l.moments(units)
	out := make([]float64, Count)
	for i, v := range l.called {
		out[i] = 0.01 / Count
		if v > 0 && all > 0 {
			t := l.curves[i].Mean(float64(units[i]), 0)
			out[i] += spread(v) * t * t / all
		}
	}
	return out
}

// target divides by the spans alone: √variance is replaced by its tangent,
// which makes the sum separable and is never below it, and is drawn again at
// the answer. Services that no request waits for count little, so that they
// are not starved.
func (l *learning) target(p *endtoend.Problem) []int {
	at := l.now
	for range 2 {
		_, variance := l.moments(at)
		slope := tailDeviations / (2 * math.Sqrt(variance))
		to, err := p.Separable(func(i, u int) float64 {
			t := l.curves[i].Mean(float64(u), 1)
			v := l.called[i]
			if v == 0 {
				return 0.001 * t
			}
			return v*t + slope*spread(v)*t*t
		})
		if err != nil {
			return at
		}
		at = to
	}
	return at
}
