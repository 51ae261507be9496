package cilantro

import (
	"math/rand/v2"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/evolve"
)

// evolving is a controller: the evolutionary search on a welfare of the
// utilities that were reported.
type evolving struct {
	world       *world
	search      evolve.Search
	egalitarian bool
	units       []int
	sum         []float64
	told        []float64
}

func newEvolving(w *world, egalitarian bool) *evolving {
	n := len(w.jobs)
	return &evolving{world: w, egalitarian: egalitarian, sum: make([]float64, n), told: make([]float64, n),
		search: evolve.Search{Units: w.env.Capacity, Jobs: n, Rand: rand.New(rand.NewPCG(lab.Seed(w.seed, forRules)))}}
}

// Decide tells the search what its last trial was worth.
func (e *evolving) Decide(r int) ([]int, error) {
	if r > 0 {
		e.search.Tell(e.units, e.welfare())
	}
	e.units = e.search.Next()
	clear(e.sum)
	clear(e.told)
	return e.units, nil
}

// welfare is that of the mean utilities of the last round.
func (e *evolving) welfare() float64 {
	sum, least, n := 0.0, 1.0, 0.0
	for i := range e.sum {
		if e.told[i] == 0 {
			continue
		}
		u := e.sum[i] / e.told[i]
		sum, least, n = sum+u, min(least, u), n+1
	}
	if e.egalitarian || n == 0 {
		return least
	}
	return sum / n
}

// Tell adds a window to the round.
func (e *evolving) Tell(_ int, reports []Report) {
	for i := range reports {
		if r := &reports[i]; !r.Silent {
			e.sum[i] += e.world.jobs[i].utility(r.Performance)
			e.told[i]++
		}
	}
}
