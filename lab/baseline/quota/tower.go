package quota

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Tower chooses the throttle targets of two groups of services once a minute, by a
// contextual bandit on what each pair of targets cost before.
//
//	within the SLO: (alloc − min)/(max − min) over such samples, in [0, 1]
//	over it:        2 + (p99 − min)/(max − min) over such samples, in [2, 3]
type Tower struct {
	// SLO of the p99, in ms.
	SLO float64
	// Bucket is the width of a group of samples of the same load, in requests/s.
	Bucket float64
	// Rand is required.
	Rand *rand.Rand

	samples []sample
	tries   [rungs * rungs]int
	last    int
}

// TowerTicks is how long a choice holds.
const TowerTicks = 60 * TicksPerSecond

const (
	rungs      = 9
	draws      = 10_000
	hidden     = 3
	learnsBy   = 0.5
	worstKnown = 2.0
)

// Rungs are the targets that Tower chooses from.
func Rungs() []float64 { return []float64{0, .02, .04, .06, .1, .15, .2, .25, .3} }

type sample struct {
	action          int
	rate, p99, gave float64
}

// targets returns the pair of an action: of the busy services, and of the others.
func (r *Tower) targets(action int) (busy, others float64) {
	return Rungs()[action/rungs], Rungs()[action%rungs]
}

// Learn takes what a minute under the last choice showed: requests/s, the p99 in ms,
// the mean sum of quotas in cores.
func (r *Tower) Learn(rate, p99, gave float64) {
	r.samples = append(r.samples, sample{r.last, rate, p99, gave})
}

// Uniform chooses the pair that was tried least.
func (r *Tower) Uniform() (busy, others float64) {
	least, among := math.MaxInt, []int(nil)
	for a, n := range r.tries {
		if n < least {
			least, among = n, among[:0]
		}
		if n == least {
			among = append(among, a)
		}
	}
	return r.choose(among[r.Rand.IntN(len(among))])
}

func (r *Tower) choose(action int) (busy, others float64) {
	r.last = action
	r.tries[action]++
	return r.targets(action)
}

// Choose takes the model's best at a load, or, with the probability explore, one of its
// neighbours on the grid: .1 in service, .5 in training, 0 in the source's evaluation.
func (r *Tower) Choose(rate, explore float64) (busy, others float64) {
	groups, costs := r.medians()
	if len(groups) == 0 {
		return r.choose(0)
	}
	scale := 1e-9
	for _, g := range groups {
		scale = math.Max(scale, g.rate)
	}
	var nets [rungs * rungs]net
	for i := range nets {
		nets[i].begin(r.Rand)
	}
	for range draws {
		k := r.Rand.IntN(len(groups))
		nets[groups[k].action].learn(groups[k].rate/scale, costs[k])
	}
	best, least := 0, math.Inf(1)
	for a := range nets {
		if r.tries[a] == 0 {
			continue // nothing is known of it
		}
		if c := nets[a].cost(rate / scale); c < least {
			best, least = a, c
		}
	}
	if r.Rand.Float64() < explore {
		near := neighbours(best)
		best = near[r.Rand.IntN(len(near))]
	}
	return r.choose(best)
}

// Copy returns a Tower that knows the same.
func (r *Tower) Copy(source *rand.Rand) *Tower {
	out := *r
	out.Rand, out.samples = source, slices.Clone(r.samples)
	return &out
}

// neighbours are up to four on the grid.
func neighbours(action int) (out []int) {
	x, y := action/rungs, action%rungs
	for _, d := range [4][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
		if i, j := x+d[0], y+d[1]; i >= 0 && i < rungs && j >= 0 && j < rungs {
			out = append(out, i*rungs+j)
		}
	}
	return out
}

// cost of each sample, given all.
func (r *Tower) costs() []float64 {
	span := func(over bool, of func(*sample) float64) (low, width float64) {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range r.samples {
			if s := &r.samples[i]; (s.p99 > r.SLO) == over {
				low, high = math.Min(low, of(s)), math.Max(high, of(s))
			}
		}
		return low, high - low
	}
	share := func(v, low, width float64) float64 {
		if !(width > 0) {
			return 0.5
		}
		return (v - low) / width
	}
	gave, p99 := func(s *sample) float64 { return s.gave }, func(s *sample) float64 { return s.p99 }
	lowGave, widthGave := span(false, gave)
	lowP99, widthP99 := span(true, p99)
	out := make([]float64, len(r.samples))
	for i := range r.samples {
		if s := &r.samples[i]; s.p99 > r.SLO {
			out[i] = worstKnown + share(s.p99, lowP99, widthP99)
		} else {
			out[i] = share(s.gave, lowGave, widthGave)
		}
	}
	return out
}

// medians groups samples by action and load, and gives each group's median cost.
func (r *Tower) medians() (groups []sample, medians []float64) {
	type key struct {
		action int
		bucket float64
	}
	at, lists := map[key]int{}, [][]float64(nil)
	for i, c := range r.costs() {
		s := r.samples[i]
		k := key{s.action, math.Round(s.rate / r.Bucket)}
		n, ok := at[k]
		if !ok {
			n = len(groups)
			at[k] = n
			groups, lists = append(groups, sample{action: s.action, rate: k.bucket * r.Bucket}), append(lists, nil)
		}
		lists[n] = append(lists[n], c)
	}
	for _, l := range lists {
		slices.Sort(l)
		medians = append(medians, (l[(len(l)-1)/2]+l[len(l)/2])/2)
	}
	return groups, medians
}

// net is a layer of tanh units over the load, beside a line.
type net struct {
	in, bias, out [hidden]float64
	line, base    float64
	seen          [3*hidden + 2]float64 // squares of gradients
	any           bool
}

func (n *net) begin(r *rand.Rand) {
	for j := range hidden {
		n.in[j], n.bias[j] = r.NormFloat64(), r.NormFloat64()
	}
}

func (n *net) cost(x float64) float64 {
	if !n.any {
		return worstKnown + 1
	}
	y := n.base + n.line*x
	for j := range hidden {
		y += n.out[j] * math.Tanh(n.in[j]*x+n.bias[j])
	}
	return y
}

func (n *net) learn(x, cost float64) {
	n.any = true
	e := n.cost(x) - cost
	step := func(k int, p *float64, gradient float64) {
		n.seen[k] += gradient * gradient
		if n.seen[k] > 0 {
			*p -= learnsBy * gradient / math.Sqrt(n.seen[k])
		}
	}
	for j := range hidden {
		h := math.Tanh(n.in[j]*x + n.bias[j])
		slope := e * n.out[j] * (1 - h*h)
		step(3*j, &n.out[j], e*h)
		step(3*j+1, &n.in[j], slope*x)
		step(3*j+2, &n.bias[j], slope)
	}
	step(3*hidden, &n.line, e*x)
	step(3*hidden+1, &n.base, e)
}
