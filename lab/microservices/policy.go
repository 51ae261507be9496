package microservices

import (
	"math"
	"math/rand/v2"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/evolve"
)

// policy decides what each service has in the next window.
type policy interface {
	next() []int
	tell(r *Report) error
}

// Names of the policies.
const (
	EndToEnd      = "end-to-end"
	WithSpans     = "end-to-end-spans"
	ResourceFair  = "resource-fair"
	EvoAlg        = "evoalg"
	EpsilonGreedy = "epsilon-greedy"
	BestStatic    = "best-static"
	FirstSight    = "first-sight"
)

// PolicyNames are those that an experiment can run.
func PolicyNames() []string {
	return []string{EndToEnd, WithSpans, ResourceFair, EvoAlg, EpsilonGreedy, BestStatic, FirstSight}
}

const (
	// leastUnits is what every service has: the least of the recorded runs.
	leastUnits = 3
	// stepUnits is how far a service may move in a round (B of the paper).
	stepUnits = 10
	// greedyShare is the paper's share of random allocations.
	greedyShare = 1.0 / 3
)

// fixed never changes.
type fixed []int

func (f fixed) next() []int      { return f }
func (fixed) tell(*Report) error { return nil }

// told tries what another policy does until a P99 says anything, and knows the
// best static allocation from then on: whoever makes these trials, sees the P99
// alone and then stays with one allocation can do no better.
type told struct {
	policy
	best []int
	saw  bool
}

func (t *told) next() []int {
	if t.saw {
		return t.best
	}
	return t.policy.next()
}

func (t *told) tell(r *Report) error {
	// Below, by three deviations of its noise, the longest that clients wait.
	if t.saw = t.saw || r.P99 < most*math.Exp(-3*noiseStd); t.saw {
		return nil
	}
	return t.policy.tell(r)
}

// trying searches by trial; every service has leastUnits beside.
type trying struct{ search *evolve.Search }

func newTrying(units int, greedy float64, seed uint64) *trying {
	a, b := lab.Seed(seed, 0x747279)
	return &trying{&evolve.Search{Units: units - (leastUnits-1)*Count, Jobs: Count, Greedy: greedy, Rand: rand.New(rand.NewPCG(a, b))}}
}

func (t *trying) next() []int { return shifted(t.search.Next(), leastUnits-1) }

func (t *trying) tell(r *Report) error {
	t.search.Tell(shifted(r.CPUs, 1-leastUnits), -r.P99)
	return nil
}

func shifted(units []int, by int) []int {
	out := make([]int, len(units))
	for i, u := range units {
		out[i] = u + by
	}
	return out
}

// problem is a round's question: bounds as wide as the capacity allows.
func problem(cpus int) units {
	p := units{Units: cpus, Min: make([]int, Count), Max: make([]int, Count)}
	for i := range p.Min {
		p.Min[i], p.Max[i] = leastUnits, cpus-(Count-1)*leastUnits
	}
	return p
}

// bestStatic searches the allocation with the least mean P99 over the drift of
// the machines, with the network known: four starts, each improved by exchanges.
func bestStatic(s Settings, units int) []int {
	p := problem(units)
	cost := func(u []int) float64 { return meanP99(s, u) }
	a, b := lab.Seed(1, 0x73746174)
	r := rand.New(rand.NewPCG(a, b))
	need := HotelReservation()
	best := evolve.Equal(units, Count)
	least := cost(best)
	for try := range 4 {
		start, err := p.separable(func(i, u int) float64 {
			load := s.Rate * need.rates[i] * need.Services[i].Work / 1000 / s.Speed / float64(u)
			return math.Pow(load, 2+2*float64(try))
		})
		if err != nil {
			return best
		}
		start = p.ascend(start, cost, 1500, r)
		if c := cost(start); c < least {
			best, least = start, c
		}
	}
	return best
}

// meanP99 is the P99 of an allocation, averaged over the drift.
func meanP99(s Settings, units []int) float64 {
	sum := 0.0
	shares := effective(units, s.Scaling)
	deviations := []float64{-1.5, 0, 1.5}
	for _, d := range deviations {
		n := HotelReservation()
		speed := s.Speed * math.Exp(d*driftStd)
		n.Play(shares, s.Rate, speed)
		sum += n.Play(shares, s.Rate, speed).P99
	}
	return sum / float64(len(deviations))
}
