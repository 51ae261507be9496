package drf

import (
	"fmt"
	"math"
	"math/rand/v2"

	solver "github.com/trimtab/trimtab/planner/drf"
)

// Pool says what the random tenants are like.
type Pool struct {
	// Tenants and Resources, >= 1.
	Tenants, Resources int
	// Mean and SD of the number of entries in a row, before it is truncated
	// to [2, 128].
	Mean, SD float64
	// Zipf is the exponent by which resources are popular; 0: all the same.
	Zipf float64
	// Finite is the part of the tenants that has a limit, in [0, 1].
	Finite float64
	// Seed of the generator.
	Seed uint64
}

const (
	leastEntries = 2
	mostEntries  = 128
)

// lengths draws the number of entries of row after row.
type lengths struct {
	pool Pool
	rng  *rand.Rand
}

func (p Pool) lengths() lengths { return lengths{p, rand.New(rand.NewPCG(p.Seed, 1))} }

func (l lengths) next() int {
	least, most := min(leastEntries, l.pool.Resources), min(mostEntries, l.pool.Resources)
	for {
		n := math.Floor(l.pool.Mean + l.pool.SD*l.rng.NormFloat64())
		if n >= float64(least) && n <= float64(most) {
			return int(n)
		}
		if l.pool.Resources < mostEntries {
			return min(max(int(n), least), most)
		}
	}
}

// entries is how many there will be at most.
func (p Pool) entries() int {
	sum := 0
	l := p.lengths()
	for range p.Tenants {
		sum += l.next()
	}
	return sum
}

// check refuses what cannot be drawn.
func (p Pool) check() error {
	switch {
	case p.Tenants < 1 || p.Resources < 1:
		return fmt.Errorf("%d tenants, %d resources: want at least one of each", p.Tenants, p.Resources)
	case !(p.Mean >= 0 && p.Mean <= mostEntries && p.SD >= 0 && p.SD <= 1000):
		return fmt.Errorf("rows of mean %v and deviation %v: want a mean in [0, %d] and a deviation in [0, 1000]", p.Mean, p.SD, mostEntries)
	case p.SD == 0 && p.Mean < leastEntries:
		return fmt.Errorf("rows of %v entries: want at least %d", p.Mean, leastEntries)
	case !(p.Zipf >= 0 && p.Zipf <= 10):
		return fmt.Errorf("zipf %v: want an exponent in [0, 10]", p.Zipf)
	case !(p.Finite >= 0 && p.Finite <= 1):
		return fmt.Errorf("finite %v: want a part in [0, 1]", p.Finite)
	}
	return nil
}

// rows draws tenant after tenant.
type rows struct {
	pool    Pool
	lengths lengths
	rng     *rand.Rand
	demands []solver.Demand
	typical float64 // level at which a limit bites or not
}

func (p Pool) rows(entries int) *rows {
	return &rows{pool: p, lengths: p.lengths(), rng: rand.New(rand.NewPCG(p.Seed, 2)), typical: 2 * float64(p.Resources) / float64(entries)}
}

// capacities draws the sizes.
func (p Pool) capacities() []float64 {
	rng := rand.New(rand.NewPCG(p.Seed, 3))
	out := make([]float64, p.Resources)
	for r := range out {
		out[r] = 0.5 + rng.Float64()
	}
	return out
}

// next draws a tenant; its demands are valid until the next call.
func (g *rows) next(capacities []float64) solver.Tenant {
	g.demands = g.demands[:0]
	n := g.lengths.next()
	key := 0.0
	for tries := 0; len(g.demands) < n && tries < 4*n; tries++ {
		r := g.resource()
		if g.has(r) {
			continue
		}
		amount := 1 - g.rng.Float64()
		key = max(key, amount/capacities[r])
		g.demands = append(g.demands, solver.Demand{Resource: r, Amount: amount})
	}
	t := solver.Tenant{Demands: g.demands, Weight: 1}
	if g.pool.Finite > 0 && g.rng.Float64() < g.pool.Finite {
		l := 2 * g.typical * g.rng.Float64() / key
		t.Limit = &l
	}
	return t
}

func (g *rows) has(r int) bool {
	for _, d := range g.demands {
		if d.Resource == r {
			return true
		}
	}
	return false
}

// resource draws one: the k-th most popular with probability ~ k^-zipf, by
// the inverse of the continuous distribution.
func (g *rows) resource() int {
	n, s := g.pool.Resources, g.pool.Zipf
	if s == 0 {
		return g.rng.IntN(n)
	}
	u := g.rng.Float64()
	x := 0.0
	if top := float64(n + 1); math.Abs(s-1) < 1e-9 {
		x = math.Pow(top, u)
	} else {
		x = math.Pow(1+u*(math.Pow(top, 1-s)-1), 1/(1-s))
	}
	return min(max(int(x), 1), n) - 1
}
